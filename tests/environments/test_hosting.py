"""Classes on a server: their tasks, the limits they live within, and what is refused when the server is built."""

from __future__ import annotations

import socket
import threading
from typing import Any

import httpx2
import pytest
from environment_support import GATES, INSTANCES, Harbour, Prompted, called, events, opened
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount

from pollux_like.environments import (
    Environment,
    JSONObject,
    Limits,
    Message,
    Server,
    TextBlock,
    ToolOutput,
    terminal,
    tool,
)
from pollux_like.environments.serving import Serving
from pollux_like.errors import ConfigurationError


def test_environments_do_not_inherit_the_tasks_of_their_parents() -> None:
    class Child(Harbour):
        @classmethod
        def list_splits(cls) -> list[str]:
            return ["test"]

        @classmethod
        def list_tasks(cls, split: str) -> list[JSONObject]:
            return [{"id": "child"}]

    with Server([Harbour, Child]) as server, httpx2.Client(base_url=server.base_url) as http:
        assert len(http.post("/harbour/tasks", json={"split": "test"}).json()["tasks"]) == 3
        assert http.post("/child/tasks", json={"split": "test"}).json()["tasks"] == [{"id": "child"}]
        assert http.get("/child/splits").json() == [{"name": "test", "type": "test"}]


def test_splits_too_large_to_list() -> None:
    class Large(Prompted):
        @classmethod
        def num_tasks(cls, split: str) -> int:
            return 10**9

        @classmethod
        def get_task(cls, split: str, index: int) -> JSONObject:
            return {"n": index}

    with Server([Large]) as server, httpx2.Client(base_url=server.base_url) as http:
        assert http.post("/task", json={"split": "train", "index": -1}).json()["task"] == {"n": 10**9 - 1}
        found = http.post("/task_range", json={"split": "train", "start": 5, "stop": 7}).json()
        assert found["tasks"] == [{"n": 5}, {"n": 6}]


def test_a_token_is_asked_for_everywhere_but_health() -> None:
    with Server([Harbour], token="s3cret") as server, httpx2.Client(base_url=server.base_url) as http:
        assert http.get("/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer no"}, {"X-API-Key": "s3cre"}, {"Authorization": "Basic s3cret"}):
            assert http.get("/splits", headers=headers).status_code == 401
        for headers in ({"Authorization": "Bearer s3cret"}, {"X-API-Key": "s3cret"}):
            assert http.get("/splits", headers=headers).status_code == 200


def test_limits_have_answers() -> None:
    limits = Limits(body=200, sessions=1, setup_s=0.05, calls=1, tool_s=0.2)

    class Slow(Harbour):
        def setup(self) -> None:
            GATES["setup"].wait()

    GATES["setup"], GATES["d"] = threading.Event(), threading.Event()
    spec: dict[str, Any] = {"task_spec": {"conversation": []}}
    with Server([Slow], limits=limits) as server, httpx2.Client(base_url=server.base_url) as http:
        assert http.post("/create", content=b" " * 201, headers={"X-Session-ID": "a"}).status_code == 413
        headers = opened(http, "a", spec)
        full = http.post("/create", json=spec, headers={"X-Session-ID": "b"})
        assert (full.status_code, full.headers["retry-after"]) == (429, "2")
        starting = http.get("/messages", headers=headers)
        assert (starting.status_code, starting.headers["x-backend-state"]) == (503, "starting")
        GATES["setup"].set()
        assert http.get("/messages", headers=headers).json() == []
        found = events(http.post("/call", json={"name": "wait", "input": {"text": "d"}}, headers=headers))
        assert found[-1] == ("error", "The tool took longer than 0.2 seconds.")
        GATES["d"].set()


def test_a_call_id_runs_no_tool_again_when_its_result_is_forgotten() -> None:
    with Server([Harbour], limits=Limits(result_s=0.001)) as server, httpx2.Client(base_url=server.base_url) as http:
        headers = {**opened(http, "forgetful"), "X-Call-ID": "one"}
        body = {"name": "board", "input": {"pier": 4}}
        while events(http.post("/call", json=body, headers=headers)) != [("error", "unknown task_id")]:
            pass
        assert INSTANCES[-1].log.count("board 4") == 1
        long = {**headers, "X-Call-ID": "x" * 257}
        assert http.post("/call", json=body, headers=long).status_code == 400


