"""An agent loop as a DBOS workflow: a worker is killed, another one finishes, and nothing is done twice.

Problem: a loop of model calls and tools has to go on on another machine when its worker dies, and each engine of
durable workflows keeps what its steps return: whole histories would be stored again at every step.
When: loops of minutes or hours, with effects, on workers that come and go.
Run: python cookbook/durable_loop_on_dbos.py --crash-in tool
Run it again without the option. Needs `pip install dbos`. STORE_URL and DBOS_SYSTEM_DATABASE_URL take PostgreSQL in
place of the files talks.db and dbos.db; `--crash-in model` dies while the model is asked.
What you see: the first worker dies inside its second booking, when the seat is booked and nobody knows yet. The second
worker is given the workflow by DBOS, returns the finished steps from DBOS, asks the airline about the booking that is
unknown, and goes on. Each turn is a step and each tool is a step. They pass references - which conversation, how many
turns, which calls - and the conversation itself stays in the store.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TypedDict

from dbos import DBOS, SetWorkflowID

from pollux_like import ConflictError, Environment, Input, ToolCall, ToolDeclaration, ToolResult
from pollux_like.errors import UnknownEffectError
from pollux_like.store.sync import Conversation, open_store
from pollux_like.testing import Answer, Recorded, Scripted, answer, call, say

STORE = os.environ.get("STORE_URL", "sqlite:///talks.db")
DATABASE = os.environ.get("DBOS_SYSTEM_DATABASE_URL", "sqlite:///dbos.db")
SCOPE = "tenant-7"
AIRLINE = Path("bookings.jsonl")
ASKED = Path("asked.jsonl")
MAX_TURNS = 8
crash_in = ""


class Reference(TypedDict):
    """All that the workflow keeps of a turn."""

    turns: int
    calls: list[str]


def book(flight: str) -> str:
    """Book a flight.

    Args:
        flight: Flight number.
    """
    with AIRLINE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(flight) + "\n")
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
    with ASKED.open("a", encoding="utf-8") as file:
        file.write(json.dumps(len(results)) + "\n")
    if crash_in == "model" and len(results) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(results) == 3:
        return answer(say(f"Done: {' '.join(results)}"))
    number = len(results) + 1
    return answer(call("book", {"flight": f"LX {number}"}, id=f"call_{number}"))


def reference(conversation: Conversation) -> Reference:
    """What the next step has to know."""
    return {"turns": conversation.turns, "calls": [call.id for call in conversation.pending_tool_calls]}


def result(conversation: Conversation, wanted: ToolCall) -> ToolResult:
    """The recorded result of a call; every call of the round has one when its turn comes."""
    found = conversation.effects.status(wanted).result
    assert found is not None
    return found


@DBOS.step()
def turn(talk: str, after: int, question: str | None) -> Reference:
    """One model call, unless the store has its answer: DBOS runs a step again whose end it did not see."""
    with open_store(STORE) as store:
        try:
            conversation = store.create(talk, scope=SCOPE)
        except ConflictError:
            conversation = store.load(talk, scope=SCOPE)
        if conversation.turns == after:
            results = [result(conversation, wanted) for wanted in conversation.pending_tool_calls]
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
    crash_in = sys.argv[2] if sys.argv[1:2] == ["--crash-in"] else ""
    main()
