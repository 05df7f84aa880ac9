"""The client on a bad day: old servers, new servers, cut streams, lost replies, and a tool that is never run twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import anyio
import httpx2
import pytest
from environment_support import CONVERSATION, GATES, INSTANCES, Cutter, Harbour

from pollux_like.environments import (
    AsyncEnvironmentClient,
    EnvironmentClient,
    GroupCandidate,
    Message,
    Server,
    TextBlock,
    UnknownBlockWarning,
)
from pollux_like.errors import (
    ConfigurationError,
    EnvironmentServerError,
    FormatError,
    PolluxLikeError,
    ToolFailedError,
    ToolRefusedError,
)

from .conftest import QUICK
from .scripted_server import OLD_TOOLS, Scripted, error, sse


def test_an_old_server_gives_its_prompt_as_one_user_message() -> None:
    old = Scripted(task_tools=error(404, "Not Found"), tools=OLD_TOOLS)
    with old.client() as environment, environment.session(task={}) as session:
        assert session.get_messages() == [Message(role="user", blocks=[TextBlock(text="Late?")])]
        assert session.get_messages("openai") == [{"role": "user", "content": "Late?"}]


def test_a_stray_404_is_an_error_and_no_flat_prompt() -> None:
    for stray in (error(404, "Not Found"), error(404, "no such row in the author's database")):
        far = Scripted(messages=[stray, httpx2.Response(200, json=CONVERSATION)])
        with far.client() as environment, environment.session(task={}) as session:
            with pytest.raises(EnvironmentServerError) as raised:
                session.get_messages()
            assert raised.value.status == 404
            assert far.number("prompt") == 0
            assert len(session.get_messages()) == 4


@pytest.mark.parametrize("status", [405, 410, 422, 500, 501])
def test_other_statuses_do_not_fall_back_and_are_not_asked_again(status: int) -> None:
    far = Scripted(messages=error(status), task_tools=OLD_TOOLS)
    with far.client() as environment, environment.session(task={}) as session:
        with pytest.raises(EnvironmentServerError) as raised:
            session.get_messages()
        assert (raised.value.status, far.number("messages"), far.number("prompt")) == (status, 1, 0)


def test_blocks_of_a_later_version_are_left_out_with_a_warning() -> None:
    wire = [
        {"role": "user", "blocks": [{"type": "hologram", "id": "h"}, {"type": "text", "text": "hi"}]},
        {"role": "assistant", "blocks": [{"type": "hologram"}]},
        {"role": "user", "blocks": [{"type": "tool_result", "tool_call_id": "h", "blocks": []}, {"type": "text", "text": "so?"}]},
    ]  # fmt: skip
    output = {"blocks": [{"type": "hologram"}, {"type": "text", "text": "done", "new": 1}], "later": 2}
    call = sse(("task_id", "1"), ("end", json.dumps({"ok": True, "output": output})))
    far = Scripted(messages=wire, call=call)
    with far.client() as environment, environment.session(task={}) as session:
        with pytest.warns(UnknownBlockWarning, match=r"hologram.*call 'h'|hologram"):
            messages = session.get_messages("openai")
        assert messages == [{"role": "user", "content": "hi"}, {"role": "user", "content": "so?"}]
        with pytest.warns(UnknownBlockWarning, match="hologram"):
            assert [getattr(block, "text", "") for block in session.call_tool("look").blocks] == ["done"]


def test_retries_are_bounded_and_only_where_nothing_was_done() -> None:
    busy = error(503, "busy", **{"retry-after": "0"})
    far = Scripted(messages=[busy, busy, httpx2.Response(200, json=CONVERSATION)])
    with far.client() as environment, environment.session(task={}) as session:
        assert len(session.get_messages()) == 4
        assert far.number("messages") == 3
    always = Scripted(messages=busy)
    with always.client() as environment, environment.session(task={}) as session:
        with pytest.raises(EnvironmentServerError, match="503"):
            session.get_messages()
        assert always.number("messages") == QUICK.attempts
    dead = Scripted(list_environments=[httpx2.ConnectError("down")])
    with dead.client() as environment, pytest.raises(EnvironmentServerError, match="cannot be reached"):
        environment.list_splits()
    assert dead.number("list_environments") == QUICK.attempts


def test_a_lost_reply_to_create_is_asked_for_again() -> None:
    lost = [httpx2.ReadError("cut"), error(400, "Session already exists")]
    far = Scripted(create=lost)
    with far.client() as environment, environment.session(task={}):
        assert (far.number("create"), far.number("ping")) == (2, 1)
    refused = Scripted(create=error(400, "bad task"))
    with (
        refused.client() as environment,
        pytest.raises(EnvironmentServerError, match="bad task"),
        environment.session(task={}),
    ):
        pass


def test_a_stream_cut_before_it_names_the_call_is_not_sent_again() -> None:
    far = Scripted(call=[httpx2.RemoteProtocolError("cut")])
    with far.client() as environment, environment.session(task={}) as session:
        with pytest.raises(ToolFailedError, match="may have had its effect"):
            session.call_tool("look")
        assert far.number("call") == 1


def test_a_stream_cut_later_is_taken_up_by_its_id() -> None:
    done = ("end", json.dumps({"ok": True, "output": {"blocks": [], "reward": 2}}))
    far = Scripted(call=[sse(("task_id", "t1")), sse(("task_id", "t1"), ("chunk", "{")), sse(("task_id", "t1"), done)])
    with far.client() as environment, environment.session(task={}) as session:
        assert session.call_tool("look", {"a": 1}).reward == 2
    bodies = [body for name, body, _ in far.asked if name == "call"]
    assert [body.get("task_id") for body in bodies] == [None, "t1", "t1"]
    endless = Scripted(call=sse(("task_id", "t1")))
    with endless.client() as environment, environment.session(task={}) as session:
        with pytest.raises(ToolFailedError, match="was cut 21 times"):
            session.call_tool("look")
        assert endless.number("call") == QUICK.reconnects + 1


def test_what_is_no_stream_or_no_result_is_an_error_at_once() -> None:
    for answer in (
        httpx2.Response(200, json={"ok": True}),
        sse(("end", "{")),
        sse(("end", "[]")),
        sse(("end", '{"ok": true}')),
    ):
        far = Scripted(call=answer)
        with far.client() as environment, environment.session(task={}) as session:
            with pytest.raises(EnvironmentServerError, match="not of the protocol"):
                session.call_tool("look")
            assert far.number("call") == 1


def test_no_key_goes_anywhere_unless_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENREWARD_API_KEY", "account-key")
    far = Scripted()
    with far.client() as environment, environment.session(task={}):
        pass
    assert all("account-key" not in str(headers) for _, _, headers in far.asked)
    assert all("x-api-key" not in headers and "authorization" not in headers for _, _, headers in far.asked)


def test_errors_of_the_body_come_out_as_they_are() -> None:
    far = Scripted()
    with far.client() as environment:
        with pytest.raises(KeyError, match="mine"), environment.session(task={}):
            raise KeyError("mine")
        assert far.number("delete") == 1
        with pytest.raises(ConfigurationError, match="one task"), environment.session():
            pass
        with pytest.raises(FormatError), environment.session(task={}) as session:
            session.get_messages("mistral")
    with pytest.raises(ConfigurationError):
        EnvironmentClient("ftp://x")


def test_a_session_is_pinged_until_it_is_gone() -> None:
    pinged = threading.Event()

    class Pinged(Scripted):
        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            answer = super().__call__(request)
            if self.number("ping") == 3:
                pinged.set()
                return error(404, "Active environment not found.")
            return answer

    far = Pinged()
    made = httpx2.AsyncClient(transport=httpx2.MockTransport(far))
    with EnvironmentClient("http://far", client=made, patience=QUICK, ping_s=0.01) as environment:
        with environment.session(task={}):
            assert pinged.wait(20)
        assert (far.number("ping"), far.number("delete")) == (3, 0)


@pytest.mark.anyio
async def test_both_event_loops(server: Server) -> None:
    async with AsyncEnvironmentClient(server.base_url, patience=QUICK) as environment:
        assert await environment.list_environments() == ["harbour", "prompted"]
        async with environment.session(split="train", index=0) as session:
            assert len(await session.get_messages()) == 4
            async with anyio.create_task_group() as group:
                for pier in range(5):
                    group.start_soon(session.call_tool, "board", {"pier": pier})
            with pytest.raises(ToolRefusedError):
                await session.call_tool("nothing")
            plain = Message(role="assistant", blocks=[TextBlock(text="a"), TextBlock(text="b")])
            assert (await session.score_group([GroupCandidate(messages=[plain])]))[0].reward == 2.0
            assert (await session.call_terminal_tool("10:10")).reward == 1.0
    assert server.open_sessions == 0


@pytest.mark.anyio
async def test_leaving_by_cancellation_deletes_the_session(server: Server) -> None:
    async with AsyncEnvironmentClient(server.base_url, patience=QUICK) as environment:
        with anyio.CancelScope() as scope:
            async with environment.session(split="train", index=0) as session:
                GATES["e"] = threading.Event()
                async with anyio.create_task_group() as group:
                    group.start_soon(session.call_tool, "wait", {"text": "e"})
                    while "wait e" not in INSTANCES[-1].log:
                        await anyio.sleep(0)
                    scope.cancel()
    assert scope.cancelled_caught
    assert server.open_sessions == 0
    assert INSTANCES[-1].log == ["setup", "wait e", "teardown"]


@pytest.fixture
def cutting() -> Iterator[tuple[Server, Cutter]]:
    """A way that cuts every second answer to a call: at once, within an event, or within a chunk."""
    count = [0]

    def rule(request: bytes, data: bytes) -> int | None:
        if b"/call " not in request:
            return None
        count[0] += 1
        return None if count[0] % 2 == 0 else (0, len(data) // 3, len(data) - 1)[count[0] // 2 % 3]

    with Server([Harbour]) as server, Cutter(int(server.base_url.rsplit(":", 1)[1]), rule) as way:
        yield server, way


def test_no_tool_runs_twice_however_the_streams_are_cut(cutting: tuple[Server, Cutter]) -> None:
    _, way = cutting
    text = " x" * 10_000
    with (
        EnvironmentClient(way.base_url, patience=QUICK) as environment,
        environment.session(split="train", index=0) as session,
    ):
        for number in range(12):
            assert session.call_tool("board", {"pier": number}).reward == 0.25
            assert session.call_tool("echo", {"text": text}).blocks == [TextBlock(text=text)]
    assert way.cuts >= 12
    (instance,) = INSTANCES
    assert [entry for entry in instance.log if entry.startswith("board")] == [f"board {number}" for number in range(12)]
    assert instance.log.count("echo") == 12


def test_every_error_is_one_of_ours() -> None:
    for kind in (EnvironmentServerError, ToolFailedError, ToolRefusedError, FormatError):
        assert issubclass(kind, PolluxLikeError)
