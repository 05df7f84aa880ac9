"""Ids, names and results of portable tool calls on the wire: legal for the target, one to one, always the same.

Ids that a provider made go back to it untouched; this room is for calls that another provider, or nobody, numbered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pollux_like import canonical
from pollux_like.messages import Message

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Taken by every provider: OpenAI allows 64 characters, Anthropic only this alphabet."""
LEGAL_SHORT = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""For chat completions: several servers still stop at 40 characters."""


def wire_ids(messages: Sequence[Message], legal: re.Pattern[str] = LEGAL) -> list[tuple[str, ...]]:
    """For each message the wire ids of its calls, or of the call that it answers.

    An illegal id, and one that was used before in these messages, becomes a hash of the id and its occurrence. A result
    whose call is not among the messages answers the provider's own call, and keeps the provider's id.
    """
    seen: dict[str, int] = {}
    current: dict[str, str] = {}
    result: list[tuple[str, ...]] = []
    for message in messages:
        if message.role == "tool":
            call_id = message.tool_call_id or ""
            result.append((current.get(call_id, call_id),))
            continue
        for call in message.tool_calls:
            times = seen[call.id] = seen.get(call.id, 0) + 1
            kept = times == 1 and legal.fullmatch(call.id)
            current[call.id] = call.id if kept else "call_" + canonical.sha256(f"{times}:{call.id}")[:32]
        result.append(tuple(current[call.id] for call in message.tool_calls))
    return result


def wire_name(name: str) -> str:
    """The name of a called tool, made legal where history holds one that no provider takes."""
    if LEGAL.fullmatch(name):
        return name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:48] + "_" + canonical.sha256(name)[:8]


def spoken_result(message: Message) -> str:
    """The text of a tool result for dialects without an error flag: a failure says so in words."""
    if not message.is_error:
        return message.content
    return f"Error: {message.content}" if message.content else "Error"


def made_up(position: int, seed: str) -> str:
    """An id for a call that came without one: unique by position and by the text of the reply that holds it."""
    return f"call_{canonical.sha256(f'{position}:{seed}')[:24]}"
