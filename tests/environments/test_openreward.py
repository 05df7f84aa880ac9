"""The real OpenReward packages at the other end: its client on our server, our client on its servers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from environment_support import INSTANCES, Cutter, Harbour

from pollux_like.environments import EnvironmentClient, Server
from pollux_like.errors import ToolFailedError, ToolRefusedError

from .conftest import QUICK

HERE = Path(__file__).parent
NEW, OLD = "0.1.167", "0.1.150"
AWKWARD = (
    " " * 9000
    + "".join(f"\n  line {n}: \t\u3000\u00a0\u0085\u2028\u00e9\U0001f600 \\u0020 \\" for n in range(600))
    + "  "
)
"""Blanks of every kind at the borders of every piece."""


def environ() -> dict[str, str]:
    """Of the other Python: no account, no look-up of new versions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENREWARD")}
    return {**kept, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}


def played(python: Path, base_url: str) -> dict[str, Any]:
    """What the real client saw."""
    command = [str(python), str(HERE / "openreward_client.py"), base_url]
    done = subprocess.run(
        command, input=json.dumps(AWKWARD), capture_output=True, text=True, env=environ(), timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_real_client_plays_episodes_on_our_server(openreward: Callable[[str], Path], server: Server) -> None:
    said = played(openreward(NEW), server.base_url)
    assert (said["splits"], said["number"], said["id"]) == (["train", "test", "odd"], 3, "train-0")
    assert said["messages"] == [
        ["system", ["text"]], ["user", ["text"]], ["assistant", ["reasoning", "tool_call"]],
        ["user", ["tool_result", "text"]],
    ]  # fmt: skip
    with EnvironmentClient(server.base_url) as environment, environment.session(split="train", index=0) as ours:
        for form in ("openai", "openrouter", "anthropic"):
            assert said[form] == ours.get_messages(form)
        assert said["prompt"] == [getattr(block, "text", None) for block in ours.get_prompt()]
        assert said["tools"] == [spec.name for spec in ours.list_tools()]
    assert said["board"] == {
        "texts": ["pier 4: 10 min late"], "reward": 0.25, "finished": False, "metadata": None
    }  # fmt: skip
    assert said["echo"]["texts"] == [AWKWARD]
    assert said["refusals"] == ["not_found", "input_validation", "not_found"]
    assert said["scores"] == [2.0]
    assert said["terminal"] == "text"
    assert said["answer"] == {"texts": [], "reward": 1.0, "finished": True, "metadata": None}
    assert said["after"] == "episode_finished"
    assert "RuntimeError: a storm" in said["failed"]
    assert said["sail"] == {"texts": ["sailed"], "reward": 1.0, "finished": True, "metadata": None}
    assert server.open_sessions == 0


def test_the_real_client_takes_up_a_stream_that_was_cut(openreward: Callable[[str], Path]) -> None:
    left = [3]

    def after_the_task_id(request: bytes, data: bytes) -> int | None:
        at = data.find(b"event: task_id")
        end = data.find(b"\r\n\r\n", at)
        if b"/call " not in request or at < 0 or not left[0]:
            return None
        left[0] -= 1
        return end + 4

    with Server([Harbour]) as own, Cutter(int(own.base_url.rsplit(":", 1)[1]), after_the_task_id) as way:
        said = played(openreward(NEW), way.base_url)
        assert way.cuts == 3
    assert said["echo"]["texts"] == [AWKWARD]
    assert said["board"]["reward"] == 0.25
    ran = [entry for instance in INSTANCES for entry in instance.log]
    assert ran.count("echo") == 1
    assert ran.count("board 4") == 1


@pytest.fixture(params=[NEW, OLD])
def theirs(request: pytest.FixtureRequest, openreward: Callable[[str], Path]) -> Iterator[tuple[str, str]]:
    """Version and address of a real server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(openreward(request.param)), str(HERE / "openreward_server.py"), str(port)]
    process = subprocess.Popen(command, env=environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    address = f"http://127.0.0.1:{port}"
    try:
        with httpx2.Client(transport=httpx2.HTTPTransport(retries=0)) as client:
            while True:
                assert process.poll() is None, process.communicate()[0][-3000:]
                try:
                    client.get(f"{address}/health")
                    break
                except httpx2.TransportError:
                    try:
                        process.wait(0.05)
                    except subprocess.TimeoutExpired:
                        continue
        yield request.param, address
    finally:
        process.kill()
        process.communicate()


def test_our_client_plays_an_episode_on_a_real_server(theirs: tuple[str, str]) -> None:
    version, address = theirs
    with EnvironmentClient(address, patience=QUICK) as environment:
        assert environment.list_splits() == ["train"]
        assert environment.num_tasks("train") == 2
        task = environment.get_task("train", -1)
        assert task["id"] == "harbour-2"
        assert [one["id"] for one in environment.get_task_range("train", 0, 1)] == ["harbour-1"]
        with environment.session(task=task, secrets={"pass": "12345"}) as session:
            messages = session.get_messages()
            if version == OLD:
                assert [(m.role, len(m.blocks)) for m in messages] == [("user", 2)]
                assert session.get_messages("openai")[0]["content"][1]["text"] == "  Say so."
            else:
                assert [m.role for m in messages] == ["system", "user", "assistant", "user"]
                assert session.get_messages("anthropic")["system"] == "You work at the harbour."
            assert [spec.name for spec in session.list_tools()] == ["board", "echo", "sail", "secret", "storm"]
            assert session.call_tool("board", {"pier": 4}).reward == 0.25
            assert getattr(session.call_tool("secret").blocks[0], "text", None) == "5"
            assert getattr(session.call_tool("echo", {"text": AWKWARD}).blocks[0], "text", None) == AWKWARD
            with pytest.raises(ToolRefusedError) as refused:
                session.call_tool("nothing")
            assert refused.value.reason in ("not_found", None)
            with pytest.raises(ToolFailedError, match="a storm"):
                session.call_tool("storm")
            assert session.call_tool("sail").finished
        if version == NEW:
            with environment.session(task=task) as session:
                assert session.call_terminal_tool("at 10").reward == 1.0
