"""Many sessions and many calls at once: every call answers once, and nothing is left behind.

The small sample runs always; `POLLUX_LIKE_SOAK=1` runs 1,000 open sessions and 200 concurrent calls over three rounds,
and random cuts, cancellations and reconnects.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random

import anyio
import pytest
from environment_support import INSTANCES, Cutter, Harbour

from pollux_like.environments import AsyncEnvironmentClient, AsyncSession, Limits, Server
from pollux_like.errors import PolluxLikeError

from .conftest import QUICK

SOAK = os.environ.get("POLLUX_LIKE_SOAK") == "1"
SESSIONS, CALLS, AT_ONCE = (1000, 4, 200) if SOAK else (50, 4, 50)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The load is the server's, which is on asyncio; the client on trio is tested elsewhere."""
    return "asyncio"


async def one_round(address: str, number: int) -> int:
    """Open all sessions, call all tools, close all; returns how many calls were answered rightly."""
    right = 0
    limit = anyio.Semaphore(AT_ONCE)
    everybody, arrived = anyio.Event(), 0
    async with AsyncEnvironmentClient(address, patience=QUICK) as environment:

        async def play(index: int) -> None:
            nonlocal right, arrived
            async with environment.session(task={"conversation": [], "n": index}) as session:
                arrived += 1
                if arrived == SESSIONS:
                    everybody.set()
                await everybody.wait()
                for call in range(CALLS):
                    async with limit:
                        output = await session.call_tool(
                            "echo", {"text": f"{number}:{index}:{call}" + " " * (index % 7) * 1000}
                        )
                    right += getattr(output.blocks[0], "text", "").startswith(f"{number}:{index}:{call}")

        async with anyio.create_task_group() as group:
            for index in range(SESSIONS):
                group.start_soon(play, index)
    return right


async def test_open_sessions_and_concurrent_calls_leave_nothing_behind() -> None:
    with Server([Harbour], limits=Limits(idle_s=600)) as server:
        await one_round(server.base_url, 0)  # what is loaded and cached once
        INSTANCES.clear()
        gc.collect()
        own: list[int] = []
        objects: list[int] = []
        for number in range(1, 4):
            assert await one_round(server.base_url, number) == SESSIONS * CALLS
            assert server.open_sessions == 0
            assert all(instance.log.count("echo") == CALLS and instance.log[-1] == "teardown" for instance in INSTANCES)
            assert len(INSTANCES) == SESSIONS
            INSTANCES.clear()
            gc.collect()
            live = gc.get_objects()
            ours = [one for one in live if str(type(one).__module__).startswith("pollux_like.environments")]
            own.append(sum(not isinstance(one, asyncio.Protocol) for one in ours))  # connections come and go
            objects.append(len(live))
            del live, ours
    assert own[-1] <= own[0], own
    assert objects[-1] < objects[0] * 1.1, objects


async def test_cuts_cancellations_and_reconnects_lose_no_result_and_run_no_tool_twice() -> None:
    rng = random.Random(20)
    rounds = 40 if SOAK else 4

    def rule(request: bytes, data: bytes) -> int | None:
        return rng.randrange(len(data)) if b"/call " in request and rng.random() < 0.3 else None

    answered: dict[str, int] = {}
    with Server([Harbour]) as server, Cutter(int(server.base_url.rsplit(":", 1)[1]), rule) as way:
        async with AsyncEnvironmentClient(way.base_url, patience=QUICK) as environment:

            async def call(session: AsyncSession, text: str, *, give_up: bool) -> None:
                with anyio.CancelScope() as scope:
                    if give_up:
                        scope.cancel()
                    output = await session.call_tool("echo", {"text": text})
                    assert getattr(output.blocks[0], "text", None) == text
                    answered[text] = answered.get(text, 0) + 1

            async def play(index: int) -> None:
                async with (
                    environment.session(task={"conversation": [], "n": index}) as session,
                    anyio.create_task_group() as group,
                ):
                    for number in range(6):
                        group.start_soon(lambda n=number: call(session, f"{index}:{n}" + " y" * 3000, give_up=n == 5))

            for start in range(0, rounds * 5, 5):
                async with anyio.create_task_group() as group:
                    for index in range(start, start + 5):
                        group.start_soon(play, index)
    assert way.cuts > rounds
    assert len(answered) == rounds * 5 * 5
    assert set(answered.values()) == {1}
    assert all(5 <= instance.log.count("echo") <= 6 for instance in INSTANCES)


async def test_a_full_server_refuses_and_goes_on() -> None:
    with Server([Harbour], limits=Limits(sessions=3)) as server:
        one = {"conversation": []}
        async with (
            AsyncEnvironmentClient(server.base_url, patience=QUICK) as environment,
            environment.session(task=one),
            environment.session(task=one),
            environment.session(task=one) as last,
        ):
            with pytest.raises(PolluxLikeError, match="429"):
                async with environment.session(task=one):
                    pass
            assert await last.get_messages() == []
