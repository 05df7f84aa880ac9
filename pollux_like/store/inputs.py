"""Inputs as the store keeps them while they are under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pollux_like import canonical, checks
from pollux_like.continuation import Continuation
from pollux_like.errors import ConfigurationError, IdempotencyError
from pollux_like.input import Input
from pollux_like.messages import Message, ToolResult
from pollux_like.sources import Source
from pollux_like.store.keys import Keys
from pollux_like.store.rows import Head

MAX_NAME = 255
"""Longest scope, conversation id, title and idempotency key, in characters."""
PLACE = "pending"
"""Where a pending input lies, for the conversation's box."""


def name(value: object, what: str) -> str:
    """A name under the same rule on every database: a line of text that can be shown."""
    text = checks.filled(value, what)
    if len(text) > MAX_NAME or not text.isprintable():
        raise ConfigurationError(
            f"{what} has {len(text)} characters, or some that cannot be shown",
            hint=f"Use at most {MAX_NAME}, without line breaks and control characters",
        )
    return text


@dataclass(frozen=True, slots=True)
class Pending:
    """An input that was made durable and has no answer yet. `sources` are digests: the store holds no media."""

    content: str | None = field(repr=False)
    tool_results: tuple[ToolResult, ...]
    history: tuple[Message, ...] | None = field(repr=False)
    sources: tuple[str, ...]
    key: str | None

    def to_jsonable(self) -> dict[str, Any]:
        """JSON types only."""
        history = None if self.history is None else [message.to_jsonable() for message in self.history]
        results = [[result.call_id, result.content, result.is_error] for result in self.tool_results]
        return {"content": self.content, "tool_results": results, "history": history, "sources": list(self.sources),
                "key": self.key}  # fmt: skip

    def input(self, sources: Sequence[Source] = (), continuation: Continuation | None = None) -> Input:
        """The input again. Raises ConfigurationError where the sources are not those that it came with.

        `continuation`: the conversation's, which is all that the input of a paused turn has.
        """
        if tuple(source.digest for source in sources) != self.sources:
            raise ConfigurationError(
                f"the pending input came with {len(self.sources)} sources of its own", hint="Give the same, in order"
            )
        empty = self.content is None and self.history is None and not self.tool_results
        return Input(self.content, self.history, continuation if empty else None, self.tool_results, sources=sources)


def saved(input: Input) -> str:
    """JSON text of an input, without the state that it goes on with."""
    return canonical.dumps({
        "content": input.content,
        "tool_results": [[result.call_id, result.content, result.is_error] for result in input.tool_results],
        "history": None if input.history is None else [message.to_jsonable() for message in input.history],
        "sources": [source.digest for source in input.sources],
    })  # fmt: skip


def digest(input: Input) -> str:
    """SHA-256 that names the input: what an idempotency key is bound to."""
    return canonical.sha256(saved(input))


def pending_of(head: Head, opened: Keys) -> Pending | None:
    """The pending input of a head."""
    if head.pending is None:
        return None
    fields = canonical.loads(opened.own.unseal(head.pending, PLACE))
    history = fields["history"]
    return Pending(
        fields["content"],
        tuple(ToolResult(*result) for result in fields["tool_results"]),
        None if history is None else tuple(map(Message.from_jsonable, history)),
        tuple(fields["sources"]),
        head.pending_key,
    )


def resumed(
    pending: Pending | None, continuation: Continuation | None, sources: Sequence[Source]
) -> tuple[Input, str | None]:
    """The input that is taken up, and its key: what is pending, or nothing new for a paused turn."""
    if pending is not None:
        return pending.input(sources, continuation), pending.key
    if continuation is None or not continuation.paused:
        raise ConfigurationError("no input is pending, and the last turn is complete", hint="Go on with interact")
    return Input(continuation=continuation, sources=sources), None


def given(input: Input, continuation: Continuation | None, turns: int) -> Input:
    """The caller's input with the state of the store. Raises ConfigurationError where it brings a state of its own.

    Only a paused turn goes on with the very state of the store, since an input has to bring something.
    """
    paused = continuation is not None and continuation.paused
    if input.continuation is not None and not (paused and input.continuation == continuation):
        raise ConfigurationError("Input.continuation is given", hint="Leave it out: the store has the state")
    if continuation is None:
        return input if input.history is not None else replace(input, history=())
    if input.history is not None:
        raise ConfigurationError(f"Input.history is given, and the conversation has {turns} turns", hint="Leave it out")
    return replace(input, continuation=continuation)


def another(key: str) -> IdempotencyError:
    """The key was used with another input."""
    return IdempotencyError(
        f"the key {key[:80]!r} was used with another input", hint="Use one key for one input, another for the next"
    )
