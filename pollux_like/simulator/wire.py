"""Wire: what a dialect gives and takes — one request, a refusal, a drafted reply — and how texts become events.

A new vendor is one more module with a class that satisfies `Dialect`, listed in `dialects.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pollux_like.canonical import dumps
from pollux_like.simulator.shapes import is_array, is_object
from pollux_like.testing.script import Answer, Part, Refuse, Say, ServerTool, Think

_PIECE = re.compile(r"\s*\S{1,8}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Route:
    """What the path of a request says; None where the body says it."""

    model: str | None = None
    streaming: bool | None = None


@dataclass(slots=True)
class Exchange:
    """One request in work. `dropped` collects the reasoning that `check` set aside, in the dialect's own words."""

    path: str
    headers: dict[str, str]
    query: dict[str, str]
    body: dict[str, Any]
    route: Route = field(default_factory=lambda: Route())
    method: str = "POST"
    dropped: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    context: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def streaming(self) -> bool:
        return self.body.get("stream") is True if self.route.streaming is None else self.route.streaming

    @property
    def model(self) -> str:
        return str(self.body.get("model", "")) if self.route.model is None else self.route.model


Looked: TypeAlias = tuple[int, dict[str, Any]]
"""Status and body of an answer that no script has a say in."""


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
    """The error that a scripted failure asks for; None leaves it to the dialect.

    `retry_after`: how long to wait, as the header says it. `details`: those of a google.rpc.Status.
    """

    status: int
    message: str | None = None
    code: str | None = None
    type: str | None = None
    param: str | None = None
    retry_after: str | None = None
    details: Sequence[dict[str, Any]] = ()

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of the error's response."""
        return () if self.retry_after is None else (("retry-after", self.retry_after),)


class Dialect(Protocol):
    """One vendor API. `check` before anything is consumed; then `draft`, and its body or its `stream`.

    `base`: the path that a base URL for the vendor's SDK ends in. `variables`: the environment variables of that URL
    and of the key, where the SDK reads them.
    """

    name: str
    base: str
    variables: tuple[str, str] | None

    def route(self, path: str) -> Route | None:
        """What a path says of a turn to be answered, or None where it is none of this dialect's."""
        ...

    def look_up(self, exchange: Exchange) -> Looked | None:
        """The answer to what is no turn - lists of models, stored objects, counts of tokens - or None."""
        ...

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
