"""The cookbook: every recipe is run as a program of its own and held to its success check.

Those that are killed stand in test_cookbook_crashes.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from pollux_like_local.models import packaged_model

from pollux_like.testing import Scripted, answer, call

ROOT = Path(__file__).parent.parent
KILLED = -signal.SIGKILL
MAIN = runpy.run_path(str(ROOT / "cookbook/__main__.py"))
RECIPES: dict[str, Path] = MAIN["recipes"]()


def cookbook(folder: Path, *arguments: str, status: int = 0, **variables: str) -> str:
    """Run the cookbook's command in a folder of its own; returns what it printed, on both channels where it failed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-m", "cookbook", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout + (done.stderr if status > 0 else "")


def run(folder: Path, *arguments: str, status: int = 0, **variables: str) -> list[str]:
    """Run a recipe; returns the lines that it printed."""
    return cookbook(folder, "run", *arguments, status=status, **variables).splitlines()


def test_every_recipe_says_what_it_is_for_and_is_short() -> None:
    assert len(RECIPES) >= 13
    for name, file in RECIPES.items():
        recipe = MAIN["read"](file)  # raises where a section is missing
        assert recipe.run.startswith(f"python -m cookbook run {name}")
        assert all(len(text.split()) > 3 for text in (recipe.title, recipe.problem, recipe.success_check)), name
        assert len(recipe.problem) <= 120, name
        assert len(file.read_text("utf-8").splitlines()) <= 150, name


def test_every_recipe_is_run_here() -> None:
    tests = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_cookbook*.py"))
    assert [name for name in RECIPES if f'"{name}"' not in tests] == []


def test_the_list_has_a_line_for_each_recipe(tmp_path: Path) -> None:
    lines = cookbook(tmp_path, "list").splitlines()
    assert [line.split()[0] for line in lines] == list(RECIPES)
    listed = json.loads(cookbook(tmp_path, "list", "--json"))
    assert [entry["name"] for entry in listed] == list(RECIPES)
    assert all((ROOT / entry["file"]).is_file() for entry in listed)
    assert all(entry["problem"] in line for entry, line in zip(listed, lines, strict=True))


@pytest.mark.parametrize(
    "arguments",
    [["run", "no_such"], ["run", "../setup"], ["run", "__main__"], ["run"], [], ["bake"], ["list", "--yaml"]],
)
def test_a_name_that_does_not_exist_is_two_sentences_and_status_2(arguments: list[str], tmp_path: Path) -> None:
    said = cookbook(tmp_path, *arguments, status=2)
    assert len(said.splitlines()) == 1
    assert re.match(r"[A-Z].*[.] [A-Z]", said)
    assert "Traceback" not in said


def test_a_recipe_is_a_script_too(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "cookbook/compact_history.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == run(tmp_path, "compact_history")


def test_the_chat_goes_on_from_its_file(tmp_path: Path) -> None:
    first = run(tmp_path, "chat_loop", "I am Sean.")
    second = run(tmp_path, "chat_loop", "Who am I?")
    assert first == ["I was sent 1 message, and the first says: I am Sean."]
    assert second == ["I was sent 3 messages, and the first says: I am Sean."]
    assert [file.name for file in tmp_path.iterdir()] == ["chat.json"]


def test_a_streamed_chat_shows_reasoning_answer_and_tokens(tmp_path: Path) -> None:
    said = run(tmp_path, "stream_in_terminal", "I am Sean.", "Who am I?")
    assert said[:2] == ["(They want a number.)", "I was sent 1 message."]
    assert said[3:5] == ["(They want a number.)", "I was sent 3 messages."]
    assert re.fullmatch(r"\[stop, \d+ tokens\]", said[5])


INTERRUPTED = """
import runpy
recipe = runpy.run_path({recipe!r})
from pollux_like import Config
from pollux_like.simulator import Simulator
from pollux_like.testing import say, think
with Simulator() as sim:
    sim.reply(think("Hm."), say("First."))
    sim.fault(think("Hm."), say("Slow and never whole."), delay_s=0.5)
    sim.reply(think("Hm."), say("Third."))
    config = Config("anthropic", "claude-sonnet-4-5", api_key="sim-key", base_url=sim.base_url("anthropic"))
    recipe["chat"](["One", "Two", "Three"], config)
    print([message["role"] for message in sim.requests[-1].body["messages"]])
"""


def test_ctrl_c_leaves_an_answer_and_not_the_chat() -> None:
    code = INTERRUPTED.format(recipe=str(RECIPES["stream_in_terminal"]))
    with subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while said.count("(") < 2:  # the second answer has begun
            said += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()
    assert process.returncode == 0
    assert "left; the chat goes on" in said
    assert "whole" not in said
    assert said.splitlines()[-1] == "['user', 'assistant', 'user']"


@pytest.mark.parametrize(("answer", "booked", "said"), [("--yes", "LX 2", "Booked LX 2."), ("--no", "nothing", "no.")])
def test_the_agent_books_what_a_person_approves(tmp_path: Path, answer: str, booked: str, said: str) -> None:
    lines = run(tmp_path, "agent_loop", answer)
    assert lines[0] == f"Asked: LX 0, LX 1, LX 2. Booked: {booked}."
    assert said in lines[1]


def test_the_agent_takes_an_ended_input_for_a_no(tmp_path: Path) -> None:
    command = [sys.executable, str(RECIPES["agent_loop"])]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert "Run book with" in done.stdout
    assert "Booked: nothing." in done.stdout


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([call("price", '{"flight": "LX')], "no answer after 8 turns"),
        ([call("no_such_tool")], "no answer after 8 turns"),
        ([call("no_such_tool") for _ in range(21)], "stopped after 21 calls"),
    ],
)
def test_the_agent_stops_at_its_limits_whatever_the_model_asks_for(wanted: list[Any], said: str) -> None:
    module = loaded("agent_loop")
    model = Scripted(*[lambda request: answer(*wanted)] * 20)
    with pytest.raises(RuntimeError, match=said):
        anyio.run(module.agent, "Go on.", model.config, lambda _: True)
    told = [message["content"] for message in model.requests[-1].messages if message["role"] == "tool"]
    assert all("There is no tool" in text or "arguments are unusable" in text for text in told)


