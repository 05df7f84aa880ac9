"""The command where something is odd: addresses, paths, stores of others, closed streams, an interrupt at a bad time."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from test_command_line_talks import COMMAND, MODEL, run, talked

from pollux_like.cli import console, demo
from pollux_like.simulator import Simulator
from pollux_like.store.sync import open_store
from pollux_like.testing import Scripted


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'talks.db'}"


def test_the_version_is_said_by_the_command_and_by_the_module() -> None:
    said = f"pollux-like {version('pollux-like')}\n"
    assert run("--version").stdout == said
    module = [sys.executable, "-m", "pollux_like", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == said


def test_who_looks_makes_no_tables_in_the_database_of_another_program(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE theirs (a)")
    (tmp_path / "empty.db").touch()
    for name in ("other.db", "empty.db"):
        url, before = f"sqlite:///{tmp_path / name}", (tmp_path / name).read_bytes()
        for command in (("list",), ("verify",), ("export", "--all"), ("prune", "--older-than", "1d", "--yes")):
            assert "schema 0" in run("talks", *command, store=url, status=1).stderr
        assert (tmp_path / name).read_bytes() == before


def test_standard_input_that_is_closed_is_empty(url: str) -> None:
    talked(url)
    for command, status in ((("chat", "--provider", "scripted"), 0), (("talks", "delete", "a", "--store", url), 1)):
        closed = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *command]
        done = subprocess.run(closed, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://user:hidden@127.0.0.1:9/v1?key=hidden", "user:hidden@host", "http://a b:9999999"]
)
def test_doctor_shows_no_secret_of_an_address_and_takes_any(address: str) -> None:
    done = run("doctor", "--json", OPENAI_API_KEY="sim-key", OPENAI_BASE_URL=address)
    (found,) = [one for one in json.loads(done.stdout)["providers"] if one["provider"] == "openai"]
    assert found["state"].startswith("no answer")
    assert "hidden" not in done.stdout + done.stderr


def test_an_option_of_a_chat_that_would_be_dropped_is_refused(tmp_path: Path) -> None:
    for options in (("--state",), ("--take-up",), ("--give-up",), ("--scope", "tenant-7")):
        refused = run("chat", "--provider", "scripted", *options, "Hi", status=1)
        assert options[0] in refused.stderr
        assert "scripted · scripted" not in refused.stderr


def test_a_file_that_cannot_be_saved_is_refused_before_the_turn(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "none" / "talk.json"):
        refused = run("chat", "--provider", "scripted", "--save", str(path), "Hi", status=1)
        assert "cannot be written there" in refused.stderr
        assert "scripted · scripted" not in refused.stderr


def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    from pollux_like import ConfigurationError, Environment, Input
    from pollux_like.cli import chat
    from pollux_like.sync import interact
    from pollux_like.testing import say

    continuation = interact(Environment(), Input("Hi", history=[]), Scripted([say("Hello")]).config).continuation
    assert continuation is not None
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        chat.store(tmp_path / "folder", continuation)
    chat.store(tmp_path / "talk.json", continuation)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "talk.json"]
    assert (tmp_path / "talk.json").stat().st_mode & 0o077 == 0
    assert chat.load(tmp_path / "talk.json") == continuation


def test_a_chat_that_another_writer_overtook_loses_one_line_and_goes_on(url: str) -> None:
    with Simulator() as sim:
        environment = {"PATH": os.environ["PATH"], "HOME": "/", **sim.environ()}
        command = [*COMMAND, "chat", *MODEL, "--store", url, "--talk", "a", "--json"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            print("one", file=process.stdin, flush=True)
            while json.loads(process.stdout.readline())["type"] != "turn":
                pass
            run("chat", *MODEL, "--store", url, "--talk", "a", "two", **sim.environ())
            print("three", file=process.stdin, flush=True)
            refused = json.loads(process.stderr.readline())["error"]
            print("four", file=process.stdin, flush=True)
            process.stdin.close()
            said = [json.loads(line) for line in process.stdout]
            assert process.wait(60) == 0
    assert refused["type"] == "ConflictError"
    assert [one["type"] for one in said].count("turn") == 1
    with open_store(url) as store:
        shown = store.load("a", scope="default").transcript()
    assert [turn.messages[0].content for turn in shown] == ["one", "two", "four"]


def test_addresses_and_names_that_cannot_be_are_errors(tmp_path: Path) -> None:
    for command in (
        ("simulate", "--host", "\u202eevil"),
        ("simulate", "--host", "a\nb"),
        ("serve", "environment", "..:x"),
        ("serve", "environment", ".m:C"),
        ("talks", "show", "a", "--store", f"sqlite:///{'x' * 5000}"),
        ("chat", "--talk", "a", "--store", f"sqlite:///{'x' * 5000}", "Hi"),
    ):
        refused = run(*command, "--json", status=1)
        assert set(json.loads(refused.stderr.splitlines()[-1])["error"]) == {"type", "message", "hint"}


def test_a_time_that_no_calendar_has_is_shown_as_none(url: str, tmp_path: Path) -> None:
    talked(url)
    for moment in (1e300, -1e300, 1e12):
        with closing(sqlite3.connect(tmp_path / "talks.db")) as connection, connection:
            connection.execute("UPDATE pollux_like_conversations SET updated_at = ?", (moment,))
        assert "a  2 turns  -  First" in run("talks", "list", store=url).stdout


def test_a_line_of_json_steers_no_terminal_and_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\x1b[31m \x9b2J \x7f \x85 \u2028 \u2029 größe"
    console.emit({"text": text})
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 1
    assert json.loads(printed) == {"text": text}
    assert printed.removesuffix("\n").isprintable()
    with pytest.raises(ValueError, match="JSON compliant"):
        console.emit({"ece": float("nan")})


def test_an_interrupt_while_modules_are_imported_is_no_traceback() -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pollux_like.cli import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code, "doctor"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_process_of_the_demo_ends_with_the_demo() -> None:
    with pytest.raises(KeyboardInterrupt), demo._worker("talk", "none") as worker:
        assert os.getpgid(worker.pid) != os.getpgid(0)  # Ctrl-C at the terminal is not for it
        raise KeyboardInterrupt
    assert worker.returncode == -signal.SIGKILL


def test_keys_are_never_half_wrapped_however_often_rotation_is_killed(url: str, tmp_path: Path) -> None:
    from pollux_like import ContinuationSealer

    keys = [ContinuationSealer.new_key(), ContinuationSealer.new_key()]
    with open_store(url, sealer=ContinuationSealer(keys)) as store:
        for number in range(300):
            store.create(f"c{number}", scope="default")
    rows = "SELECT wrapped FROM pollux_like_keys ORDER BY conversation, segment"
    with closing(sqlite3.connect(tmp_path / "talks.db")) as connection:
        before = connection.execute(rows).fetchall()
        keys.reverse()
        environment = {**os.environ, "POLLUX_LIKE_STORE_KEYS": ",".join(keys)}
        with subprocess.Popen([*COMMAND, "talks", "rotate", "--store", url], env=environment) as process:
            while process.poll() is None and connection.execute(rows).fetchone() == before[0]:
                time.sleep(0.001)
            process.kill()
        after = [row[0] for row in connection.execute(rows)]
    fresh = sum(ContinuationSealer(keys[:1]).is_current(wrapped) for wrapped in after)
    assert fresh > 0
    assert fresh % 100 == 0  # each batch as a whole, or not at all
    again = json.loads(run("talks", "rotate", "--json", store=url, POLLUX_LIKE_STORE_KEYS=",".join(keys)).stdout)
    assert again == {"keys": len(before), "rewrapped": len(before) - fresh}
    whole = json.loads(run("talks", "verify", "--json", store=url, POLLUX_LIKE_STORE_KEYS=keys[0]).stdout)
    assert (whole["conversations"], whole["problems"]) == (300, [])
