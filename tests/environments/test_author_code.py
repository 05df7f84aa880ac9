"""Code of an author that does what it should not: it ends its own call, and neither the server nor the wait for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from environment_support import GATES, events, opened
from pydantic import BaseModel

from pollux_like.environments import Environment, JSONObject, Limits, Server, TextBlock, ToolOutput, tool
from pollux_like.environments.problems import SHOWN
from pollux_like.errors import ConfigurationError


class Kind(BaseModel):
    kind: str


class Mute(Exception):
    def __str__(self) -> str:
        raise LookupError("nothing to say")


FAULTS: dict[str, Any] = {
    "exit": SystemExit, "interrupt": KeyboardInterrupt, "cancel": asyncio.CancelledError, "stop": StopIteration,
    "mute": Mute, "surrogate": lambda: RuntimeError("half \ud800 of it"), "long": lambda: RuntimeError("x" * 3_000_000),
}  # fmt: skip
SAID = {
    "exit": "RuntimeError: SystemExit was raised", "interrupt": "RuntimeError: KeyboardInterrupt was raised",
    "cancel": "RuntimeError: CancelledError was raised", "stop": "RuntimeError: ",
    "mute": "Mute, which cannot be written", "surrogate": "RuntimeError: half \ufffd of it", "long": "RuntimeError: xxx",
}  # fmt: skip


class Faulty(Environment):
    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{}]

    def setup(self) -> None:
        if "setup" in self.task_spec:
            raise FAULTS[self.task_spec["setup"]]()

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text="Go on.")]

    @tool
    def fails(self, args: Kind) -> ToolOutput:
        """In a thread."""
        raise FAULTS[args.kind]()

    @tool
    async def fails_on_the_loop(self, args: Kind) -> ToolOutput:
        """On the loop."""
        raise FAULTS[args.kind]()

    @tool
    async def stays(self) -> ToolOutput:
        """Does not let itself be cancelled."""
        while not GATES["stays"].is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                GATES["cancelled"].set()
        return ToolOutput(blocks=[])


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    """One server for all faults: each has to leave it alive."""
    with Server([Faulty]) as server, httpx2.Client(base_url=server.base_url, timeout=10) as client:
        yield client


@pytest.mark.parametrize("name", ["fails", "fails_on_the_loop"])
@pytest.mark.parametrize("kind", list(FAULTS))
def test_whatever_a_tool_raises_ends_its_call_alone(http: httpx2.Client, name: str, kind: str) -> None:
    headers = opened(http, f"{name}-{kind}", {"task_spec": {}})
    (_, _), (event, data) = events(http.post("/call", json={"name": name, "input": {"kind": kind}}, headers=headers))
    assert (event, data[: len(SAID[kind])]) == ("error", SAID[kind])
    assert len(data) <= SHOWN + 1
    assert http.get("/prompt", headers=headers).json()[0]["text"] == "Go on."


@pytest.mark.parametrize("kind", list(FAULTS))
def test_whatever_a_setup_raises_is_a_500_in_json(http: httpx2.Client, kind: str) -> None:
    headers = opened(http, f"setup-{kind}", {"task_spec": {"setup": kind}})
    answer = http.get("/prompt", headers=headers)
    assert (answer.status_code, answer.json()["detail"][: len(SAID[kind])]) == (500, SAID[kind])


def test_stop_leaves_behind_what_does_not_let_itself_be_cancelled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pollux_like.environments.server.STOP_S", 1.5)
    GATES["stays"], GATES["cancelled"] = threading.Event(), threading.Event()
    others = set(threading.enumerate())
    server = Server([Faulty], limits=Limits(drain_s=0.05)).start()
    (thread,) = set(threading.enumerate()) - others
    with httpx2.Client(base_url=server.base_url) as client:
        headers = opened(client, "stays", {"task_spec": {}})
        with client.stream("POST", "/call", json={"name": "stays", "input": {}}, headers=headers) as answer:
            next(answer.iter_raw())  # it runs
            server.stop()
    assert GATES["cancelled"].is_set()
    assert "does not end" in caplog.text
    assert thread.is_alive()
    GATES["stays"].set()
    thread.join(30)
    assert not thread.is_alive()


NEVER = """
import threading
import httpx2
from pollux_like.environments import Environment, Limits, Server, TextBlock, tool

class Hung(Environment):
    def get_prompt(self): return [TextBlock(text="x")]
    @tool
    def hang(self): threading.Event().wait()

server = Server([Hung], limits=Limits(drain_s=0.05)).start()
with httpx2.Client(base_url=server.base_url, headers={"X-Session-ID": "a"}) as http:
    http.post("/create", json={"task_spec": {}})
    with http.stream("POST", "/call", json={"name": "hang", "input": {}}) as answer:
        next(answer.iter_raw())
        server.stop()
print("stopped")
"""


def test_a_thread_that_never_ends_keeps_neither_the_server_nor_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", NEVER], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr


def test_a_server_that_was_stopped_starts_again_and_a_taken_port_is_an_error_of_ours() -> None:
    server = Server([Faulty])
    for _ in range(2):
        with server, httpx2.Client(base_url=server.base_url) as client:
            assert client.post("/tasks", json={"split": "train"}).json()["tasks"] == [{}]
            taken = int(server.base_url.rsplit(":", 1)[1])
            other = Server([Faulty])
            with pytest.raises(ConfigurationError, match=f"port {taken} of 127.0.0.1 cannot be had"):
                other.start(taken)
            other.start().stop()
