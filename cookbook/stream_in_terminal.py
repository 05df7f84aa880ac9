"""A chat that streams into a terminal: answer, displayed reasoning and tokens as they come.

Problem: a person waits for the answer; words have to appear as they are made, and Ctrl-C must not spoil the chat.
Run: python -m cookbook run stream_in_terminal "I am Sean." "Who am I?"
Without a message it reads lines until the input ends. The stand-in is a loopback server with the wire of Anthropic, so
what is printed came through the real SDK as server-sent events.
Success check: both answers appear in pieces, reasoning in brackets before them; the second answer was sent three
messages. An answer left with Ctrl-C does not exist: the chat goes on from the turn before it.
Real model: give `chat` the config `Config("anthropic", "claude-sonnet-4-5")`, and no simulator is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pollux_like import APIError, Config, Continuation, Environment, Input
from pollux_like.simulator import Recorded, Simulator
from pollux_like.sync import stream
from pollux_like.testing import Answer, answer, say, think

ENVIRONMENT = Environment(instructions="Answer in one sentence.")
BUDGET_TOKENS = 1024


def stand_in(request: Recorded) -> Answer:
    """What the model answers here."""
    count = len(request.body["messages"])
    return answer(think("They want a number."), say(f"I was sent {count} message{'s' if count > 1 else ''}."))


def show(turn: Input, config: Config) -> Continuation | None:
    """Print one turn as it comes. Returns the state after it, which is made by the last event alone."""
    thinking = False
    with stream(ENVIRONMENT, turn, config, reasoning_budget_tokens=BUDGET_TOKENS) as events:
        for event in events:
            if thinking != (event.type == "reasoning_delta") and event.type in ("reasoning_delta", "text_delta"):
                thinking = not thinking
                print("(" if thinking else ")\n", end="", flush=True)
            if event.type in ("reasoning_delta", "text_delta"):
                print(event.text, end="", flush=True)
            elif event.type == "notice" and event.notice is not None:
                print(f"[{event.notice.message}]", file=sys.stderr)
            elif event.type == "done" and event.output is not None:
                print(f"\n[{event.output.finish.status}, {event.output.usage.total_tokens} tokens]")
                return event.output.continuation
    return None


def chat(lines: Iterable[str], config: Config) -> None:
    """One turn per line. A turn that is interrupted or fails leaves the state of the one before it."""
    state: Continuation | None = None
    for line in lines:
        turn = Input(line, history=[]) if state is None else Input(line, continuation=state)
        try:
            state = show(turn, config) or state
        except KeyboardInterrupt:
            print("\n[left; the chat goes on from the turn before]")
        except APIError as error:
            print(f"\n[{error}]", file=sys.stderr)


def main(lines: Iterable[str]) -> None:
    """Chat with the stand-in."""
    with Simulator() as sim:
        sim.reply(stand_in, times=10_000)
        key, url = "sim-key", sim.base_url("anthropic")
        chat(lines, Config("anthropic", "claude-sonnet-4-5", api_key=key, base_url=url))


if __name__ == "__main__":
    main(sys.argv[1:] or (line for line in map(str.strip, sys.stdin) if line))
