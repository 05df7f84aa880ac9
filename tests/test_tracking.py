"""When a turn yields a continuation, and what using one leaves untouched."""

from __future__ import annotations

import json

import pytest

from pollux_like import Config, ConfigurationError, Continuation, Environment, Input, Message, ToolResult, interact
from pollux_like.testing import Scripted, answer, call, say, server_tool
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio
ENV = Environment(tools=TOOLS)


@pytest.mark.parametrize("history", [[], (), [Message("user", "a"), Message("assistant", "b")]])
async def test_any_history_opts_in(history: list[Message]) -> None:
    model = Scripted([say("Hello")])
    output = await interact(ENV, Input("Hi", history=history), model.config)
    assert isinstance(output.continuation, Continuation)


async def test_without_history_a_plain_turn_is_not_tracked() -> None:
    output = await interact(ENV, Input("Hi"), Scripted([say("Hello")]).config)
    assert output.continuation is None


async def test_tool_calls_are_tracked_without_opting_in() -> None:
    output = await interact(ENV, Input("Hi"), Scripted([call("get_time", id="c1"), call("note", id="c2")]).config)
    assert [one.id for one in output.tool_calls] == ["c1", "c2"]
    assert output.continuation is not None
    assert output.continuation.pending_tool_calls == output.tool_calls


async def test_a_paused_turn_is_tracked_without_opting_in() -> None:
    model = Scripted(answer(server_tool("search"), finish="pause"), [say("Found")])
    output = await interact(ENV, Input("Hi"), model.config)
    assert output.finish.status == "pause"
    output = await interact(ENV, Input(continuation=output.continuation), model.config)
    assert output.text == "Found"


async def test_one_continuation_makes_independent_branches() -> None:
    model = Scripted([say("Hello")], [say("A")], [say("B")])
    first = (await interact(ENV, Input("Hi", history=[]), model.config)).continuation
    assert first is not None
    saved = json.dumps(first.to_jsonable())
    left = await interact(ENV, Input("left", continuation=first), model.config)
    right = await interact(ENV, Input("right", continuation=first), model.config)
    assert json.dumps(first.to_jsonable()) == saved
    assert left.continuation != right.continuation
    assert "left" not in model.requests[2].body
    assert [message.get("content") for message in model.requests[1].messages] == ["Hi", None, "left"]


async def test_the_messages_of_each_turn_make_the_transcript() -> None:
    model = Scripted([call("get_time", id="c1")], [say("Noon")], [say("Bye")])
    transcript: list[Message] = []
    one = await interact(ENV, Input("Time?"), model.config)
    transcript.extend(one.messages)
    two = await interact(ENV, Input(continuation=one.continuation, tool_results=[ToolResult("c1", "12")]), model.config)
    transcript.extend(two.messages)
    assert [message.role for message in transcript] == ["user", "assistant", "tool", "assistant"]
    three = await interact(ENV, Input("Thanks", history=transcript), model.config)
    assert three.text == "Bye"


async def test_a_failed_turn_leaves_the_continuation_good() -> None:
    model = Scripted([say("Hello")], ConfigurationError("no", hint="no"), [say("Again")])
    first = (await interact(ENV, Input("Hi", history=[]), model.config)).continuation
    with pytest.raises(ConfigurationError):
        await interact(ENV, Input("x", continuation=first), model.config)
    again = await interact(ENV, Input("x", continuation=first), model.config)
    assert again.text == "Again"
    assert model.requests[1].body == model.requests[2].body


async def test_config_is_the_third_positional_argument_or_a_keyword() -> None:
    model = Scripted([say("1")], [say("2")])
    assert (await interact(ENV, Input("a"), model.config)).text == "1"
    assert (await interact(ENV, Input("a"), config=Config("scripted", client=model))).text == "2"


async def test_a_history_that_the_application_brought_is_not_given_back_to_its_transcript() -> None:
    from pollux_like import ToolCall

    open_round = [Message("user", "a"), Message("assistant", tool_calls=(ToolCall("c1", "note"), ToolCall("c2", "note"))),
                  Message("tool", "2", tool_call_id="c2")]  # fmt: skip
    output = await interact(
        ENV, Input("more", history=open_round, tool_results=[ToolResult("c1", "1")]), Scripted([say("b")]).config
    )
    assert [(message.role, message.content) for message in output.messages] == [
        ("tool", "1"),
        ("user", "more"),
        ("assistant", "b"),
    ]


async def test_a_paused_continuation_says_so() -> None:
    model = Scripted(answer(server_tool("search"), finish="pause"), [say("Found")])
    paused = (await interact(ENV, Input("Hi"), model.config)).continuation
    assert paused is not None
    assert paused.paused
    with pytest.raises(ConfigurationError, match="paused"):
        await interact(ENV, Input("never mind", continuation=paused), model.config)
    done = (await interact(ENV, Input(continuation=paused), model.config)).continuation
    assert done is not None
    assert not done.paused


async def test_made_up_call_ids_differ_between_turns() -> None:
    model = Scripted([call("note", {"text": "x"})], [call("note", {"text": "x"})])
    one = await interact(ENV, Input("a"), model.config)
    results = [ToolResult(one.tool_calls[0].id, "ok")]
    two = await interact(ENV, Input(continuation=one.continuation, tool_results=results), model.config)
    assert one.tool_calls[0].id != two.tool_calls[0].id
    assert model.left == 0
