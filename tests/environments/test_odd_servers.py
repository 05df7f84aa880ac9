"""The client against servers that answer in wrong shapes or without end, and its own end in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import pytest

from pollux_like.environments import AsyncEnvironmentClient, EnvironmentClient
from pollux_like.errors import EnvironmentServerError

from .conftest import QUICK
from .scripted_server import Scripted, sse


@pytest.mark.parametrize(
    ("route", "answer", "ask"),
    [
        ("num_tasks", {}, lambda far: far.num_tasks("train")),
        ("num_tasks", {"num_tasks": "many"}, lambda far: far.num_tasks("train")),
        ("splits", [{"type": "train"}], lambda far: far.list_splits()),
        ("list_environments", [{}], lambda far: far.list_splits()),
        ("tasks", {"tasks": [{}], "env_name": 5}, lambda far: far.list_tasks("train")),
        ("tools", {"tools": [], "terminal_tool": {}}, lambda far: far.list_tools()),
        ("splits", httpx2.Response(200, content=b'["\xff"]'), lambda far: far.list_splits()),
        ("splits", httpx2.Response(200, json=["x" * 2000]), lambda far: far.list_splits()),
    ],
)
def test_answers_of_the_wrong_shape_are_errors_of_ours(
    monkeypatch: pytest.MonkeyPatch, route: str, answer: Any, ask: Callable[[EnvironmentClient], Any]
) -> None:
    monkeypatch.setattr("pollux_like.environments.http.MAX_ANSWER", 1000)
    with (
        Scripted(**{route: answer}).client() as environment,
        pytest.raises(EnvironmentServerError, match="not of the protocol"),
    ):
        ask(environment)


def test_a_stream_that_never_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux_like.environments.sse.MAX_STREAM", 1000)
    far = Scripted(call=sse(("task_id", "t1"), *[("chunk", "x" * 100)] * 20))
    with (
        far.client() as environment,
        environment.session(task={}) as session,
        pytest.raises(EnvironmentServerError, match="more than 1000 characters"),
    ):
        session.call_tool("look")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_inside_a_session_comes_out_and_the_shared_loop_lives(interrupt: type[BaseException]) -> None:
    far = Scripted()
    with far.client() as environment:
        with pytest.raises(interrupt), environment.session(task={}):
            raise interrupt
        assert far.number("delete") == 1
        assert environment.list_environments() == ["env"]


@pytest.mark.anyio
async def test_a_cancellation_while_the_session_is_made_deletes_it() -> None:
    asked: list[str] = []
    arrived = anyio.Event()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        if request.url.path == "/create":
            arrived.set()
            await anyio.sleep_forever()
        return httpx2.Response(200, json={})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    environment = AsyncEnvironmentClient("http://far", environment="env", client=client, patience=QUICK)

    async def opens() -> None:
        async with environment.session(task={}):
            pass

    async with client, anyio.create_task_group() as group:
        group.start_soon(opens)
        await arrived.wait()
        group.cancel_scope.cancel()
    assert asked == ["/create", "/delete"]
