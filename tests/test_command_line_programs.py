"""The command as other programs see it: JSON, exit statuses, pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from test_command_line_talks import COMMAND, MODEL, run, talked

from pollux_like import ContinuationSealer
from pollux_like.simulator import Simulator
from pollux_like.store.sync import open_store
from pollux_like.testing import answer, call, say, think


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


@pytest.fixture
def sim(simulator: Simulator) -> Simulator:
    simulator.reset()
    return simulator


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'talks.db'}"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def error(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The error object: the last line of standard error."""
    assert done.stdout == ""
    found: dict[str, str] = json.loads(done.stderr.splitlines()[-1])["error"]
    assert set(found) == {"type", "message", "hint"}
    return found


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the app that does something, by its path."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, one in inner.items():
        yield from leaves(one, (*path, name))


def test_every_command_has_json_and_says_so_in_the_documents() -> None:
    import typer

    from pollux_like.cli.app import app

    page = (Path(__file__).parent.parent / "docs/command-line.md").read_text("utf-8")
    found = dict(leaves(typer.main.get_command(app)))
    assert {("chat",), ("local", "setup"), ("talks", "rotate"), ("serve", "environment")} <= set(found)
    for path, command in found.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options, path
        assert f"| `{' '.join(path)}` |" in page, path


def test_a_chat_is_lines_of_events_and_last_the_turn(sim: Simulator) -> None:
    environ = sim.environ()
    sim.reply(answer(think("Hm."), say("Hello\tyou."), finish="length"))
    done = run("chat", "--provider", "anthropic", "--model", "claude-opus-4-6", "--json", "Hi", **environ)
    first, *middle, turn = lines(done.stdout)
    assert first == {"type": "start", "provider": "anthropic", "model": "claude-opus-4-6"}
    assert {one["type"] for one in middle} == {"text_delta", "usage", "finish"}
    assert "".join(one["text"] for one in middle if one["type"] == "text_delta") == turn["text"] == "Hello\tyou."
    assert (turn["type"], turn["finish"]["status"]) == ("turn", "length")
    assert turn["usage"]["total_tokens"] > 0
    assert "continuation" not in turn
    assert "signature" not in done.stdout
    assert done.stderr == ""
    sim.reply(say("Hello."))
    asked = lines(run("chat", *MODEL, "--json", "--state", "Hi", **environ).stdout)[-1]
    assert asked["continuation"]["format"].startswith("pollux_like")


def test_a_chat_of_several_lines_has_a_turn_for_each_and_an_error_between(sim: Simulator) -> None:
    sim.fail(400, message="no")
    sim.reply(say("Better."))
    done = run("chat", *MODEL, "--json", stdin="one\ntwo\n", **sim.environ())
    assert [one["text"] for one in lines(done.stdout) if one["type"] == "turn"] == ["Better."]
    (said,) = lines(done.stderr)
    assert said["error"]["type"] == "APIError"


