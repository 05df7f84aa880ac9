"""A turn that is cancelled: before the model, while it is called, while its answer is stored."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from pollux_like import Environment, Input
from pollux_like.store import ConversationStore
from pollux_like.testing import Answer, Scripted, answer, call, say

ENV = Environment()


@pytest.mark.anyio
async def test_an_answer_that_came_is_stored_all_the_same(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        conversation = await store.create("a", scope="cancelled")
        with anyio.CancelScope() as scope:

            def answer_and_cancel(request: object) -> Answer:
                scope.cancel()
                return answer(say("Hello"))

            await conversation.interact(ENV, Input("Hi"), Scripted(answer_and_cancel).config)
        loaded = await store.load("a", scope="cancelled")
        assert (loaded.turns, loaded.pending) == (1, None)
        assert (conversation.turns, conversation.revision) == (1, loaded.revision)


@pytest.mark.anyio
async def test_a_tool_that_ended_is_recorded_all_the_same(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        conversation = await store.create("a", scope="cancelled")
        output = await conversation.interact(ENV, Input("x"), Scripted([call("f", {}, id="c")]).config)
        with anyio.CancelScope() as scope:

            async def f() -> str:
                scope.cancel()
                return "done"

            await conversation.run_tool(output.tool_calls[0], f)
        effect = await (await store.load("a", scope="cancelled")).effects.status(output.tool_calls[0])
        assert effect.status == "done"


@pytest.mark.anyio
async def test_a_turn_cancelled_before_it_began_changes_nothing(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        conversation = await store.create("a", scope="cancelled")
        model = Scripted([say("Hello")])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await conversation.interact(ENV, Input("Hi"), model.config)
        assert model.requests == []
        loaded = await store.load("a", scope="cancelled")
        assert (loaded.revision, loaded.pending) == (0, None)
        assert (await conversation.interact(ENV, Input("Hi"), model.config)).text == "Hello"
