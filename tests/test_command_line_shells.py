"""The command at a terminal and in a shell: progress, colour, questions, completion."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_command_line_talks import COMMAND, run, talked

from pollux_like.store.sync import open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'talks.db'}"


def at_a_terminal(*arguments: str, typed: str = "", **more: str) -> tuple[str, str, int]:
    """Run with standard input and standard error on a terminal: what was printed, what that showed, the status."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": "/", "TERM": "xterm", "COLUMNS": "100", **more}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        seen, end = b"", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    seen += os.read(ours, 65536)
                except OSError:  # the terminal of a process that has ended
                    break
            elif process.poll() is not None:
                break
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    os.close(ours)
    return printed, seen.decode(), process.returncode


def test_progress_is_shown_on_a_terminal_only_and_never_beside_json(url: str) -> None:
    talked(url)
    with open_store(url) as store:
        for number in range(20):
            store.fork("a", f"f{number}", scope="default")
    command = ("talks", "export", "--all", "--store", url)
    printed, seen, status = at_a_terminal(*command)
    assert (len([json.loads(line) for line in printed.splitlines()]), status) == (21, 0)
    assert "Exporting" in seen
    assert "21/21" in seen
    assert at_a_terminal(*command, "--json")[1] == ""
    assert run(*command).stderr == ""
    assert run(*command, FORCE_COLOR="1").stderr == ""


def test_without_colour_a_terminal_gets_none() -> None:
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        _, seen, status = at_a_terminal("talks", "list", **more)
        assert status == 1
        assert ("\x1b[31m" in seen) is coloured


def test_a_person_is_asked_and_no_erases_nothing(url: str) -> None:
    talked(url)
    _, seen, status = at_a_terminal("talks", "delete", "a", "--store", url, typed="n\n")
    assert ("Erase 'a' for good?" in seen, status) == (True, 1)
    printed, _, status = at_a_terminal("talks", "delete", "a", "--store", url, "--json", typed="y\n")
    assert (json.loads(printed)["turns"], status) == (2, 0)


def completed(line: str, shell: str = "bash", **more: str) -> list[str]:
    """What the shell is told for the end of a line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)} if shell == "bash" else {}
    done = run(
        _POLLUX_LIKE_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_ARGS=line, _TYPER_COMPLETE_FISH_ACTION="get-args",
        **asked, **more,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_commands_providers_engines_and_ids(url: str, tmp_path: Path) -> None:
    assert {"chat", "talks", "serve"} <= set(completed("pollux-like "))
    assert completed("pollux-like talks ro") == ["rotate"]
    assert completed("pollux-like chat --provider open") == ["openai", "openrouter"]
    for command in ("serve typed", "typed calibrate x", "view"):
        assert completed(f"pollux-like {command} --engine ") == ["llama", "openai"]
    assert "openai" in " ".join(completed("pollux-like chat --provider open", shell="zsh"))
    assert completed("pollux-like chat --provider anth", shell="fish") == ["anthropic"]
    talked(url)
    with open_store(url) as store:
        store.create("b two", scope="default")
        for name in ("tenant:größe", "tenant's", "ten$(id)", "ten;id", "ten`id`", "-ten", "ten|id", "ten*", "ten\\n"):
            store.create(name, scope="tenant-7")
    assert completed("pollux-like talks show ", POLLUX_LIKE_STORE=url) == ["a"]
    assert completed(f"pollux-like talks export --store {url} ") == ["a"]
    assert completed("pollux-like chat --talk ", POLLUX_LIKE_STORE=url) == ["a"]
    assert completed("pollux-like talks show --scope tenant-7 ten", POLLUX_LIKE_STORE=url) == ["tenant:größe"]


def test_a_completion_that_fails_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("no database at all, but a text that is long enough to be read as one" * 20)
    none = f"sqlite:///{tmp_path / 'none.db'}"
    for store in ("", none, "mysql://x", f"sqlite:///{tmp_path / 'bad.db'}", "postgresql://u:secret@192.0.2.1/x"):
        assert completed("pollux-like talks show ", POLLUX_LIKE_STORE=store) == []
        assert completed("pollux-like talks show ", POLLUX_LIKE_STORE=store, POLLUX_LIKE_STORE_KEYS="bad") == []
    assert [file.name for file in tmp_path.iterdir()] == ["bad.db"]


def test_a_look_up_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from pollux_like.cli import stores

    forever = threading.Event()
    assert stores.within(0.01, lambda: ["late"] if forever.wait(60) else []) == []
    forever.set()
    assert stores.within(60, lambda: ["here"]) == ["here"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    code = "import sys; sys.argv[0] = 'pollux-like'; from pollux_like.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--show-completion", shell], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": "/"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"_POLLUX_LIKE_COMPLETE=complete_{shell}" in done.stdout