def test_an_input_without_an_answer_is_a_line_of_its_own(url: str, sim: Simulator) -> None:
    down = {**sim.environ(), "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    run("chat", *MODEL, "--store", url, "--talk", "t", "Lost", status=1, **down)
    sim.reply(say("Found."))
    sim.reply(say("Next."))
    done = run("chat", *MODEL, "--store", url, "--talk", "t", "--take-up", "--json", "Go on", **sim.environ())
    said = lines(done.stdout)
    assert [one["pending"]["content"] for one in said if one["type"] == "pending"] == ["Lost"]
    assert [one["text"] for one in said if one["type"] == "turn"] == ["Found.", "Next."]


def test_an_error_is_one_object_with_the_same_status(url: str, sim: Simulator) -> None:
    assert error(run("talks", "list", "--json", status=1))["type"] == "ConfigurationError"
    assert error(run("talks", "nothing", "--json", status=2))["type"] == "UsageError"
    assert (
        "--older-than" in error(run("talks", "prune", "--older-than", "soon", "--json", store=url, status=2))["message"]
    )
    talked(url)
    missing = error(run("talks", "show", "zz", "--json", store=url, status=1))
    assert missing["type"] == "UnknownConversationError"
    sim.fail(401, message="bad key sim-key")
    refused = run("chat", *MODEL, "--json", "Hi", status=1, **sim.environ())
    assert json.loads(refused.stderr)["error"]["type"] == "AuthenticationError"
    assert "sim-key" not in refused.stdout + refused.stderr


def test_a_word_after_two_dashes_is_no_option(url: str) -> None:
    talked(url)
    assert "no conversation '--json'" in run("talks", "show", "--store", url, "--", "--json", status=1).stderr


def test_wrong_usage_is_two_sentences_and_status_2() -> None:
    for arguments in (("nothing",), ("chat", "--nothing"), ("talks", "show"), ("demo", "too", "many"), ("--nothing",)):
        said = run(*arguments, status=2)
        assert said.stdout == ""
        assert re.fullmatch(r".+\.\nRun: pollux-like.* --help\.\n", said.stderr), said.stderr
    assert "Usage" in run(status=2).stdout


def test_no_match_and_damage_are_status_3_and_not_an_error(url: str, tmp_path: Path) -> None:
    talked(url)
    assert run("talks", "search", "nobody", store=url, status=3).stderr == ""
    with closing(sqlite3.connect(tmp_path / "talks.db")) as connection, connection:
        connection.execute("UPDATE pollux_like_turns SET state = CAST(state || ' ' AS BLOB) WHERE seq = 2")
    assert "1 problems" in run("talks", "verify", store=url, status=3).stdout


def test_a_closed_pipe_ends_the_command_without_a_word(url: str) -> None:
    with open_store(url) as store:
        for number in range(60):
            store.create(f"talk-{number}", scope="default", title="x" * 200)
    environment = {"PATH": os.environ["PATH"], "HOME": "/"}
    for command in (("talks", "list"), ("talks", "list", "--json"), ("talks", "export", "--all"), ("--help",)):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*COMMAND, *command, *(("--store", url) if command[0] == "talks" else ())],
            stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=environment,
        )  # fmt: skip
        os.close(writer)
        assert done.stderr == "", command
        assert done.returncode == 141, command


def test_output_that_cannot_be_written_is_an_error_and_no_traceback(url: str) -> None:
    talked(url)
    for command in (("list",), ("list", "--json"), ("export", "--all"), ("list", "--help")):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" > /dev/full', "sh", *COMMAND, "talks", *command, "--store", url],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1
        assert "the output cannot be written (No space left on device)" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        closed = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "talks", *command, "--store", url]
        assert subprocess.run(closed, capture_output=True, text=True, check=False, timeout=60).stderr == ""


def test_letters_that_the_terminal_does_not_have_are_shown_as_codes(url: str) -> None:
    with open_store(url) as store:
        store.create("a", scope="default", title="Größe 你")
    assert "Gr\\xf6\\xdfe \\u4f60" in run("talks", "list", store=url, PYTHONIOENCODING="ascii").stdout
    (said,) = lines(run("talks", "list", "--json", store=url, PYTHONIOENCODING="ascii").stdout)
    assert said["conversations"][0]["title"] == "Größe 你"


