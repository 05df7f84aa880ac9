"""THE CONTRACT that a vendor package implements.

A vendor package exposes one object with the shape of `Vendor`, named `vendor`, under an entry point of the group
`pollux_like.providers`. It sees a `Request`, never an Input, an Environment or a Continuation, and keeps no
conversation. Its `render` and `parse` are pure; only its adapter imports the SDK, and only when it is connected.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pollux_like import canonical, checks
from pollux_like.config import Config
from pollux_like.errors import APIError, ConfigurationError, StreamInterruptedError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, Finish, Notice, Usage
from pollux_like.settings import Settings
from pollux_like.sources import Source
from pollux_like.tools import ToolDeclaration
from pollux_like.turns import STATUSES, Turn


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one model of a provider takes. What is not here is refused before any I/O.

    `settings`: names of the arguments of `interact` that are sent. `efforts`: values of `reasoning_effort`. `media`:
    kinds of Source. `reasons`: why a setting is refused, by name, for the error. `forced_choice_with_reasoning`: a tool
    can be forced while the model reasons, `forced_choice` at all. `max_stop`: most stop sequences. `caches`: prompts
    are cached, and `usage` says what was read from there; `cache_off`: `Environment(cache="none")` prevents it.
    """

    settings: frozenset[str]
    efforts: frozenset[str] = frozenset()
    media: frozenset[str] = frozenset({"text"})
    tools: bool = True
    forced_choice: bool = True
    forced_choice_with_reasoning: bool = True
    max_temperature: float = 2.0
    max_stop: int = 0
    caches: bool = True
    cache_off: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One turn as a vendor sees it: everything checked, nothing opaque to it but its own items in `turns`.

    `sources` stand at the head of the first user message. `added` is what this turn puts before the model, results in
    call order. `media` are sources of the last round, by the index of their turn (`len(turns)` is this one).
    `endpoint` is the address that the request goes to, as `Vendor.endpoint` says it.
    """

    model: str
    turns: tuple[Turn, ...]
    added: tuple[Message, ...]
    instructions: str | None = field(default=None, repr=False)
    sources: tuple[Source, ...] = ()
    tools: tuple[ToolDeclaration, ...] = ()
    settings: Settings = field(default_factory=Settings)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    media: Mapping[int, tuple[Source, ...]] = field(default_factory=dict[int, tuple[Source, ...]])
    cache: str | None = None
    streaming: bool = True
    endpoint: str = ""

    def at(self, index: int) -> tuple[tuple[Message, ...], tuple[Source, ...], tuple[Source, ...]]:
        """What the turn of that index (`len(turns)` is this one) puts before the model: messages, the sources at the
        head of its first message, the media of its last user message."""
        messages = self.added if index == len(self.turns) else self.turns[index].added
        return messages, self.sources if index == 0 else (), self.media.get(index, ())

    @property
    def standing(self) -> tuple[object, ...]:
        """What the rendering of past turns depends on beside the turns: a key for `turns.folded`."""
        past = ((index, one.digest) for index, media in self.media.items() for one in media if index < len(self.turns))
        return (*(source.digest for source in self.sources), *past)


@dataclass(frozen=True, slots=True)
class Reply:
    """A completed answer, made only after the provider's positive terminal signal.

    `native` are its items as JSON text, to the letter. `signed` says that they hold signed or sealed reasoning.
    `state` is what else the provider needs back at the next turn: `response_id` where it stored this one, and the like.
    The field `response_id` is its id of the answer, stored or not, and `request_id` that of the HTTP request.
    """

    native: tuple[str, ...] = field(repr=False)
    finish: Finish
    text: str = field(default="", repr=False)
    reasoning: str = field(default="", repr=False)
    refusal: str | None = field(default=None, repr=False)
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    signed: bool = False
    state: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, hash=False)
    model: str | None = None
    response_id: str | None = None
    request_id: str | None = None
    notices: tuple[Notice, ...] = ()

    def __post_init__(self) -> None:
        """Raises ConfigurationError for what no saved state could hold: items that are no JSON objects, an unknown
        status, and calls that fit no assistant message, such as two with one id."""
        if any(not item.startswith("{") for item in self.native):
            raise ConfigurationError("Reply.native holds an item that is no JSON object", hint="Give objects as text")
        checks.one_of(self.finish.status, "Reply.finish.status", STATUSES)
        if self.calls:
            Message("assistant", "", self.calls)


class Parser(Protocol):
    """Reads one answer. Pure; one instance per attempt."""

    def feed(self, data: str) -> list[Event]:
        """One server-sent event's data. Raises APIError for an error event."""
        ...

    def whole(self, body: str) -> Reply:
        """The body of an answer that was not streamed. Raises APIError for an error body under status 200."""
        ...

    def end(self) -> Reply:
        """The stream is over. Raises StreamInterruptedError unless the terminal event was seen."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Wire:
    """A rendered request. `body` is JSON text; the same bytes go out at every attempt.

    `fallback` renders the request without the server's memory, for when it turns out to be gone.
    """

    path: str
    body: str = field(repr=False)
    streaming: bool
    parser: Callable[[], Parser] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    notices: tuple[Notice, ...] = ()
    fallback: Callable[[], Wire] | None = field(default=None, repr=False)


class Adapter(Protocol):
    """A connected client. Holds no conversation."""

    def open(self, wire: Wire, *, timeout_s: float) -> AbstractAsyncContextManager[AsyncIterator[Event | Reply]]:
        """Send once, without retries. Yields events and last the Reply; leaving the context closes the connection.

        Raises APIError, its `retryable` saying whether the identical request may succeed later.
        """
        ...

    async def aclose(self) -> None:
        """Close what the adapter opened itself."""
        ...


class ServerStateLost(APIError):
    """The provider does not know the response that the request chains on. Handled by sending `Wire.fallback`."""


@dataclass(frozen=True, slots=True)
class Portable:
    """A turn of the provider as a portable message (None where nothing of it is), and what that loses, in words."""

    message: Message | None
    losses: tuple[str, ...] = ()


class Vendor(Protocol):
    """What the core knows of a provider. All but `connect` is pure and imports no SDK."""

    @property
    def name(self) -> str:
        """The name under which the package registers it."""
        ...

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables that hold the key, the first that is set counts."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Distributions that `connect` needs, for `pollux-like doctor`."""
        ...

    @property
    def default_model(self) -> str | None:
        """The model for a Config without one; None where a model must be named."""
        ...

    def dialect(self, options: Mapping[str, Any]) -> str:
        """The wire dialect that these provider options select. State of one dialect is foreign to another."""
        ...

    def endpoint(self, config: Config) -> str:
        """The address that requests go to, without credentials."""
        ...

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """What the model takes. Unknown models get the documented default of the provider."""
        ...

    def render(self, request: Request) -> Wire:
        """Request to wire. Raises ConfigurationError for what cannot be said in this dialect."""
        ...

    def portable(self, turn: Turn) -> Portable:
        """The provider's items as a portable message, for `handoff`."""
        ...

    def connect(self, config: Config) -> Adapter:
        """Import the SDK and make a client. Raises ConfigurationError for a missing package or key."""
        ...


@runtime_checkable
class Counts(Protocol):
    """What a vendor has besides, where its API counts tokens before a turn."""

    def render_count(self, request: Request) -> Wire:
        """The request to the counting endpoint; its parser is a `CountParser`.

        Raises ConfigurationError where the dialect has none.
        """
        ...


@dataclass(frozen=True, slots=True)
class CountParser:
    """Reads an answer that is a number of input tokens, under `name`. It is never streamed."""

    name: str

    def feed(self, data: str) -> list[Event]:
        """Not of this answer."""
        return []

    def whole(self, body: str) -> Reply:
        """The count as `usage.input_tokens` of a reply without items. Raises KeyError where it is not there."""
        count = canonical.loads(body)[self.name]
        return Reply((), Finish("stop"), usage=Usage.of(input=checks.whole(count, self.name, least=0), output=0))

    def end(self) -> Reply:
        """Not of this answer."""
        raise StreamInterruptedError("the provider streamed where a count was asked for", hint="Try again")