def test_history_is_cut_at_a_boundary_only(tmp_path: Path) -> None:
    refused, cut, after = run(tmp_path, "compact_history")
    assert refused.startswith("Not now: tool calls")
    assert cut.startswith("From 10 messages to 7: ['user', 'user', 'assistant', 'tool', 'assistant', 'user',")
    assert after == "Sent 8: the first is 'Summary of what came before: They spoke of the weather.'."


def test_the_switch_of_providers_names_its_losses(tmp_path: Path) -> None:
    said = run(tmp_path, "switch_provider")
    losses = [line for line in said if line.startswith("Lost")]
    assert losses == [f"Lost: turn {number}: 1 item(s) of type reasoning" for number in (1, 2)]
    assert "anthropic: Still at the hub." in said
    assert "It was sent: ['user', 'assistant', 'user', 'assistant', 'user']" in said
    assert said[-1] == "openai: As I said, at the hub."


def test_a_structured_answer_comes_after_the_tools(tmp_path: Path) -> None:
    said = run(tmp_path, "structured_after_tools")
    assert said[0] == "tool_calls, structured: None"
    assert said[1].startswith("Does not fit:")
    assert said[2:] == ["Report(city='Oslo', celsius=-3.0, advice='Take a coat.')", "The tool ran for: Oslo"]


def test_a_document_stays_and_a_picture_goes(tmp_path: Path) -> None:
    first, saved, second = run(tmp_path, "pdf_and_images")
    assert first.endswith("['document', 'image', 'text']")
    assert saved.endswith("False")
    assert second == "One page. ['document', 'text', 'text'] ['media_dropped']"


def test_one_task_is_played_with_three_providers(tmp_path: Path) -> None:
    said = run(tmp_path, "served_task")
    members = {"openai": "input", "anthropic": "messages", "gemini": "contents"}
    assert said[:3] == [f"{name}: answered, reward 1.1, sent as {member}" for name, member in members.items()]
    assert said[3] == "A wrong answer: reward 0.1"


def test_a_support_chat_gives_values_and_guards_them(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="no embedded runtime here; run: pollux-like local setup")
    if packaged_model() is None:
        pytest.skip("no embedded model here; run: pollux-like local setup")
    said = run(tmp_path, "typed_support_chat")
    honest, forged = said[: len(said) // 2], said[len(said) // 2 :]
    for lines in (honest, forged):
        assert "'3201456789012345', corrected, accept; message 0, 54-70; message 2, 27-43" in lines[1]
        assert "email: None, missing" in lines[2]
        assert "status: 'pending'" in lines[3]
    assert "review" in forged[4]
    assert "guard:forged_role" in forged[4]
    assert not any("guard" in line for line in honest)


def test_an_agent_is_tested_against_the_simulator(tmp_path: Path) -> None:
    said = run(tmp_path, "agent_under_test")
    assert len(said) == 4
    assert all(line.endswith(": passed") for line in said)


def test_the_tests_of_the_agent_run_in_pytest_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(RECIPES["agent_under_test"])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_the_program_with_a_sealed_cookie_serves() -> None:
    import httpx2

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(RECIPES["sealed_cookie"]), str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "running on" not in process.stderr.readline():
            assert process.poll() is None
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers={"x-user": "sean"}) as client:
            assert client.post("/say", content="I am Sean.").json()["text"].startswith("Message 1;")
            assert client.post("/say", content="Who am I?").json()["text"] == "Message 3; the first was: I am Sean."
        process.send_signal(signal.SIGINT)
        process.stderr.read()


def test_a_sealed_cookie_carries_the_chat() -> None:
    from starlette.testclient import TestClient

    from pollux_like import ContinuationSealer

    module = loaded("sealed_cookie")
    old, new = os.urandom(32), os.urandom(32)
    sean, eve = {"x-user": "sean"}, {"x-user": "eve"}
    with TestClient(module.application(ContinuationSealer([old]))) as client:
        assert client.post("/say", content="I am Sean.", headers=sean).json()["text"].startswith("Message 1;")
        second = client.post("/say", content="Who am I?", headers=sean)
        assert second.json() == {"text": "Message 3; the first was: I am Sean."}
        token = client.cookies["talk"]
        assert "Sean" not in token
        cookie = second.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        for headers, value in ((eve, token), (sean, token[:-2] + "AA"), (sean, "x"), (sean, token[:40])):
            client.cookies.set("talk", value)
            refused = client.post("/say", content="Hi", headers=headers)
            assert refused.status_code == 400
            assert 'talk=""' in refused.headers["set-cookie"]
            client.cookies.clear()
        assert client.post("/say", content=" ", headers=sean).status_code == 400
    with TestClient(module.application(ContinuationSealer([new, old]))) as client:  # the keys were rotated
        client.cookies.set("talk", token)
        assert client.post("/say", content="Again", headers=sean).json()["text"].startswith("Message 5;")
        client.cookies.clear()
        full = client.post("/say", content="x" * 5_000, headers=sean)
        assert "full" in full.json()["error"]
        assert "set-cookie" not in full.headers


def loaded(name: str) -> Any:
    """A recipe as a module."""
    spec = importlib.util.spec_from_file_location(name, RECIPES[name])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
