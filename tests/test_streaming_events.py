"""The events of a streamed turn: their kinds, their order, and that they add up to the output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from pollux_like import Config, Environment, Event, Input, interact, stream, sync
from pollux_like.simulator import Simulator
from pollux_like.testing import Answer, Scripted, answer, call, say, think
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio
ENV = Environment(tools=TOOLS)
ALL = answer(
    think("First thought"), say("I look."), call("get_weather", {"city": "Paris"}, id="call_1"), call("get_time", "", id="call_2"),
    input_tokens=50, output_tokens=20, cached_tokens=10,
)  # fmt: skip
TARGETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai": ("openai", "gpt-5.2", {"reasoning_effort": "low"}),
    "chat": ("openai", "gpt-5.2", {"provider_options": {"openai": {"api": "chat"}}}),
    "anthropic": ("anthropic", "claude-opus-4-6", {"reasoning_effort": "low"}),
    "gemini": ("gemini", "gemini-3-flash-preview", {"reasoning_effort": "low"}),
}


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


async def watch(sim: Simulator, name: str, made: Answer) -> list[Event]:
    sim.reset()
    sim.reply(made)
    provider, model, arguments = TARGETS[name]
    to = Config(provider, model, api_key="sim-key", base_url=sim.base_url(name))
    return [event async for event in stream(ENV, Input("Weather?", history=[]), to, **arguments)]


@pytest.mark.parametrize("name", list(TARGETS))
async def test_events_come_in_order_and_add_up(running: Simulator, name: str) -> None:
    events = await watch(running, name, ALL)
    kinds = [kind for kind, _ in groupby(event.type for event in events)]
    expected = ["start", "reasoning_delta", "text_delta", "tool_call_delta", "tool_call", "usage", "finish", "done"]
    assert list(dict.fromkeys(kinds)) == expected
    assert kinds[-3:] == ["usage", "finish", "done"]
    output = events[-1].output
    assert output is not None
    assert "".join(event.text for event in events if event.type == "text_delta") == output.text == "I look."
    assert (
        "".join(event.text for event in events if event.type == "reasoning_delta")
        == output.reasoning
        == "First thought"
    )
    assert tuple(event.tool_call for event in events if event.type == "tool_call") == output.tool_calls
    pieces = ["".join(e.text for e in events if e.type == "tool_call_delta" and e.index == index) for index in (0, 1)]
    assert pieces[0] == '{"city":"Paris"}'
    assert events[-3].usage == output.usage
    assert (output.usage.input_tokens, output.usage.output_tokens, output.usage.cached_tokens) == (50, 20, 10)
    assert events[-2].finish == output.finish


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
async def test_a_call_is_shown_as_soon_as_it_is_complete(running: Simulator, name: str) -> None:
    events = await watch(running, name, ALL)
    first = next(index for index, event in enumerate(events) if event.type == "tool_call")
    later = [event for event in events[first + 1 :] if event.type in ("tool_call", "tool_call_delta")]
    assert later, "the second call came after the first was shown"


@pytest.mark.parametrize("name", list(TARGETS))
async def test_only_the_last_event_carries_the_output(running: Simulator, name: str) -> None:
    events = await watch(running, name, answer(say("Hi")))
    assert [event.output is not None for event in events] == [False] * (len(events) - 1) + [True]


async def test_a_stream_is_its_own_context_and_can_be_closed_twice() -> None:
    model = Scripted([say("a")], [say("b")])
    async with stream(ENV, Input("x"), model.config) as events:
        first = await anext(events)
        assert first.type == "start"
    await events.aclose()
    assert (await interact(ENV, Input("y"), model.config)).text in ("a", "b")


def test_the_synchronous_face_gives_the_same() -> None:
    model = Scripted([say("one"), call("get_time", id="c1")], [say("two")], [say("three")])
    output = sync.interact(ENV, Input("x"), model.config)
    assert output.text == "one"
    from pollux_like import ToolResult

    with sync.stream(
        ENV, Input(continuation=output.continuation, tool_results=[ToolResult("c1", "12")]), model.config
    ) as events:
        seen = list(events)
    assert seen[-1].output is not None
    assert seen[-1].output.text == "two"
    left = sync.stream(ENV, Input("x"), model.config)
    assert next(iter(left)).type == "start"
    left.close()


async def test_the_synchronous_face_works_inside_a_running_loop() -> None:
    assert sync.interact(ENV, Input("x"), Scripted([say("fine")]).config).text == "fine"


async def test_a_long_answer_is_streamed_on_the_way_also_for_interact(running: Simulator) -> None:
    """An unstreamed answer of more than ten minutes would lose its idle connection; the output is the same."""
    to = Config("anthropic", "claude-opus-4-6", api_key="sim-key", base_url=running.base_url("anthropic"))
    for limit, streamed in ((21_333, None), (21_334, True)):
        running.reset()
        running.reply(ALL)
        output = await interact(ENV, Input("Weather?", history=[]), to, max_tokens=limit, reasoning_effort="low")
        assert running.requests[-1].body.get("stream") is streamed
        assert output.text == "I look."
        assert [call.id for call in output.tool_calls] == ["call_1", "call_2"]
