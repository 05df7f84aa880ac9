"""A chat that goes on tomorrow: the continuation is saved to a file after every turn.

Problem: a conversation has to outlive the process, with the provider's own state and not as flattened text.
Run: python -m cookbook run chat_loop "I am Sean."
Run it again with another message. Without one it reads lines until the input ends. Delete chat.json to begin anew. For
many conversations at once take a store: see resume_after_crash.
Success check: the stand-in counts the messages that it was sent and quotes the first. The second run says three, and
that the first is still there; the folder holds chat.json and nothing else.
Real model: replace `model.config` by `Config("openai", "gpt-5-nano")`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from pollux_like import Continuation, Environment, Input
from pollux_like.sync import interact
from pollux_like.testing import Answer, Recorded, Scripted, answer, say

FILE = Path("chat.json")
ENVIRONMENT = Environment(instructions="Answer in one sentence.")


def load() -> Continuation | None:
    """The saved conversation, or None for a new one."""
    return Continuation.from_jsonable(json.loads(FILE.read_text("utf-8"))) if FILE.exists() else None


def save(continuation: Continuation) -> None:
    """Write beside the file, then rename over it: a crash leaves the old state or the new, never half of one."""
    beside = FILE.with_suffix(".new")
    beside.write_text(json.dumps(continuation.to_jsonable()), "utf-8")
    os.replace(beside, FILE)


def stand_in(request: Recorded) -> Answer:
    """What the model answers here."""
    count = len(request.messages)
    first = request.messages[0]["content"]
    return answer(say(f"I was sent {count} message{'s' if count > 1 else ''}, and the first says: {first}"))


def main(lines: Iterable[str]) -> None:
    """One turn per line."""
    continuation = load()
    for line in lines:
        model = Scripted(stand_in)
        turn = Input(line, continuation=continuation) if continuation else Input(line, history=[])
        output = interact(ENVIRONMENT, turn, model.config)
        print(output.text)
        continuation = output.continuation
        assert continuation is not None  # history=[] and a continuation both opt into tracking
        save(continuation)


if __name__ == "__main__":
    main(sys.argv[1:] or (line for line in map(str.strip, sys.stdin) if line))
