"""Wire: what a dialect gives and takes — one request, a refusal, a drafted reply — and how texts become events.

A new vendor is one more module with a class that satisfies `Dialect`, listed in `dialects.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from pollux_like.canonical import dumps
from pollux_like.simulator.shapes import is_array, is_object
from pollux_like.testing.script import Answer, Part, Refuse, Say, ServerTool, Think

_PIECE = re.compile(r"\s*\S{1,8}", re.DOTALL)


@dataclass(slots=True)
class Exchange:
    """One request in work. `dropped` collects the reasoning that `check` set aside, in the dialect's own words."""

    path: str
    headers: dict[str, str]
    query: dict[str, str]
    body: dict[str, Any]
    dropped: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    context: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def streaming(self) -> bool:
        return self.body.get("stream") is True

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response: status, the vendor's envelope, and headers of its own."""

    status: int
    body: dict[str, Any]
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Draft:
    """A reply with its ids and blobs made: the whole body, and the raw argument text of each call by its place.

    `with_usage`: the request asked for a usage chunk (chat completions).
    """

    body: dict[str, Any]
    raw: dict[int, str] = field(default_factory=dict[int, str])
    with_usage: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """The error that a scripted failure asks for; None leaves it to the dialect."""

    status: int
    message: str | None = None
    code: str | None = None
    type: str | None = None
    param: str | None = None


class Dialect(Protocol):
    """One vendor API. `check` before anything is consumed; then `draft`, and its body or its `stream`."""

    name: str
    paths: tuple[str, ...]

    def check(self, exchange: Exchange) -> Refusal | None:
        """The error the vendor would answer, or None."""
        ...

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        """The scripted answer as this vendor's reply; what it issues is remembered."""
        ...

    def render(self, draft: Draft) -> str:
        """The text of the whole body, spaced as the vendor spaces it."""
        ...

    def stream(self, draft: Draft) -> list[str]:
        """The same reply as server-sent events, each a complete event with its blank line."""
        ...

    def error(self, fault: Fault) -> Refusal:
        """An error response for a status, in the vendor's envelope."""
        ...

    def error_event(self, fault: Fault) -> str:
        """The same error inside a stream that already began."""
        ...

    def last_text(self, exchange: Exchange) -> str:
        """The text of the last user message, for the echo."""
        ...

    def headers(self) -> dict[str, str]:
        """Response headers of every reply, a request id among them."""
        ...


def event(data: dict[str, Any], name: str | None = None) -> str:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {dumps(data)}\n\n"


def pieces(text: str) -> Iterator[str]:
    """The text in the small pieces of a stream; joined they are the text."""
    end = 0
    for match in _PIECE.finditer(text):
        yield match.group()
        end = match.end()
    if end < len(text):
        yield text[end:]


def argument_pieces(text: str) -> list[str]:
    """Argument text in pieces that cut tokens, as vendors cut them."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def tokens(text: str) -> int:
    """A rough count: one token for four characters."""
    return -(-len(text) // 4)


def parsed(text: str) -> Any:
    """A JSON text's value; text that is not JSON stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one reply, estimates filled in."""

    input: int
    output: int
    reasoning: int
    cached: int
    written: int


def count(exchange: Exchange, answer: Answer) -> Tokens:
    """What the reply is billed for."""
    shown = "".join(part_text(part) for part in answer.parts)
    thought = sum(tokens(part.text) for part in answer.parts if isinstance(part, Think))
    reasoning = thought if answer.reasoning_tokens is None else answer.reasoning_tokens
    output = reasoning + tokens(shown) if answer.output_tokens is None else answer.output_tokens
    given = tokens(dumps(exchange.body)) if answer.input_tokens is None else answer.input_tokens
    return Tokens(given, output, reasoning, answer.cached_tokens, answer.cache_write_tokens)


def part_text(part: Part) -> str:
    """The text of a part that is billed as output."""
    if isinstance(part, (Say, Refuse)):
        return part.text
    if isinstance(part, ServerTool):
        return part.input
    return getattr(part, "arguments", "")


def text_of(content: Any) -> str:
    """The plain text of message content: a string, or the text of its parts."""
    if isinstance(content, str):
        return content
    if is_array(content):
        return "".join(str(part.get("text", "")) for part in content if is_object(part))
    return ""
