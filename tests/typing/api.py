"""The public API as an application writes it, for mypy and pyright to check. Nothing here is run.

A line that must be refused carries an ignore, which both checkers honour; both report one that nothing needs.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_type

from pydantic import BaseModel

from pollux_like import (
    Config,
    Continuation,
    Environment,
    Event,
    Finish,
    Handoff,
    Input,
    Message,
    Metrics,
    Notice,
    Output,
    Session,
    Source,
    StreamInterruptedError,
    StructuredOutputError,
    ToolCall,
    ToolChoice,
    ToolDeclaration,
    ToolResult,
    Usage,
    handoff,
    interact,
    stream,
    sync,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import Scripted, answer, call, say


class City(BaseModel):
    """A form for answers."""

    name: str


def weather(city: str) -> str:
    """Get the weather."""
    return city


async def a_conversation(config: Config) -> Continuation | None:
    """Turns, and every field of what comes back."""
    environment = Environment(
        instructions="Be brief.",
        sources=[Source.from_text("x"), Source.from_uri("https://example.org/a.png")],
        tools=(ToolDeclaration.from_function(weather), ToolDeclaration("f", parameters={"type": "object"})),
        metadata={"tenant": 7},
    )
    output = assert_type(await interact(environment, Input("Hi", history=[]), config), Output)
    assert_type(output.text, str)
    assert_type(output.structured, BaseModel | dict[str, Any] | None)
    assert_type(output.reasoning, str)
    assert_type(output.refusal, str | None)
    assert_type(output.tool_calls, tuple[ToolCall, ...])
    assert_type(output.messages, tuple[Message, ...])
    assert_type(output.usage, Usage)
    assert_type(output.usage.total_tokens, int)
    assert_type(output.finish, Finish)
    assert_type(output.metrics, Metrics)
    assert_type(output.metrics.request_id, str | None)
    assert_type(output.notices, tuple[Notice, ...])
    assert_type(output.to_jsonable(), dict[str, Any])
    assert_type(environment.fingerprint(provider=config.provider), str)

    results: list[ToolResult] = []
    for one in output.tool_calls:
        assert_type(one.arguments, dict[str, Any] | None)
        assert_type(one.arguments_error, str | None)
        results.append(ToolResult.from_value(call_id=one.id, value=one.arguments_dict()))
    output = await interact(
        environment,
        Input(continuation=output.continuation, tool_results=results),
        config=config,
        tool_choice=ToolChoice("required"),
        parallel_tool_calls=False,
        output=City,
        max_tokens=100,
        temperature=0.5,
        top_p=1,
        seed=7,
        stop=["END"],
        reasoning_effort="low",
        reasoning_budget_tokens=None,
        timeout_s=30,
        provider_options={"openai": {"store": True}},
    )
    return assert_type(output.continuation, Continuation | None)


async def events(config: Config) -> None:
    """A stream, with and without its context; and a session."""
    async with stream(Environment(), Input("Hi"), config, max_tokens=10) as shown:
        async for event in shown:
            assert_type(event, Event)
            assert_type(event.tool_call, ToolCall | None)
            assert_type(event.output, Output | None)
    async for event in stream(Environment(), Input("Hi"), config):
        assert_type(event.text, str)
    async with Session(config) as session:
        assert_type(session.config, Config)
        assert_type(await session.interact(Environment(), Input("Hi"), seed=1), Output)


def without_async(config: Config) -> Iterator[str]:
    """The same for code that is not async."""
    assert_type(sync.interact(Environment(), Input("Hi"), config, stop="END"), Output)
    with sync.stream(Environment(), Input("Hi"), config) as shown:
        for event in shown:
            assert_type(event, Event)
            yield event.text


def saved_state(row: object) -> Sequence[Message]:
    """Out of a store, and over to another provider."""
    state = assert_type(Continuation.from_jsonable(row, expected_provider="openai"), Continuation)
    assert_type(state.pending_tool_calls, tuple[ToolCall, ...])
    assert_type(state.digest, str)
    assert_type(state.to_jsonable(), dict[str, Any])
    moved = assert_type(handoff(state), Handoff)
    assert_type(moved.losses, tuple[str, ...])
    return moved.history


def other_shapes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Messages and tools of other shapes."""
    assert_type(ToolDeclaration.from_dict(row), ToolDeclaration)
    assert_type(ToolCall.from_text(id="call_1", name="f", arguments_text="{}"), ToolCall)
    return assert_type(Message.from_openai(row).to_openai(), dict[str, Any])


def caught(error: StreamInterruptedError | StructuredOutputError) -> str:
    """What errors carry."""
    if isinstance(error, StreamInterruptedError):
        assert_type(error.retry_after_s, float | None)
        return assert_type(error.partial_text, str)
    return assert_type(error.hint, str)


def tests_of_applications() -> str:
    """The stand-ins for a model."""
    model = Scripted([say("Hello"), call("f", {"a": 1}, id="call_1")], answer("Bye", finish="length"))
    assert_type(model.config, Config)
    with Simulator(models=["gpt-5-nano"], seed=1) as sim:
        sim.reply(say("Hello"), times=2)
        sim.fail(429, retry_after=0.1)
        return assert_type(sim.base_url("openai"), str)


async def refused(config: Config, state: Continuation) -> None:
    """What a checker must refuse."""
    await interact(Environment(), Input("Hi"), config, temprature=1.0)  # type: ignore[call-arg]
    await interact(Environment(), Input("Hi"), config, max_tokens="10")  # type: ignore[arg-type]
    await interact(Environment(), "Hi", config)  # type: ignore[arg-type]
    stream(Environment(), Input("Hi"))  # type: ignore[call-arg]
    sync.interact(Environment(), Input("Hi"), config, seed=1.5)  # type: ignore[arg-type]
    Message(role="system", content="x")  # type: ignore[arg-type]
    Input("Hi", [], None, (), [])  # type: ignore[call-arg]
    Config("openai", "gpt-5-nano", "key")  # type: ignore[call-arg]
    state.digest = "x"  # type: ignore[misc]
    Environment().tools = ()  # type: ignore[misc]
