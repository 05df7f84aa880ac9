"""A tool loop that is killed in the middle and taken up by another process, without doing anything twice.

Problem: the process dies after a tool with effects has run and before the model has seen the result.
Run: python -m cookbook run tool_loop_after_crash
Run it twice: the first run is killed on purpose. Delete loop.json and bookings.json to begin anew. Here the application
keeps state and effects in files of its own; `Conversation.run_tool` of a store does it in a database.
Success check: the second run finds the waiting call in the saved continuation, runs it again under the same call id,
finds the booking there already, and bookings.json holds one.
Real model: replace `model.config` by `Config("anthropic", "claude-haiku-4-5")`.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from pollux_like import Continuation, Environment, Input, ToolCall, ToolDeclaration, ToolResult
from pollux_like.sync import interact
from pollux_like.testing import Answer, Recorded, Scripted, answer, call, say

STATE = Path("loop.json")
BOOKINGS = Path("bookings.json")
MAX_TURNS = 8


def book(flight: str) -> str:
    """Book a flight.

    Args:
        flight: Flight number.
    """
    return f"Booked {flight}."


ENVIRONMENT = Environment(tools=[ToolDeclaration.from_function(book)])


def write(file: Path, value: object) -> None:
    """Write beside the file, then rename over it."""
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(value), "utf-8")
    os.replace(beside, file)


def run(wanted: ToolCall) -> ToolResult:
    """Run a call once. Its id is the key under which the effect is recorded, so a second time finds it done."""
    print(f"running {wanted.name} for {wanted.id}")
    if wanted.arguments_error is not None:
        return ToolResult(wanted.id, wanted.arguments_error, is_error=True)
    done = json.loads(BOOKINGS.read_text("utf-8")) if BOOKINGS.exists() else []
    if wanted.id not in {entry["call_id"] for entry in done}:
        write(BOOKINGS, [*done, {"call_id": wanted.id, **wanted.arguments_dict()}])
    return ToolResult(wanted.id, book(**wanted.arguments_dict()))


def stand_in(request: Recorded) -> Answer:
    """What the model answers here: a call, and words once it has the result."""
    if request.messages[-1]["role"] == "tool":
        return answer(say(f"Done: {request.messages[-1]['content']}"))
    return answer(call("book", {"flight": "LX 1"}, id="call_book"))


def main() -> None:
    """Go on from the saved state, or begin."""
    model = Scripted(*[stand_in] * MAX_TURNS)
    resumed = STATE.exists()
    if resumed:
        state = Continuation.from_jsonable(json.loads(STATE.read_text("utf-8")))
        print("Waiting:", *(waiting.name for waiting in state.pending_tool_calls))
    else:
        output = interact(ENVIRONMENT, Input("Book me on LX 1."), model.config)
        assert output.continuation is not None  # a turn with tool calls is always tracked
        state = output.continuation
        write(STATE, state.to_jsonable())
    for _ in range(MAX_TURNS):
        if not state.pending_tool_calls:
            return
        results = [run(waiting) for waiting in state.pending_tool_calls]
        if not resumed:
            print("Crash: the tool has run, and the model does not know it yet", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        output = interact(ENVIRONMENT, Input(continuation=state, tool_results=results), model.config)
        assert output.continuation is not None  # what goes on from a continuation is tracked
        state = output.continuation
        write(STATE, state.to_jsonable())
        print(output.text)
    raise SystemExit(f"no answer after {MAX_TURNS} turns")


if __name__ == "__main__":
    main()
