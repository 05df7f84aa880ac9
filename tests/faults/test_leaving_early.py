"""Leaving, cancelling and closing: the connection goes, no task stays, the old state goes on."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from fault_support import ENV, begun, both, goes_on

from pollux_like import (
    Config,
    Input,
    Session,
    interact,
    stream,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import answer, say

pytestmark = pytest.mark.anyio


async def gone(sim: Simulator) -> bool:
    """Whether the server saw a client leave early, within five seconds."""
    for _ in range(500):
        if sim.closed_early:
            return True
        gc.collect()
        await anyio.sleep(0.01)
    return False


LONG = answer(say("word " * 400))


async def test_leaving_the_block_closes_the_connection(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    old = await begun(sim, to, arguments)
    sim.clear()
    sim.fault(LONG, delay_s=0.01)
    async with stream(ENV, Input("Next", continuation=old), to(), **arguments) as events:
        async for event in events:
            if event.type == "text_delta":
                break
    assert await gone(sim)
    await goes_on(sim, to, arguments, old)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio warns of a generator that is left to the collector
async def test_a_plain_break_closes_when_the_object_goes(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fault(LONG, delay_s=0.01)

    async def first() -> str:
        async for event in stream(ENV, Input("Hi"), to(), **arguments):
            if event.type == "text_delta":
                return event.text
        return ""

    assert (await first()).startswith("word")
    assert await gone(sim)


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("streamed", [False, True])
async def test_cancellation_closes_the_connection_and_leaves_the_state(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], after_s: float, streamed: bool
) -> None:
    old = await begun(sim, to, arguments)
    saved = old.to_jsonable()
    sim.clear()
    sim.fault(LONG, delay_s=0.02 if streamed else 0.5)
    with anyio.move_on_after(after_s) as scope:
        await both(to(), Input("Next", continuation=old), arguments, streamed=streamed)
    assert scope.cancelled_caught
    if sim.requests:
        assert await gone(sim)
    assert old.to_jsonable() == saved
    await goes_on(sim, to, arguments, old)


async def test_the_limit_on_concurrency_holds_over_a_session(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    under_way = 0
    most = 0

    async def watched(session: Session) -> AsyncIterator[int]:
        nonlocal under_way, most
        async for event in session.stream(ENV, Input("Hi"), **arguments):
            if event.type == "start":
                under_way += 1
                most = max(most, under_way)
            yield 1
        under_way -= 1

    async def one(session: Session) -> None:
        async for _ in watched(session):
            pass

    async with Session(to(max_concurrency=2)) as session, anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one, session)
    assert most == 2
    assert len(sim.requests) == 6


async def test_a_closed_session_refuses_and_connections_are_reused_without_one(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    from pollux_like import ConfigurationError

    session = Session(to())
    await session.interact(ENV, Input("Hi"), **arguments)
    await session.aclose()
    with pytest.raises(ConfigurationError, match="closed"):
        await session.interact(ENV, Input("Hi"), **arguments)
    ports = len(sim.requests)
    for _ in range(3):
        await interact(ENV, Input("Hi"), to(), **arguments)
    assert len(sim.requests) == ports + 3
