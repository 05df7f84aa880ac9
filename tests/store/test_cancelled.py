"""A turn that is cancelled: before the model, while it is called, while its answer is stored."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

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
        assert scope.cancelled_caught
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
        assert scope.cancelled_caught
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


class Held:
    """The write of that number, from now on, waits in its thread until it is let go."""

    def __init__(self, store: ConversationStore, number: int) -> None:
        self.begun, self.go = anyio.Event(), threading.Event()
        inner, loop, left = store.database._in_thread, asyncio.get_running_loop(), [number]

        async def in_thread(call: Callable[[], Any], writing: bool) -> Any:
            def held() -> Any:
                left[0] -= writing
                if writing and left[0] == 0:
                    loop.call_soon_threadsafe(self.begun.set)
                    assert self.go.wait(10)
                return call()

            return await inner(held, writing)

        store.database._in_thread = in_thread

    async def cancelled(self, work: Awaitable[object]) -> None:
        """Begin the work, cancel its task natively inside the write, and let the write go on."""
        task = asyncio.ensure_future(work)
        await self.begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        self.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestNative:
    """`task.cancel()` and `asyncio.timeout` know nothing of anyio's scopes: only asyncio has them."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.mark.parametrize(("write", "turns"), [(1, 0), (2, 1)], ids=["of the input", "of the answer"])
    async def test_a_write_is_settled_and_the_cancellation_goes_on(
        self, factory: Callable[..., ConversationStore], write: int, turns: int
    ) -> None:
        async with factory() as store:
            conversation = await store.create("a", scope="cancelled")
            model = Scripted(*([say("Hello")] for _ in range(turns)))
            await Held(store, write).cancelled(conversation.interact(ENV, Input("Hi"), model.config))
            assert model.left == 0
            loaded = await store.load("a", scope="cancelled")
            assert (loaded.turns, loaded.pending is None) == (turns, turns == 1)
            assert (conversation.turns, conversation.revision) == (turns, loaded.revision)
            await conversation.interact(ENV, Input("Next"), Scripted([say("Yes")]).config)
            assert (await store.load("a", scope="cancelled")).turns == turns + 1

    async def test_a_timeout_that_ends_inside_a_write_is_a_timeout(
        self, factory: Callable[..., ConversationStore]
    ) -> None:
        async with factory() as store:
            conversation = await store.create("a", scope="cancelled")
            held = Held(store, 1)

            async def let_go() -> None:
                await held.begun.wait()
                limit.reschedule(asyncio.get_running_loop().time())  # it is over, whatever the clock said
                await asyncio.sleep(0)
                held.go.set()

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as limit:
                    letting = asyncio.ensure_future(let_go())
                    await conversation.interact(ENV, Input("Hi"), Scripted().config)
            await letting
            assert conversation.pending is not None
            assert (await store.load("a", scope="cancelled")).revision == conversation.revision == 1

    async def test_a_rewind_leaves_the_object_where_the_store_is(
        self, factory: Callable[..., ConversationStore]
    ) -> None:
        async with factory() as store:
            conversation = await store.create("a", scope="cancelled")
            for word in ("1", "2"):
                await conversation.interact(ENV, Input(word), Scripted([say(word)]).config)
            await Held(store, 1).cancelled(conversation.rewind(1))
            loaded = await store.load("a", scope="cancelled")
            assert (loaded.turns, loaded.continuation) == (1, conversation.continuation)
            assert conversation.revision == loaded.revision

    async def test_a_claim_is_given_back_where_the_tool_was_not_begun(
        self, factory: Callable[..., ConversationStore]
    ) -> None:
        async with factory() as store:
            conversation = await store.create("a", scope="cancelled")
            output = await conversation.interact(ENV, Input("x"), Scripted([call("f", {}, id="c")]).config)
            ran: list[int] = []
            await Held(store, 1).cancelled(conversation.run_tool(output.tool_calls[0], lambda: ran.append(1)))
            assert ran == []
            await (await store.load("a", scope="cancelled")).run_tool(output.tool_calls[0], lambda: ran.append(1))
            assert ran == [1]

    async def test_a_result_is_recorded_and_the_cancellation_goes_on(
        self, factory: Callable[..., ConversationStore]
    ) -> None:
        async with factory() as store:
            conversation = await store.create("a", scope="cancelled")
            output = await conversation.interact(ENV, Input("x"), Scripted([call("f", {}, id="c")]).config)
            await Held(store, 2).cancelled(conversation.run_tool(output.tool_calls[0], lambda: "done"))
            assert (await conversation.effects.status(output.tool_calls[0])).status == "done"
