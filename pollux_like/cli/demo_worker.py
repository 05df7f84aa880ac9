"""The demo's other processes: each knows of the conversation only what the saved file says. Reports in JSON lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from pollux_like.cli.chat import load, store
from pollux_like.config import Config
from pollux_like.continuation import Continuation
from pollux_like.environment import Environment
from pollux_like.errors import PolluxLikeError
from pollux_like.input import Input
from pollux_like.messages import ToolResult
from pollux_like.output import Output
from pollux_like.tools import ToolDeclaration
from pollux_like.turn import interact

STATIONS = {"north pier": "3 m waves, wind 40 km/h", "south pier": "calm, wind 5 km/h"}
EMBEDDED = Environment(instructions="You are a helpful assistant. Answer in one short sentence.")


def read_station(station: str) -> str:
    """Read the weather station of a pier.

    Args:
        station: Name of the pier.
    """
    return STATIONS.get(station, "no such station")


AGENT = Environment(
    instructions="You watch a harbour. Read the stations, then say where a boat can land.",
    tools=[ToolDeclaration.from_function(read_station)],
)


def report(**fields: Any) -> None:
    """One line for the parent."""
    print(json.dumps(fields), flush=True)


def saved(file: Path) -> Continuation | None:
    """What an earlier process left."""
    return load(file) if file.exists() else None


async def talk(file: Path, lines: list[str]) -> None:
    """Turns on the embedded model, each saved as soon as it is complete."""
    continuation = saved(file)
    config = Config("local")
    for line in lines:
        history = None if continuation is not None else ()
        output = await interact(
            EMBEDDED, Input(line, history=history, continuation=continuation), config, max_tokens=24
        )
        continuation = output.continuation
        assert continuation is not None  # tracked from its first turn on
        store(file, continuation)
        report(
            user=line, text=output.text, digest=continuation.digest, input=output.usage.input_tokens,
            cached=output.usage.cached_tokens,
        )  # fmt: skip


async def work(file: Path, provider: str, model: str, base_url: str, *, stop_with_open_calls: int) -> None:
    """An agent loop that saves after every turn. It waits to be killed when that many rounds are open or done."""
    config = Config(provider, model, api_key="sim-key", base_url=base_url)
    arguments: dict[str, Any] = {"reasoning_effort": "low"}
    continuation = saved(file)
    if continuation is None:
        output = await interact(AGENT, Input("Where can the boat land?"), config, **arguments)
        continuation = _kept(file, output, [])
        stop_with_open_calls -= 1
    while continuation.pending_tool_calls:
        if stop_with_open_calls == 0:
            report(waiting=[call.id for call in continuation.pending_tool_calls])
            await anyio.sleep(600)  # the parent kills this process here, between a call and its result
        calls = continuation.pending_tool_calls
        results = [ToolResult(call.id, read_station(**call.arguments_dict())) for call in calls]
        output = await interact(AGENT, Input(continuation=continuation, tool_results=results), config, **arguments)
        continuation = _kept(file, output, [call.arguments_dict()["station"] for call in calls])
        stop_with_open_calls -= 1
    report(done=True)


def _kept(file: Path, output: Output, ran: list[str]) -> Continuation:
    assert output.continuation is not None  # calls are always tracked
    store(file, output.continuation)
    asked = [call.arguments_dict()["station"] for call in output.tool_calls]
    report(ran=ran, asked=asked, text=output.text, digest=output.continuation.digest)
    return output.continuation


def main() -> None:
    """`python -m pollux_like.cli.demo_worker talk|work FILE …`"""
    try:
        _work(*sys.argv[1:])
    except PolluxLikeError as error:
        report(error={"message": error.message, "hint": error.hint})
        sys.exit(1)


def _work(kind: str, file: str, *rest: str) -> None:
    if kind == "talk":
        anyio.run(talk, Path(file), list(rest))
        return
    provider, model, base_url, stop = rest

    async def loop() -> None:
        await work(Path(file), provider, model, base_url, stop_with_open_calls=int(stop))

    anyio.run(loop)


if __name__ == "__main__":
    main()