def test_input_that_is_no_text_is_an_error() -> None:
    done = subprocess.run(
        [*COMMAND, "chat", "--provider", "scripted", "--json"], input=b"\xff\n", capture_output=True, check=False,
        timeout=60, env={"PATH": os.environ["PATH"], "HOME": "/", "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["message"] == "standard input is no text in UTF-8"


def test_an_interrupt_is_status_130(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    for command in (("simulate", "--port", "0", "--json"), ("chat", "--provider", "scripted")):
        with subprocess.Popen(
            [*COMMAND, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            if command[0] == "simulate":
                assert json.loads(process.stdout.readline())["pid"] == process.pid
            else:
                assert "scripted" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert "Traceback" not in process.stderr.read()


def test_the_demo_in_json_tells_its_story_beside_the_object() -> None:
    done = run("demo", "--no-embedded", "--json")
    (said,) = lines(done.stdout)
    assert said["embedded"] is None
    assert [(one["provider"], one["killed"], one["requests"], one["signed"]) for one in said["loops"]] == [
        ("openai", ["call_2"], 3, 2), ("anthropic", ["call_2"], 3, 2),
    ]  # fmt: skip
    assert "killed" in done.stderr


def test_doctor_in_json_has_names_of_keys_and_no_key(sim: Simulator) -> None:
    (said,) = lines(run("doctor", "--no-online", "--json", **sim.environ()).stdout)
    found = {one["provider"]: one for one in said["providers"]}
    assert found["openai"]["key"] == "OPENAI_API_KEY"
    assert found["scripted"] == {
        "provider": "scripted", "packages": {}, "key": None, "key_needed": False, "endpoint": "memory:",
        "state": "ready",
    }  # fmt: skip
    assert "sim-key" not in json.dumps(said)


SERVED = '''
from pollux_like.environments import Environment, Split

class Silent(Environment):
    """Nothing to do."""

    def get_prompt(self):
        return "Say nothing."
'''


def test_a_service_says_in_json_where_it_listens(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(SERVED)
    commands = (("serve", "environment", "silent:Silent"), ("simulate",))
    for command in commands:
        with subprocess.Popen(
            [*COMMAND, *command, "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            line = process.stdout.readline()
            process.terminate()
            rest = process.stdout.read(), process.stderr.read()
        assert line, rest
        said = json.loads(line)
        assert said["pid"] == process.pid
        assert re.match(r"http://127\.0\.0\.1:[1-9]", said.get("url") or said["base_urls"]["openai"])
        assert rest[0] == ""
    taken = run("simulate", "--port", "99999", "--json", status=1)
    assert "port 99999" in error(taken)["message"]


def test_all_of_a_scope_is_exported_as_lines_and_the_damaged_are_named(url: str, tmp_path: Path) -> None:
    talked(url)
    with open_store(url) as store:
        store.fork("a", "b", scope="default", at=1)
        store.create("c", scope="tenant-7")
    whole = lines(run("talks", "export", "--all", store=url).stdout)
    assert [one["id"] for one in whole] == ["b", "a"]
    assert [lines(run("talks", "export", name, store=url).stdout)[0] for name in ("b", "a")] == whole
    with closing(sqlite3.connect(tmp_path / "talks.db")) as connection, connection:
        connection.execute("UPDATE pollux_like_turns SET state = CAST(state || ' ' AS BLOB) WHERE seq = 2")
    cut = run("talks", "export", "--all", "--json", store=url, status=1)
    assert [one["id"] for one in lines(cut.stdout)] == ["b"]
    (said,) = lines(cut.stderr)
    assert said["error"]["type"] == "StoreDamagedError"
    assert said["error"]["message"].startswith("a: ")
    for arguments in ((), ("a", "--all")):
        assert "an id or --all" in run("talks", "export", *arguments, store=url, status=1).stderr


def test_old_conversations_are_pruned_with_receipts(url: str, tmp_path: Path) -> None:
    talked(url)
    with open_store(url) as store:
        store.create("new", scope="default")
    with closing(sqlite3.connect(tmp_path / "talks.db")) as connection, connection:
        connection.execute("UPDATE pollux_like_conversations SET updated_at = updated_at - 100 * 86400 WHERE id = 'a'")
    assert "Erase 1 conversations" in run("talks", "prune", "--older-than", "90d", store=url, status=1).stderr
    assert json.loads(run("talks", "prune", "--older-than", "15w", "--yes", "--json", store=url).stdout) == {
        "receipts": []
    }
    (said,) = lines(run("talks", "prune", "--older-than", "90d", "--yes", "--json", store=url).stdout)
    assert [(one["id"], one["turns"], one["messages"]) for one in said["receipts"]] == [("a", 2, 4)]
    assert len(said["receipts"][0]["digests"]) == 2
    assert "none is so old" in run("talks", "prune", "--older-than", "90d", "--yes", store=url).stdout
    assert "Erased 0 turns" in run("talks", "prune", "--older-than", "0s", "--yes", store=url).stdout


def test_keys_are_wrapped_anew_and_the_old_one_can_go(url: str) -> None:
    old, new = ContinuationSealer.new_key(), ContinuationSealer.new_key()
    talked(url, sealer=ContinuationSealer([old]))
    both = f"{new},{old}"
    (said,) = lines(run("talks", "rotate", "--json", store=url, POLLUX_LIKE_STORE_KEYS=both).stdout)
    assert said["rewrapped"] == said["keys"] > 0
    again = run("talks", "rotate", store=url, POLLUX_LIKE_STORE_KEYS=both).stdout
    assert again == f"{said['keys']} keys, 0 of them wrapped anew.\n"
    assert "Sean" in run("talks", "show", "a", store=url, POLLUX_LIKE_STORE_KEYS=new).stdout
    assert "POLLUX_LIKE_STORE_KEYS" in run("talks", "rotate", store=url, status=1).stderr


def test_a_tab_stays_a_tab(url: str, sim: Simulator) -> None:
    sim.reply(say("a\tb\n\tc"))
    assert run("chat", *MODEL, "Hi", **sim.environ()).stdout == "a\tb\n\tc\n"
    sim.reply(call("f", {}, id="call_1"))
    assert run("chat", *MODEL, "Hi", **sim.environ()).stdout == "(tool_calls)\n"
