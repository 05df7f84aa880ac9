"""The effects ledger: every call at most once, or unknown."""

from __future__ import annotations

from typing import Any

import anyio

from pollux_like.errors import (
    ConfigurationError,
    StoreError,
    UnknownEffectError,
)
from pollux_like.input import Input
from pollux_like.messages import ToolResult
from pollux_like.output import Output
from pollux_like.store import Conversation, Effect
from pollux_like.testing.script import call, say
from pollux_like.testing.scripted import Scripted
from pollux_like.testing.store_conformance.support import ENV, Factory, refused, scope


async def a_tool_runs_once(factory: Factory) -> None:
    """A second run gives the recorded result; the calls of another turn are not those of this one."""
    async with factory() as store:
        tenant, ran = scope(), list[int]()

        def book(seat: int) -> dict[str, int]:
            ran.append(seat)
            return {"seat": seat}

        again = [call("book", {"seat": 7}, id="c")]
        model = Scripted(again, again, [say("Done")])
        conversation = await store.create("a", scope=tenant)
        output = await conversation.interact(ENV, Input("Book"), model.config)
        result = await conversation.run_tool(output.tool_calls[0], book)
        other = await store.load("a", scope=tenant)
        assert await other.run_tool(other.pending_tool_calls[0], book) == result
        assert result.content == '{"seat":7}'
        output = await other.interact(ENV, Input(tool_results=[result]), model.config)
        await other.run_tool(output.tool_calls[0], book)
        assert ran == [7, 7]
        await refused(ConfigurationError, conversation.run_tool(call_of(output, "d"), book))


def call_of(output: Output, id: str) -> Any:
    """The first call of an output under another id."""
    made = output.tool_calls[0]
    return type(made)(id, made.name, made.arguments_text)


async def one_worker_wins_a_call(factory: Factory) -> None:
    """To all others it is unknown until it is done, resolved or released."""
    async with factory() as store:
        tenant = scope()
        conversation = await store.create("a", scope=tenant)
        output = await conversation.interact(ENV, Input("x"), Scripted([call("book", id="c")]).config)
        made = output.tool_calls[0]
        handles = [conversation, *[await store.load("a", scope=tenant) for _ in range(5)]]
        found: list[tuple[Conversation, Effect]] = []

        async def claim(handle: Conversation) -> None:
            found.append((handle, await handle.effects.claim(made)))

        async with anyio.create_task_group() as group:
            for handle in (*handles, conversation):
                group.start_soon(claim, handle)
        assert sorted(effect.status for _, effect in found) == ["run"] + ["unknown"] * 6
        winner = next(handle for handle, effect in found if effect.status == "run")
        loser = next(handle for handle in handles if handle is not winner)
        await refused(UnknownEffectError, loser.run_tool(made, lambda: None))
        await refused(StoreError, loser.effects.done(made, ToolResult("c", "forged")))
        await loser.effects.release(made)
        assert (await loser.effects.claim(made)).status == "run"
        await refused(StoreError, winner.effects.done(made, ToolResult("c", "late")))
        assert (await winner.effects.status(made)).status == "unknown"
        settled = await winner.effects.resolve(made, ToolResult("c", "decided", is_error=True))
        assert settled == Effect("c", "done", ToolResult("c", "decided", is_error=True))
        await refused(StoreError, loser.effects.done(made, ToolResult("c", "late")))
        await loser.effects.release(made)
        assert await conversation.effects.status(made) == settled


async def a_tool_that_fails_is_unknown(factory: Factory) -> None:
    """Its side effect may have happened."""
    async with factory() as store:
        conversation = await store.create(scope=scope())
        output = await conversation.interact(ENV, Input("x"), Scripted([call("book", id="c")]).config)

        async def book() -> None:
            raise OSError("lost")

        try:
            await conversation.run_tool(output.tool_calls[0], book)
        except OSError:
            assert (await conversation.effects.status(output.tool_calls[0])).status == "unknown"
        else:
            raise AssertionError("the tool's own error is swallowed")
        forked = await conversation.fork()
        assert (await forked.effects.claim(output.tool_calls[0])).status == "run"
