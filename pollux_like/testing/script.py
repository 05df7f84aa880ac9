"""Script vocabulary: what a stand-in for a model answers, said once for every vendor's wire.

    from pollux_like.testing.script import answer, call, say, think

    answer(think("Let me look"), say("I look."), call("get_weather", {"city": "Paris"}, id="call_1"), input_tokens=40)

All values are frozen. A part that a dialect does not have is rendered as the nearest thing it has; `docs/simulator.md`
says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pollux_like.canonical import JSONPolicyError, check_value, dumps
from pollux_like.errors import ConfigurationError

Finish: TypeAlias = Literal["stop", "tool_calls", "length", "pause", "refusal", "content_filter"]
_FINISHES = ("stop", "tool_calls", "length", "pause", "refusal", "content_filter")


@dataclass(frozen=True, slots=True)
class Say:
    """Visible text. `phase` is the OpenAI message phase, "commentary" or "final_answer"."""

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning, signed where the dialect signs. `text=""` is reasoning whose display is omitted."""

    text: str


@dataclass(frozen=True, slots=True)
class Redacted:
    """Reasoning that came encrypted as a whole. `note` makes two of them differ; it is never shown."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is the JSON text as the model wrote it, valid or not; `id` is None where it is made up.

    `cut`: the reply ended inside these arguments, by the token limit.
    """

    name: str
    arguments: str
    id: str | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """A refusal in words."""

    text: str


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that the vendor ran. `input` and `result` are JSON texts; `result` is None while it is in flight."""

    name: str
    input: str
    result: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A server-made summary of what came before it. `signed` adds the signature of the newer form (Anthropic)."""

    text: str
    signed: bool = False


Part: TypeAlias = Say | Think | Redacted | Call | Refuse | ServerTool | Compaction


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of the model: its parts in order, why it ended, and the tokens it is billed for.

    `finish` None means the natural one: "refusal" after a refusal, "length" after a cut call, "tool_calls" after
    calls, else "stop". A token count of None is estimated from the texts. `input_tokens` is the whole input, cached
    part included, in every dialect. `native` is the vendor's own word for why it ended, sent as it is where the dialect
    has such a word (Gemini's "MISSING_THOUGHT_SIGNATURE").
    """

    parts: tuple[Part, ...]
    finish: Finish | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    native: str | None = None

    @property
    def ended(self) -> Finish:
        """Why the reply ended, the natural reason filled in."""
        if self.finish is not None:
            return self.finish
        if any(isinstance(part, Call) and part.cut for part in self.parts):
            return "length"
        if any(isinstance(part, Call) for part in self.parts):
            return "tool_calls"
        return "refusal" if any(isinstance(part, Refuse) for part in self.parts) else "stop"


def answer(
    *parts: Part | str,
    finish: Finish | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    reasoning_tokens: int | None = None,
    cached_tokens: int = 0,
    cache_write_tokens: int = 0,
    native: str | None = None,
) -> Answer:
    """One reply; a plain string is `say` of it. No part at all is an empty reply. Raises ConfigurationError."""
    if finish is not None and finish not in _FINISHES:
        raise ConfigurationError(f"finish is {finish!r}", hint=f"Use one of {', '.join(_FINISHES)}, or leave it out")
    made = tuple(say(part) if isinstance(part, str) else part for part in parts)
    if any(isinstance(part, Call) and part.cut for part in made[:-1]):
        raise ConfigurationError("a cut call is not the last part", hint="A reply ends where it was cut")
    counts = (input_tokens, output_tokens, reasoning_tokens, cached_tokens, cache_write_tokens)
    return Answer(made, finish, *counts, native)


def say(text: str, *, phase: str | None = None) -> Say:
    """Visible text."""
    return Say(text, phase)


def think(text: str = "") -> Think:
    """Reasoning; with no text, reasoning whose display is omitted but which is signed all the same."""
    return Think(text)


def redacted(note: str = "") -> Redacted:
    """Reasoning that only the vendor can read."""
    return Redacted(note)


def call(name: str, arguments: dict[str, Any] | str | None = None, *, id: str | None = None, cut: bool = False) -> Call:
    """A tool call. Arguments are a dict, or raw text that is sent character by character as it is.

    `cut=True` ends the reply, by its token limit, inside the raw text. Raises ConfigurationError.
    """
    if cut and not isinstance(arguments, str):
        raise ConfigurationError("a cut call has no raw text", hint="Give the arguments as the text up to the cut")
    return Call(name, arguments if isinstance(arguments, str) else _text(arguments or {}, "arguments"), id, cut)


def refuse(text: str) -> Refuse:
    """A refusal in words."""
    return Refuse(text)


def server_tool(
    name: str, input: dict[str, Any] | None = None, *, result: Any = None, id: str | None = None
) -> ServerTool:
    """A tool that the vendor runs, with its result; without one it is still in flight. Raises ConfigurationError."""
    return ServerTool(name, _text(input or {}, "input"), None if result is None else _text(result, "result"), id)


def compaction(text: str, *, signed: bool = False) -> Compaction:
    """A server-made summary that replaces what came before it."""
    return Compaction(text, signed)


def _text(value: Any, path: str) -> str:
    try:
        check_value(value, path=path)
    except JSONPolicyError as error:
        raise ConfigurationError(str(error), hint="Give plain JSON values, or the raw text") from None
    return dumps(value)
