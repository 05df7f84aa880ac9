"""An agent loop with parallel tools, four limits, and a person who approves what costs money.

Problem: the model asks for several tools at once; they must run side by side, within limits, and not without a yes.
Run: python -m cookbook run agent_loop --yes
Without `--yes` or `--no` a person is asked at the terminal; an input that has ended is a no.
Success check: the prices are fetched side by side - the first one waits for the second - and the tool that breaks does
not end the loop, because its error is a result that the model reads. `--yes` books one flight, `--no` books none, and
both end in an answer.
Real model: replace `model.config` by `Config("openai", "gpt-5-nano")`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import anyio

from pollux_like import Config, Environment, Input, Output, ToolCall, ToolDeclaration, ToolResult, interact
from pollux_like.testing import Answer, Recorded, Scripted, answer, call, say

MAX_TURNS, MAX_CALLS, MAX_TOKENS, MAX_SECONDS = 8, 20, 50_000, 120
NEEDS_APPROVAL = {"book"}
both_asked = anyio.Event()
asked: list[str] = []
booked: list[str] = []


async def price(flight: str) -> dict[str, Any]:
    """Get the price of a flight in euros."""
    asked.append(flight)
    if flight == "LX 0":
        raise LookupError("there is no such flight")
    if {"LX 1", "LX 2"} <= set(asked):
        both_asked.set()
    await both_asked.wait()  # returns only if the other call runs at the same time
    return {"flight": flight, "euros": {"LX 1": 120, "LX 2": 90}[flight]}


async def book(flight: str) -> str:
    """Book a flight. It costs money."""
    booked.append(flight)
    return f"Booked {flight}."


TOOLS: dict[str, Callable[..., Any]] = {"price": price, "book": book}
ENVIRONMENT = Environment(tools=[ToolDeclaration.from_function(tool) for tool in TOOLS.values()])


async def run(wanted: ToolCall, approve: Callable[[ToolCall], bool]) -> ToolResult:
    """Run one call. Whatever goes wrong becomes a result that the model can read."""
    if wanted.arguments_error is not None:
        return ToolResult(wanted.id, f"The arguments are unusable: {wanted.arguments_error}", is_error=True)
    if wanted.name not in TOOLS:
        return ToolResult(wanted.id, f"There is no tool {wanted.name}", is_error=True)
    if wanted.name in NEEDS_APPROVAL and not await anyio.to_thread.run_sync(approve, wanted):
        return ToolResult(wanted.id, "The user said no. Do not ask again.", is_error=True)
    try:
        return ToolResult.from_value(call_id=wanted.id, value=await TOOLS[wanted.name](**wanted.arguments_dict()))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the model should know
        return ToolResult(wanted.id, f"{type(error).__name__}: {error}", is_error=True)


async def agent(question: str, config: Config, approve: Callable[[ToolCall], bool]) -> Output:
    """Turns until there is nothing left to run. Raises RuntimeError at a limit, TimeoutError at that of time."""
    turn, calls, tokens = Input(question), 0, 0
    with anyio.fail_after(MAX_SECONDS):
        for _ in range(MAX_TURNS):
            output = await interact(ENVIRONMENT, turn, config)
            calls, tokens = calls + len(output.tool_calls), tokens + output.usage.total_tokens
            if output.finish.status == "pause":
                turn = Input(continuation=output.continuation)
                continue
            if not output.tool_calls:
                return output
            if calls > MAX_CALLS or tokens > MAX_TOKENS:
                raise RuntimeError(f"stopped after {calls} calls and {tokens} tokens")
            results: list[ToolResult] = []

            async def one(wanted: ToolCall, results: list[ToolResult] = results) -> None:
                results.append(await run(wanted, approve))

            async with anyio.create_task_group() as group:  # results may come in any order
                for wanted in output.tool_calls:
                    group.start_soon(one, wanted)
            turn = Input(continuation=output.continuation, tool_results=results)
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


def stand_in(request: Recorded) -> Answer:
    """What the model answers here: three prices at once, a booking of the cheaper flight, then words."""
    results = [message for message in request.messages if message["role"] == "tool"]
    if not results:
        return answer(*(call("price", {"flight": f"LX {n}"}, id=f"price_{n}") for n in range(3)))
    if len(results) == 3:
        return answer(call("book", {"flight": "LX 2"}, id="book_1"))
    return answer(say(f"In the end: {results[-1]['content']}"))


def ask(wanted: ToolCall) -> bool:
    """Ask at the terminal. What the model wrote is shown as a repr, so that it cannot paint over the question."""
    try:
        return input(f"Run {wanted.name} with {wanted.arguments_text!r}? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


def main(arguments: list[str]) -> None:
    """Run the agent on the stand-in, and say what happened."""
    approve = {"--yes": lambda _: True, "--no": lambda _: False}.get(" ".join(arguments), ask)
    model = Scripted(*[stand_in] * MAX_TURNS)
    output = anyio.run(agent, "Book me on the cheapest of LX 0, LX 1 and LX 2.", model.config, approve)
    print(f"Asked: {', '.join(sorted(asked))}. Booked: {', '.join(booked) or 'nothing'}.")
    print(output.text)


if __name__ == "__main__":
    main(sys.argv[1:])
