"""Gemini's own parts on their way back: replayed to the letter and in place, but for what the API then refuses.

The list (each with the answer of the API that it avoids):
* a part without anything in it, and empty text that carries no signature: "must have one initialized field". Streams
  end in such parts. Empty text *with* a signature stays: it is where the signature of a streamed answer arrives.

A signature stays on the very part it came with, in the alphabet it came in: a moved or respelled one is "Corrupted
thought signature." Unsigned parallel calls stay unsigned (the thought-signatures guide: only the first is signed).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pollux_like import api_errors, wire_ids
from pollux_like.errors import ConfigurationError
from pollux_like.messages import ToolCall
from pollux_like.turns import Turn

Part = dict[str, Any]


def replayed(turn: Turn) -> list[str]:
    """The texts of the turn's parts as the next request carries them."""
    return [text for text, part in decoded(turn) if says(part)]


def decoded(turn: Turn) -> list[tuple[str, Part]]:
    """Each part with its text."""
    return [(text, json.loads(text)) for text in turn.native]


def says(part: Part) -> bool:
    """Whether there is anything in a part, a signature included."""
    held = part.keys() - {"thought"}
    return bool(part.get("text")) or bool(held - {"text"})


def signature(part: Part) -> str | None:
    """The thought signature of a part, as it came."""
    return api_errors.word(part, "thoughtSignature") or api_errors.word(part, "thought_signature")


def function_call(part: Part) -> Part | None:
    """The call that a part holds."""
    for key in ("functionCall", "function_call"):
        if isinstance(part.get(key), dict):
            return api_errors.member(part, key)
    return None


def answers(turn: Turn | None) -> dict[str, tuple[str | None, str]]:
    """For each call of a turn, by the id that the caller sees: the id on the wire (None where none came), the name."""
    if turn is None:
        return {}
    found = [call for _, part in decoded(turn) if (call := function_call(part)) is not None]
    if len(found) != len(turn.calls):
        raise ConfigurationError("the continuation names other calls than its items hold", hint="Restore it")
    return {call.id: (api_errors.word(theirs, "id"), call.name) for call, theirs in zip(turn.calls, found, strict=True)}


def spoken(parts: list[Part]) -> tuple[str, str]:
    """Text and reasoning: only parts that are flagged as thoughts are reasoning, a signature says nothing of that."""
    said: dict[bool, list[str]] = {False: [], True: []}
    for part in parts:
        text = part.get("text")
        if isinstance(text, str):
            said[part.get("thought") is True].append(text)
    return "".join(said[False]), "".join(said[True])


def kind(part: Part) -> str:
    """What a part is, for losses: its own word for it."""
    if part.get("thought") is True:
        return "thought"
    apart = ("thoughtSignature", "thought_signature", "thought", "partMetadata", "videoMetadata")
    return next((key for key in part if key not in apart), "signature")


def names(calls: tuple[ToolCall, ...], wire: tuple[str, ...]) -> Mapping[str, tuple[str | None, str]]:
    """As `answers`, for portable calls with the ids that they have on the wire."""
    return {call.id: (one, wire_name(call.name)) for call, one in zip(calls, wire, strict=True)}


def wire_name(name: str) -> str:
    """The name of a called tool, legal for Gemini: a letter or an underscore first."""
    result = wire_ids.wire_name(name)
    return result if result[0].isalpha() or result[0] == "_" else f"_{result}"[:64]
