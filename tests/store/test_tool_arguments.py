"""Arguments that a tool does not take: the model is told, nothing is executed, and the call is never unknown."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from pollux_like import Environment, Input, ToolCall, ToolDeclaration
from pollux_like.errors import UnknownEffectError
from pollux_like.store import Conversation, ConversationStore
from pollux_like.testing import Scripted, call, say

Factory = Callable[..., ConversationStore]
ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def book(seat: int, *, row: str = "a") -> str:
    """Book a seat."""
    ran.append(seat)
    return f"{row}{seat}"


ENV = Environment(tools=[ToolDeclaration.from_function(book)])


async def asked(store: ConversationStore, **arguments: Any) -> tuple[Conversation, ToolCall, Scripted]:
    """A conversation that waits for a call with these arguments."""
    model = Scripted([call("book", arguments, id="c")], [say("I see.")])
    conversation = await store.create(scope="s")
    output = await conversation.interact(ENV, Input("Book."), model.config)
    return conversation, output.tool_calls[0], model


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "missing a required argument: 'seat'"),
        ({"seat": 1, "window": True}, "unexpected keyword argument 'window'"),
    ],
)
async def test_the_model_is_told_and_the_result_is_recorded(
    factory: Factory, arguments: dict[str, Any], why: str
) -> None:
    async with factory() as store:
        conversation, made, model = await asked(store, **arguments)
        result = await conversation.run_tool(made, book)
        assert result.is_error
        assert result.content.startswith("book was not run: ")
        assert why in result.content
        assert ran == []
        recorded = await (await store.load(conversation.id, scope="s")).effects.status(made)
        assert (recorded.status, recorded.result) == ("done", result)
        assert await conversation.run_tool(made, book) == result
        output = await conversation.interact(ENV, Input(tool_results=[result]), model.config)
        assert output.text == "I see."


@pytest.mark.anyio
async def test_what_stands_in_the_ledger_is_kept(factory: Factory) -> None:
    async with factory() as store:
        conversation, made, _ = await asked(store, seat=1)
        assert (await conversation.run_tool(made, book)).content == "a1"
        assert (await conversation.run_tool(made, lambda: None)).content == "a1"
        conversation, made, _ = await asked(store, seat=1)
        await conversation.effects.claim(made)
        with pytest.raises(UnknownEffectError):
            await conversation.run_tool(made, lambda: None)


@pytest.mark.anyio
async def test_a_wrapper_that_brings_arguments_of_its_own_runs(factory: Factory) -> None:
    def booking(desk: str, seat: int) -> str:
        ran.append((desk, seat))
        return desk

    @functools.wraps(booking)
    def wrapped(**arguments: Any) -> str:
        return booking("north", **arguments)

    async with factory() as store:
        conversation, made, _ = await asked(store, seat=2)
        assert (await conversation.run_tool(made, wrapped)).content == "north"
        assert ran == [("north", 2)]


@pytest.mark.anyio
async def test_a_type_error_of_the_tool_itself_stays_its_own(factory: Factory) -> None:
    def broken(seat: int) -> str:
        raise TypeError(f"no seat {seat}")

    async with factory() as store:
        conversation, made, _ = await asked(store, seat=3)
        with pytest.raises(TypeError, match="no seat 3"):
            await conversation.run_tool(made, broken)
        assert (await conversation.effects.status(made)).status == "unknown"
