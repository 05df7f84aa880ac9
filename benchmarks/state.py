"""What a conversation's state costs, each in a fresh process that prints its samples: saving, restoring, holding.

python -m benchmarks.state save URL WIRE TURNS
python -m benchmarks.state hold URL CONVERSATIONS TURNS rss|traced
python -m benchmarks.state share URL TURNS BRANCHES
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import sys
import time
import tracemalloc
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import wires
from benchmarks.contenders import ours
from benchmarks.work import QUESTION, RESULT
from pollux_like import Continuation, Input, ToolResult

Sample = tuple[str, str, str, dict[str, float]]
ROUNDS = 9
FIRST_TURNS = 5


def nothing() -> None:
    """No mark."""


async def conversation(client: ours.Client, turns: int) -> Continuation:
    """A tool loop of that many turns, over the wire."""
    output = await client.looped(turns, nothing)
    assert output.continuation is not None
    return output.continuation


def wire_json(url: str, wire: str) -> list[Any]:
    """The conversation's own wire JSON: what the newest request held, and the answer to it."""
    with urllib.request.urlopen(f"{url}/last") as response:
        history: list[Any] = json.loads(response.read())[wires.HISTORY[wire]]
    wires.grown(wire, history, wires.text_answer(wire))
    return history


def cpu(work: Callable[[], Any]) -> float:
    """Seconds of CPU."""
    began = time.process_time()
    work()
    return time.process_time() - began


async def save(url: str, wire: str, turns: int) -> list[Sample]:
    """Bytes, saving and restoring against `json` on the wire JSON, in alternation; and the first turn after a restore."""
    client = await ours.connect(wire, f"{url}/loop-{turns}")
    state = await conversation(client, turns)
    whole = wire_json(url, wire)
    text, own = json.dumps(state.to_jsonable()), json.dumps(whole)
    made: list[Sample] = []
    for _ in range(ROUNDS):
        dumped = cpu(lambda: json.dumps(state.to_jsonable())), cpu(lambda: json.dumps(whole))
        loaded = cpu(lambda: Continuation.from_jsonable(json.loads(text))), cpu(lambda: json.loads(own))
        made.append(("save", wire, "ours", {"bytes": len(text), "save": dumped[0], "restore": loaded[0]}))
        made.append(
            ("save", wire, "json", {"bytes": len(wires.compact(whole)), "save": dumped[1], "restore": loaded[1]})
        )
    assert Continuation.from_jsonable(json.loads(text)) == state
    for _ in range(FIRST_TURNS):
        restored = Continuation.from_jsonable(json.loads(text))
        for who, one in (("live", state), ("restored", restored)):
            began = time.process_time()
            await client.interact(Input(QUESTION, continuation=one))
            made.append(("first turn", wire, who, {"cpu": time.process_time() - began}))
    return made


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def hold(url: str, conversations: int, turns: int, how: str) -> list[Sample]:
    """Bytes for conversations restored from their saved text, each taken one turn further and held at once."""
    wire = "responses"
    client = await ours.connect(wire, f"{url}/loop-{turns}")
    text = json.dumps((await conversation(client, turns - 1)).to_jsonable())
    await client.interact(Input(tool_results=_results(text), continuation=Continuation.from_jsonable(json.loads(text))))
    size = len(wires.compact(wire_json(url, wire)))
    if how == "traced":
        tracemalloc.start()
    measure = resident if how == "rss" else lambda: tracemalloc.get_traced_memory()[0]
    gc.collect()
    before, held = measure(), list[Continuation]()
    for _ in range(conversations):
        restored = Continuation.from_jsonable(json.loads(text))
        output = await client.interact(Input(tool_results=_results(text), continuation=restored))
        assert output.continuation is not None
        held.append(output.continuation)
    gc.collect()
    bytes_ = measure() - before
    return [
        ("hold", f"{len(held)} x {turns}", "ours", {how: bytes_}),
        ("hold", f"{len(held)} x {turns}", "json", {how: size * len(held)}),
    ]


@functools.cache
def _results(text: str) -> tuple[Any, ...]:
    pending = Continuation.from_jsonable(json.loads(text)).pending_tool_calls
    return tuple(ToolResult(call.id, RESULT) for call in pending)


async def share(url: str, turns: int, branches: int) -> list[Sample]:
    """Bytes that one more continuation of the same history takes, against the bytes of the history as JSON."""
    wire = "responses"
    base = await conversation(await ours.connect(wire, f"{url}/loop-{turns}"), turns)
    size = len(wires.compact(wire_json(url, wire)))
    client = await ours.connect(wire, f"{url}/text")
    await client.interact(Input(QUESTION, continuation=base))
    gc.collect()
    tracemalloc.start()
    outputs = [await client.interact(Input(QUESTION, continuation=base)) for _ in range(branches)]
    held = [output.continuation for output in outputs]
    del outputs
    gc.collect()
    each = tracemalloc.get_traced_memory()[0] / len(held)
    return [
        ("share", f"{turns} turns", "ours", {"traced": each}),
        ("share", f"{turns} turns", "json", {"traced": size}),
    ]


def main(what: str, *words: str) -> None:
    """Measure one thing."""
    numbers = [int(word) if word.isdigit() else word for word in words]
    what_there_is: dict[str, Callable[..., Any]] = {"save": save, "hold": hold, "share": share}
    print(json.dumps(asyncio.run(what_there_is[what](*numbers))))


if __name__ == "__main__":
    main(*sys.argv[1:])
