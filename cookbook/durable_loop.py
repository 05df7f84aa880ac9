"""An agent loop as a DBOS workflow: a worker is killed, another one finishes, and nothing is done twice.

Problem: a loop has to go on elsewhere when its worker dies, without whole histories stored again at every step.
Run: python -m cookbook run durable_loop --crash-in tool
Run it again without the option; `--crash-in model` dies while the model is asked. Needs `pip install dbos`. STORE_URL
and DBOS_SYSTEM_DATABASE_URL take PostgreSQL in place of the files talks.db and dbos.db.
Success check: the first worker dies inside its second booking. The second is given the workflow, asks the airline about
that booking, and goes on: three bookings, each once. DBOS keeps references of under 100 bytes.
Real model: replace `model.config` by `Config("openai", "gpt-5-nano")`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path
from typing import TypedDict

from dbos import DBOS, SetWorkflowID

from pollux_like import ConflictError, Environment, Input, ToolDeclaration, ToolResult
from pollux_like.errors import UnknownEffectError
from pollux_like.store.sync import Conversation, open_store
from pollux_like.testing import Answer, Recorded, Scripted, answer, call, say

STORE = os.environ.get("STORE_URL", "sqlite:///talks.db")
DATABASE = os.environ.get("DBOS_SYSTEM_DATABASE_URL", "sqlite:///dbos.db")
SCOPE = "tenant-7"
AIRLINE, ASKED = Path("bookings.jsonl"), Path("asked.jsonl")
MAX_TURNS = 8
crash_in: str | None = None


class Reference(TypedDict):
    """All that the workflow keeps of a turn."""

    turns: int
    calls: list[str]


def write(file: Path, value: object) -> None:
    """Add a line."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(value) + "\n")


def book(flight: str) -> str:
    """Book a flight.

    Args:
        flight: Flight number.
    """
    write(AIRLINE, flight)
    print(f"Booked {flight}", flush=True)
    if crash_in == "tool" and flight == "LX 2":
        os.kill(os.getpid(), signal.SIGKILL)
    return f"Booked {flight}."


ENVIRONMENT = Environment(tools=[ToolDeclaration.from_function(book)])


def booked() -> list[str]:
    """The airline's own records."""
    return [json.loads(line) for line in AIRLINE.read_text("utf-8").splitlines()] if AIRLINE.exists() else []


def stand_in(request: Recorded) -> Answer:
    """What the model answers here: three bookings, one after the other, and then words."""
    results = [message["content"] for message in request.messages if message["role"] == "tool"]
    write(ASKED, len(results))
    if crash_in == "model" and len(results) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(results) == 3:
        return answer(say(f"Done: {' '.join(results)}"))
    number = len(results) + 1
    return answer(call("book", {"flight": f"LX {number}"}, id=f"call_{number}"))


def reference(conversation: Conversation) -> Reference:
    """What the next step has to know."""
    return {"turns": conversation.turns, "calls": [call.id for call in conversation.pending_tool_calls]}


@DBOS.step()
def turn(talk: str, after: int, question: str | None) -> Reference:
    """One model call, unless the store has its answer: DBOS runs a step again whose end it did not see."""
    with open_store(STORE) as store:
        try:
            conversation = store.create(talk, scope=SCOPE)
        except ConflictError:
            conversation = store.load(talk, scope=SCOPE)
        if conversation.turns == after:
            results = [conversation.run_tool(wanted, book) for wanted in conversation.pending_tool_calls]  # recorded
            model = Scripted(stand_in)
            key = f"{DBOS.workflow_id}:{after}"  # takes over what this step itself left pending
            conversation.interact(ENVIRONMENT, Input(question, tool_results=results), model.config, key=key)
        return reference(conversation)


@DBOS.step()
def tool(talk: str, call_id: str) -> str:
    """One call, at most once: an effect that was begun and not recorded is looked up at the airline."""
    with open_store(STORE) as store:
        conversation = store.load(talk, scope=SCOPE)
        (wanted,) = (each for each in conversation.pending_tool_calls if each.id == call_id)
        try:
            conversation.run_tool(wanted, book)
        except UnknownEffectError:
            flight = wanted.arguments_dict()["flight"]
            print(f"Unknown: {flight}", flush=True)
            if flight in booked():
                conversation.effects.resolve(wanted, ToolResult(wanted.id, f"Booked {flight}."))
            else:
                conversation.effects.release(wanted)
                conversation.run_tool(wanted, book)
        return call_id


@DBOS.workflow()
def agent(talk: str, question: str) -> Reference:
    """The loop. What it passes on fits a postcard, however long the conversation becomes."""
    last = turn(talk, 0, question)
    while last["calls"] and last["turns"] < MAX_TURNS:
        for call_id in last["calls"]:
            tool(talk, call_id)
        last = turn(talk, last["turns"], None)
    return last


def main() -> None:
    """Start the workflow, or get the one that was begun: launching recovers what a dead worker left."""
    DBOS(config={"name": "bookings", "system_database_url": DATABASE, "application_version": "1", "log_level": "ERROR"})
    DBOS.launch()
    with SetWorkflowID("booking-1"):
        handle = DBOS.start_workflow(agent, "talk-1", "Book me on three flights.")
    last = handle.get_result()
    DBOS.destroy()
    with open_store(STORE) as store:
        shown = store.load("talk-1", scope=SCOPE).transcript()
    print(f"{last['turns']} turns. {shown[-1].messages[-1].content}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Book three flights in a workflow.")
    parser.add_argument("--crash-in", choices=["tool", "model"])
    crash_in = parser.parse_args().crash_in
    main()