def test_a_connection_that_brings_no_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux_like.environments.serving.HEAD_S", 0.05)
    with Server([Harbour]) as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        for sent in (b"", b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: "):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
                raw.sendall(sent)
                assert raw.recv(100) == b""


def test_an_infinite_number_in_a_task_is_refused() -> None:
    with Server([Harbour]) as server, httpx2.Client(base_url=server.base_url) as http:
        for number in (b"1e999", b"-1e999", b"NaN"):
            body = b'{"task_spec": {"conversation": [], "a": ' + number + b"}}"
            assert http.post("/create", content=body, headers={"X-Session-ID": "odd"}).status_code == 422
        assert server.open_sessions == 0


def test_an_idle_session_is_deleted() -> None:
    with Server([Harbour], limits=Limits(idle_s=0.05)) as server, httpx2.Client(base_url=server.base_url) as http:
        opened(http, "idle")
        while server.open_sessions:
            http.get("/health")
        while "teardown" not in INSTANCES[-1].log:
            http.get("/health")
        assert http.post("/ping", headers={"X-Session-ID": "idle"}).status_code == 404


def test_stopping_the_server_tears_down_what_is_open() -> None:
    with Server([Harbour]) as server, httpx2.Client(base_url=server.base_url) as http:
        opened(http, "left")
    assert INSTANCES[-1].log == ["setup", "teardown"]


def test_a_server_inside_another_application() -> None:
    serving = Serving(Starlette(routes=[Mount("/envs", app=Server([Harbour]))]), "127.0.0.1", 0)
    serving.start()
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{serving.port}/envs") as http:
            headers = opened(http, "mounted")
            assert called(http, headers, "board", pier=2)["output"]["reward"] == 0.25
            assert http.post("/delete", headers=headers).status_code == 200
    finally:
        serving.stop(10)


class Two(BaseModel):
    a: str
    b: str


def test_classes_that_cannot_be_served_are_refused_when_the_server_is_built() -> None:
    class Silent(Environment):
        pass

    class Loose(Prompted):
        @tool
        def loose(self, a: str) -> ToolOutput:
            return ToolOutput(blocks=[])

    class Wide(Prompted):
        @terminal
        @tool
        def wide(self, args: Two) -> ToolOutput:
            return ToolOutput(blocks=[])

    class HARBOUR(Harbour):
        pass

    for given, said in (
        ([], "no environments"), ([Silent], "neither get_messages nor get_prompt"), ([Loose], "one pydantic model"),
        ([Wide], "2 fields"), ([Harbour, HARBOUR], "one name"), ([Harbour({})], "no environment class"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=said):
            Server(given)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="concurrent and exclusive"):
        tool(concurrent=True, exclusive=True)


def test_async_methods_are_awaited() -> None:
    class Later(Environment):
        async def get_messages(self) -> list[Message]:
            return [Message(role="user", blocks=[TextBlock(text="later")])]

        def get_prompt(self) -> Any:
            return super().get_prompt()

    with Server([Later]) as server, httpx2.Client(base_url=server.base_url) as http:
        headers = opened(http, "later", {"task_spec": {}})
        assert http.get("/messages", headers=headers).json()[0]["blocks"][0]["text"] == "later"
        assert http.get("/prompt", headers=headers).json()[0]["text"] == "later"


def test_what_an_instance_does_to_its_task_reaches_no_other() -> None:
    class Careless(Prompted):
        @classmethod
        def list_tasks(cls, split: str) -> list[JSONObject]:
            return [{"left": [1, 2]}]

        def get_prompt(self) -> list[TextBlock]:
            return [TextBlock(text=str(self.task_spec["left"].pop()))]

    with Server([Careless]) as server, httpx2.Client(base_url=server.base_url) as http:
        for sid in ("a", "b"):
            headers = opened(http, sid, {"split": "train", "index": 0})
            assert http.get("/prompt", headers=headers).json()[0]["text"] == "2"
