"""A conversation that is deleted, and another one under its id: who holds the first has no hand in the second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pollux_like import ContinuationSealer, Environment, Input, ToolResult
from pollux_like.errors import UnknownConversationError
from pollux_like.store import Conversation, ConversationStore
from pollux_like.testing import Answer, Scripted, answer, call, say

pytestmark = pytest.mark.anyio
ENV = Environment()


async def one_turn(conversation: Conversation, *said: object) -> None:
    await conversation.interact(ENV, Input("x"), Scripted(answer(*said)).config, key="k")


@pytest.mark.parametrize("sealer", [None, ContinuationSealer([bytes(32)])], ids=["plain", "sealed"])
@pytest.mark.parametrize("forked", [False, True], ids=["alone", "with a fork"])
async def test_an_object_of_the_first_one_changes_nothing(
    factory: Callable[..., ConversationStore], sealer: ContinuationSealer | None, forked: bool
) -> None:
    """Both are at the same revision, so that a compare-and-set on that alone would let it through."""
    async with factory(sealer=sealer) as store:
        old = await store.create("a", scope="t")
        await one_turn(old, call("f", {}, id="c"))
        made, fork = old.pending_tool_calls[0], await old.fork() if forked else None
        output = await store.create("b", scope="t", continuation=old.continuation)
        later = await output.interact(ENV, Input(tool_results=[ToolResult("c", "r")]), Scripted([say("y")]).config)
        await store.delete("a", scope="t")
        new = await store.create("a", scope="t")
        await one_turn(new, call("f", {}, id="c"))
        assert (old.revision, old.turns) == (new.revision, new.turns)
        model = Scripted([say("never")])
        result = ToolResult("c", "r")
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: old.interact(ENV, Input(tool_results=[result]), model.config),
            lambda: old.interact(ENV, Input("x"), model.config, key="k"),
            lambda: old.append(later), lambda: old.rewind(0), old.fork, old.refresh, old.transcript,
            lambda: old.run_tool(made, lambda: "never"), lambda: old.effects.claim(made),
            lambda: old.effects.resolve(made, result), lambda: old.effects.release(made),
            lambda: old.effects.status(made),
        ]  # fmt: skip
        for attempt in attempts:
            with pytest.raises(UnknownConversationError):
                await attempt()
        assert model.requests == []
        assert (await new.effects.status(made)).status == "run"
        await new.interact(ENV, Input(tool_results=[result]), Scripted([say("Yes")]).config)
        assert (await store.load("a", scope="t")).turns == 2
        assert fork is None or (await store.load(fork.id, scope="t")).turns == 1
        assert (await store.verify(scope="t")).problems == ()


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made anew"])
async def test_an_answer_that_comes_after_the_deletion_is_nobodys(
    factory: Callable[..., ConversationStore], again: bool
) -> None:
    async with factory() as store:
        old = await store.create("a", scope="t")
        asked, go = anyio.Event(), anyio.Event()

        class Waiting(Scripted):
            def next(self, body: str) -> Answer:
                asked.set()
                return super().next(body)

        async def late() -> None:
            with pytest.raises(UnknownConversationError):
                async with old.stream(ENV, Input("x"), Waiting([say("late")]).config) as events:
                    async for event in events:
                        if event.type == "text_delta":
                            await go.wait()

        async with anyio.create_task_group() as group:
            group.start_soon(late)
            await asked.wait()
            await store.delete("a", scope="t")
            if again:
                new = await store.create("a", scope="t")
                with pytest.raises(OSError, match="down"):  # its input is pending, at the revision of the old one
                    await new.interact(ENV, Input("new"), Scripted(OSError("down")).config)
            go.set()
        if again:
            loaded = await store.load("a", scope="t")
            assert (loaded.turns, loaded.pending and loaded.pending.content) == (0, "new")
        assert (await store.verify(scope="t")).problems == ()
