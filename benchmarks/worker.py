"""A contender in its own process: `python -m benchmarks.worker NAME` reads orders from standard input, one JSON a line.

An order names a case, a wire and an address; the answer, one JSON a line, has the seconds of CPU (this process, all
threads) and of wall time that it took, or the error. Every answer's text is checked. Clients stay open, as in a
server, so that a round measures turns and not connecting. The garbage collector is left as Python has it.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.work import ANSWER, Client, streamed

EARLY, LATE = slice(1, 6), slice(45, 50)
"""Turns 2 to 6 and 46 to 50 of a loop."""


def expect(text: str, wanted: str) -> None:
    """Raises AssertionError where the answer is not the server's."""
    if text.strip() != wanted.strip():
        raise AssertionError(f"the answer is {text[:40]!r} ({len(text)} characters)")


def clocks() -> tuple[float, float]:
    """CPU and wall, in seconds."""
    return time.process_time(), time.perf_counter()


async def turn(client: Client, *, repeat: int) -> dict[str, float]:
    """Short turns, one after the other; seconds of each."""
    cpu, wall = clocks()
    for _ in range(repeat):
        expect(await client.turn(), ANSWER)
    ended = clocks()
    return {"cpu": (ended[0] - cpu) / repeat, "wall": (ended[1] - wall) / repeat}


async def loop(client: Client, *, turns: int) -> dict[str, float]:
    """A tool loop; seconds of all, and of a turn at its begin and at its end."""
    marks = [clocks()]
    expect(await client.loop(turns, lambda: marks.append(clocks())), ANSWER)
    ended = clocks()
    if len(marks) != turns + 1:
        raise AssertionError(f"the loop took {len(marks) - 1} turns")
    found = {"cpu": ended[0] - marks[0][0], "wall": ended[1] - marks[0][1]}
    steps = [after[0] - before[0] for before, after in itertools.pairwise(marks)]
    if len(steps) >= LATE.stop:
        found |= {"early": sum(steps[EARLY]) / 5, "late": sum(steps[LATE]) / 5}
    return found


async def stream(client: Client, *, deltas: int) -> dict[str, float]:
    """A streamed answer; seconds for each delta, the final answer included, and until the first."""
    marks: list[tuple[float, float]] = []
    cpu, wall = clocks()
    expect(await client.stream(lambda: marks.append(clocks())), streamed(deltas))
    ended = clocks()
    return {"cpu": (ended[0] - cpu) / deltas, "wall": (ended[1] - wall) / deltas, "first": marks[0][1] - wall}


async def crowd(client: Client, *, conversations: int, turns: int) -> dict[str, float]:
    """Conversations at once, each with a short turn under way at all times; seconds per turn and p99 of a turn."""
    took: list[float] = []

    async def talk() -> None:
        for _ in range(turns):
            began = time.perf_counter()
            expect(await client.turn(), ANSWER)
            took.append(time.perf_counter() - began)

    cpu, wall = clocks()
    await asyncio.gather(*(talk() for _ in range(conversations)))
    ended, count = clocks(), conversations * turns
    p99 = sorted(took)[math.ceil(0.99 * count) - 1]
    return {"cpu": (ended[0] - cpu) / count, "wall": (ended[1] - wall) / count, "p99": p99}


CASES: dict[str, Callable[..., Any]] = {"turn": turn, "loop": loop, "stream": stream, "crowd": crowd}


class Worker:
    """The contender's clients by wire and address."""

    def __init__(self, name: str) -> None:
        self._contender = importlib.import_module(f"benchmarks.contenders.{name}")
        self._clients: dict[tuple[str, str], Client] = {}

    async def obey(self, order: dict[str, Any]) -> dict[str, float]:
        """Carry one order out."""
        key = order["wire"], order["url"]
        if key not in self._clients:
            self._clients[key] = await self._contender.connect(*key)
        found: dict[str, float] = await CASES[order["case"]](self._clients[key], **order["options"])
        return found

    async def aclose(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            await client.aclose()


def main(name: str) -> None:
    """Obey until standard input ends. What the contender prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with asyncio.Runner() as runner:
        worker = Worker(name)
        for line in sys.stdin:
            try:
                found: dict[str, Any] = runner.run(worker.obey(json.loads(line)))
            except Exception as error:  # noqa: BLE001  whatever a contender raises is its result
                found = {"error": f"{type(error).__name__}: {error}".strip().splitlines()[-1][:300]}
            print(json.dumps(found), file=answers, flush=True)
        runner.run(worker.aclose())


if __name__ == "__main__":
    main(sys.argv[1])
