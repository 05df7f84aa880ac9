"""Other processes that use a store: one that appends, one that plays turns with tools until it is killed.

`python worker.py race URL ID COUNT NAME` prints `revision NAME` for each turn that it won.
`python worker.py crash URL ID EFFECTS` plays turns for ever and prints `turn N` after each acknowledged one; each tool
call leaves a line in the file EFFECTS, which stands for a side effect in the world.
"""

from __future__ import annotations

import os
import sys

import anyio

from pollux_like import ConflictError, Environment, Input, ToolDeclaration, ToolResult
from pollux_like.errors import PendingInputError, UnknownEffectError
from pollux_like.store import Conversation, open_store
from pollux_like.testing import Scripted, call, say

SCOPE = "processes"
ENV = Environment(tools=[ToolDeclaration("book")])


async def race(url: str, name: str, count: int, who: str) -> None:
    """Append `count` turns against everybody else."""
    async with open_store(url, synchronous="normal") as store:
        won = 0
        while won < count:
            conversation = await store.load(name, scope=SCOPE)
            if conversation.pending is not None:
                await anyio.sleep(0.001)  # it is another's turn: its end is not announced
                continue
            try:
                await conversation.interact(ENV, Input(f"{who} {won}"), Scripted([say("ok")]).config)
            except (ConflictError, PendingInputError):
                continue
            won += 1
            print(conversation.revision, who, flush=True)


async def crash(url: str, name: str, effects: str) -> None:
    """Go on from wherever the store says that the last process stopped."""
    async with open_store(url, synchronous="normal") as store:
        conversation = await store.load(name, scope=SCOPE)
        while True:
            await step(conversation, effects)
            print("turn", conversation.turns, flush=True)


async def step(conversation: Conversation, effects: str) -> None:
    """One turn: a user's turn asks for a tool, its result brings text."""
    number = conversation.turns + 1
    calls = conversation.pending_tool_calls
    said = [say(f"done {number}")] if calls else [call("book", {"turn": number}, id=f"call_{number}")]
    model = Scripted(said)
    if conversation.pending is not None:
        await conversation.resume(ENV, model.config)
    elif calls:
        results = [await result(conversation, one, effects) for one in calls]
        await conversation.interact(ENV, Input(tool_results=results), model.config)
    else:
        await conversation.interact(ENV, Input(f"turn {number}"), model.config)


async def result(conversation: Conversation, one: object, effects: str) -> ToolResult:
    """At most once, or unknown, which is decided here: it is given up."""
    (made,) = (each for each in conversation.pending_tool_calls if each is one)

    def book(turn: int) -> str:
        with open(effects, "a", encoding="utf-8") as file:
            file.write(f"{made.id}\n")
        return f"booked {turn}"

    try:
        return await conversation.run_tool(made, book)
    except UnknownEffectError:
        print("unknown", made.id, flush=True)
        settled = await conversation.effects.resolve(made, ToolResult(made.id, "unknown", is_error=True))
        assert settled.result is not None
        return settled.result


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    if role == "race":
        anyio.run(race, words[0], words[1], int(words[2]), words[3])
    else:
        print("pid", os.getpid(), flush=True)
        anyio.run(crash, *words)
