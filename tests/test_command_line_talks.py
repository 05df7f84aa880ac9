"""`pollux-like talks` and `pollux-like chat --store`, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pollux_like import APIError, Config, ContinuationSealer, Environment, Input
from pollux_like.simulator import Simulator
from pollux_like.store.sync import open_store
from pollux_like.testing import Scripted, answer, call, say

COMMAND = [sys.executable, "-c", "from pollux_like.cli import main; main()"]
MODEL = ("--provider", "openai", "--model", "gpt-5-nano")


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


def run(
    *arguments: str, store: str | None = None, status: int = 0, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "COLUMNS": "200", **more}
    if store is not None:
        env["POLLUX_LIKE_STORE"] = store
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, input=stdin, env=env, check=False, timeout=60
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def talked(url: str, *, scope: str = "default", sealer: ContinuationSealer | None = None) -> None:
    """Two turns, the second of which waits for a tool."""
    with open_store(url, sealer=sealer) as store:
        conversation = store.create("a", scope=scope, title="First [talk]")
        model = Scripted([say("Hello \x1b[31mred")], [call("book", {"seat": 12}, id="call_1")])
        conversation.interact(Environment(), Input("I am [b]Sean[/b]"), model.config)
        conversation.interact(Environment(), Input("Book seat 12"), model.config)


def test_what_is_listed_shown_and_found(url: str) -> None:
    talked(url)
    listed = run("talks", "list", store=url).stdout
    assert "First [talk]" in listed
    assert "2 turns" in listed
    assert [one["id"] for one in json.loads(run("talks", "list", "--json", store=url).stdout)["conversations"]] == ["a"]
    shown = run("talks", "show", "a", "--store", url).stdout
    assert "I am [b]Sean[/b]" in shown
    assert "\x1b" not in shown  # text of others does not steer the terminal
    assert "waits for the result of book call_1" in shown
    parsed = json.loads(run("talks", "show", "a", "--json", store=url).stdout)
    assert parsed["transcript"][0]["messages"][1]["content"] == "Hello \x1b[31mred"
    assert parsed["pending_tool_calls"][0]["id"] == "call_1"
    assert "Book seat 12" in run("talks", "search", "SEAT 12", store=url).stdout
    assert json.loads(run("talks", "search", "nobody", "--json", store=url, status=3).stdout) == {"matches": []}
    exported = json.loads(run("talks", "export", "a", store=url).stdout)
    assert len(exported["continuation"]["turns"]) == 2


def test_a_scope_sees_its_own(url: str) -> None:
    talked(url, scope="tenant-7")
    assert run("talks", "list", store=url).stdout == ""
    assert "a  2 turns" in run("talks", "list", "--scope", "tenant-7", store=url).stdout
    assert "no conversation 'a'" in run("talks", "show", "a", store=url, status=1).stderr


def test_forks_and_deletions(url: str) -> None:
    talked(url)
    assert run("talks", "fork", "a", "b", "--at", "1", store=url).stdout == "b\n"
    assert json.loads(run("talks", "fork", "a", "--json", store=url).stdout)["turns"] == 2
    assert "already" in run("talks", "fork", "a", "b", store=url, status=1).stderr
    assert "--yes" in run("talks", "delete", "a", store=url, status=1).stderr
    receipt = json.loads(run("talks", "delete", "a", "--yes", "--json", store=url).stdout)
    assert (receipt["turns"], receipt["kept"]) == (0, 2)
    assert "Erased 1 turns" in run("talks", "delete", json.loads(run("talks", "list", "--json", store=url).stdout)["conversations"][0]["id"],
                                   "--yes", store=url).stdout  # fmt: skip


def test_a_verification_that_finds_something_fails(url: str, tmp_path: Path) -> None:
    import sqlite3

    talked(url)
    assert "1 conversations, 2 turns, 0 problems" in run("talks", "verify", store=url).stdout
    connection = sqlite3.connect(tmp_path / "talks.db")
    with connection:
        connection.execute("UPDATE pollux_like_turns SET state = CAST(state || ' ' AS BLOB) WHERE seq = 2")
    connection.close()
    found = json.loads(run("talks", "verify", "a", "--json", store=url, status=3).stdout)
    assert found["problems"][0]["id"] == "a"
    assert run("talks", "show", "a", store=url, status=1).stdout == ""


def test_no_store_is_an_error_that_says_how_to_name_one() -> None:
    assert "POLLUX_LIKE_STORE" in run("talks", "list", status=1).stderr
    assert "known" in run("talks", "list", "--store", "mysql://x", status=1).stderr


def test_a_sealed_store_is_opened_by_the_keys_in_the_environment(url: str) -> None:
    old, new = ContinuationSealer.new_key(), ContinuationSealer.new_key()
    talked(url, sealer=ContinuationSealer([old]))
    assert "Sean" in run("talks", "show", "a", store=url, POLLUX_LIKE_STORE_KEYS=f"{new},{old}").stdout
    for keys in ({}, {"POLLUX_LIKE_STORE_KEYS": new}):
        failed = run("talks", "show", "a", store=url, status=1, **keys)
        assert "sealed" in failed.stderr
        assert new not in failed.stderr
    assert "sealed" in run("talks", "search", "Sean", store=url, status=1, POLLUX_LIKE_STORE_KEYS=old).stderr
    receipt = json.loads(run("talks", "delete", "a", "--yes", "--json", store=url, POLLUX_LIKE_STORE_KEYS=old).stdout)
    assert len(receipt["keys"]) == 2


def test_a_file_that_is_not_there_is_said_and_not_made(url: str, tmp_path: Path) -> None:
    for command in (("list",), ("show", "a"), ("search", "x"), ("fork", "a"), ("export", "a"), ("verify",)):
        assert "there is no store" in run("talks", *command, store=url, status=1).stderr
    assert "there is no store" in run("talks", "delete", "a", "--yes", store=url, status=1).stderr
    assert list(tmp_path.iterdir()) == []


STEERING = "\x1b]0;owned\x07 \x1b[2J \x9b31m \u202e :smile: [b]C:\\"
SEEN = "\\x1b]0;owned\\x07 \\x1b[2J \\x9b31m \\u202e :smile: [b]C:\\"


def test_what_the_model_says_is_shown_to_the_letter_and_steers_nothing(url: str, sim: Simulator) -> None:
    sim.reply(say(STEERING))
    assert run("chat", *MODEL, "--store", url, "--talk", "t", "Hi", **sim.environ()).stdout == f"{SEEN}\n"
    assert SEEN in run("talks", "show", "t", store=url).stdout
    assert SEEN in run("talks", "search", "owned", store=url).stdout
    with open_store(url) as store:
        conversation = store.load("t", scope="default")
        down = Config("openai", "gpt-5-nano", base_url="http://127.0.0.1:9", max_attempts=1, api_key="sim-key")
        with pytest.raises(APIError):
            conversation.interact(Environment(), Input(STEERING), down)
    sim.reply(say(STEERING))
    sim.reply(say("Ok."))
    done = run("chat", *MODEL, "--talk", "t", "--take-up", "Next", store=url, **sim.environ())
    assert SEEN in done.stderr
    assert done.stdout == f"{SEEN}\nOk.\n"
    assert "\x1b" not in done.stdout + done.stderr
    sim.reply(say(STEERING))
    assert run("chat", *MODEL, "Hi", **sim.environ()).stdout == f"{SEEN}\n"


def test_letters_of_every_script_are_shown_as_they_are(url: str, sim: Simulator) -> None:
    text = "Caf\u00e9\u00a0! \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f4bb x\n  y"
    sim.reply(say(text))
    assert run("chat", *MODEL, "--store", url, "--talk", "t", "Hi", **sim.environ()).stdout == f"{text}\n"


def test_a_paused_turn_goes_on_before_the_next_line(url: str) -> None:
    with open_store(url) as store:
        conversation = store.create("t", scope="default")
        conversation.interact(Environment(), Input("Hi"), Scripted(answer(say("So far"), finish="pause")).config)
    failed = run("chat", "--talk", "t", "Next", store=url, status=1)
    assert "provider scripted has no script" in failed.stderr  # it was asked to go on, and has none


def test_a_chat_lives_in_the_store(url: str, sim: Simulator) -> None:
    sim.reply(say("Hello [b]you[/b]."))
    first = run("chat", *MODEL, "--store", url, "--talk", "t", "I am Sean.", **sim.environ())
    assert first.stdout.strip() == "Hello [b]you[/b]."
    sim.reply(say("You are Sean."))
    sim.reply(say("Bye."))
    second = run("chat", "--talk", "t", store=url, stdin="Who am I?\n\nBye\n", **sim.environ())
    assert second.stdout.split("\n")[:2] == ["You are Sean.", "Bye."]
    assert [len(request.body["input"]) for request in sim.requests] == [1, 3, 5]
    assert json.loads(run("talks", "list", "--json", store=url).stdout)["conversations"][0]["turns"] == 3
    assert "go together" in run("chat", "--store", url, "Hi", status=1, **sim.environ()).stderr


@pytest.mark.parametrize(("flag", "left", "said"), [("--take-up", 0, "Yes. Ok."), ("--give-up", 1, "Yes.")])
def test_an_input_without_an_answer_is_taken_up_or_given_up(
    url: str, sim: Simulator, flag: str, left: int, said: str
) -> None:
    down = "http://127.0.0.1:9"
    run("chat", *MODEL, "--store", url, "--talk", "t", "Lost", status=1,
        **{**sim.environ(), "OPENAI_BASE_URL": down})  # fmt: skip
    assert "pending" in run("talks", "list", store=url).stdout
    asked = run("chat", *MODEL, "--talk", "t", "Next", store=url, status=1, **sim.environ())
    assert "--take-up" in asked.stderr
    assert "Lost" in asked.stderr
    sim.reply(say("Yes."))
    sim.reply(say("Ok."))
    done = run("chat", *MODEL, "--talk", "t", flag, "Next", store=url, **sim.environ())
    assert " ".join(done.stdout.split()) == said
    assert sim.left == left
    shown = json.loads(run("talks", "show", "t", "--json", store=url).stdout)
    contents = [turn["messages"][0]["content"] for turn in shown["transcript"]]
    assert contents == (["Lost", "Next"] if flag == "--take-up" else ["Next"])
    assert shown["pending"] is None


def test_an_input_of_another_program_is_taken_up_too(url: str, sim: Simulator) -> None:
    with open_store(url) as store:
        conversation = store.create("t", scope="default")
        down = Config("openai", "gpt-5-nano", base_url="http://127.0.0.1:9", max_attempts=1, api_key="sim-key")
        with pytest.raises(APIError):
            conversation.interact(Environment(), Input("Lost"), down)
    sim.reply(say("Found."))
    sim.reply(say("Next."))
    done = run("chat", *MODEL, "--talk", "t", "--take-up", "Go on", store=url, **sim.environ())
    assert done.stdout.split() == ["Found.", "Next."]
