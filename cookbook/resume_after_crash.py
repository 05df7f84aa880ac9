"""A conversation in a database, taken up after a crash: SQLite here, PostgreSQL by its URL.

Problem: the process dies while the model is asked; what was said must not be lost, and not be sent as something new.
Run: python -m cookbook run resume_after_crash
Run it twice: the first run is killed on purpose. STORE_URL=postgresql://user@host/name takes a server in place of the
file talks.db; begin anew with another conversation: `--talk NAME`.
Success check: the first run stores a turn, makes the second input durable and dies inside the model call. The second
run finds that input pending, sends it, and says that two turns are stored; a third changes nothing.
Real model: replace `Scripted(stand_in).config` by `Config("openai", "gpt-5-nano")`.
"""

from __future__ import annotations

import argparse
import os
import signal

from pollux_like import ConflictError, Environment, Input
from pollux_like.store.sync import Conversation, ConversationStore, open_store
from pollux_like.testing import Answer, Recorded, Scripted, answer, say

URL = os.environ.get("STORE_URL", "sqlite:///talks.db")
SCOPE = "tenant-7"
ENVIRONMENT = Environment(instructions="Answer in one sentence.")


def stand_in(request: Recorded) -> Answer:
    """What the model answers here."""
    said = [message["content"] for message in request.messages if message["role"] == "user"]
    return answer(say(f"Heard {len(said)}: {', '.join(said)}"))


def crash(request: Recorded) -> Answer:
    """A power cut while the model thinks."""
    print("Crash", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("not reached")


def begin(store: ConversationStore, name: str) -> tuple[Conversation, bool]:
    """The conversation, and whether it is new."""
    try:
        return store.create(name, scope=SCOPE), True
    except ConflictError:
        return store.load(name, scope=SCOPE), False


def main(name: str) -> None:
    """Two turns, the second of which crashes; or whatever was left of them."""
    with open_store(URL) as store:
        conversation, new = begin(store, name)
        if new:
            print(conversation.interact(ENVIRONMENT, Input("I am Sean."), Scripted(stand_in).config).text)
            conversation.interact(ENVIRONMENT, Input("I like blue."), Scripted(crash).config)
        if conversation.pending is not None:
            print("Pending:", conversation.pending.content)
            print(conversation.resume(ENVIRONMENT, Scripted(stand_in).config).text)
        print(conversation.turns, "turns are stored")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Two turns, of which the second crashes.")
    parser.add_argument("--talk", default="talk-1", metavar="NAME")
    main(parser.parse_args().talk)
