"""Continuation: a conversation as one opaque value, and the only home of what a provider signed, sealed or numbered.

A conversation is a chain of turns. A turn is one line of JSON text: the messages it put before the model, the
provider's own items exactly as they came, and what is needed to go on. The digest of a turn covers its line and the
digest before it, so a change, a cut or a swap anywhere is seen on load. Lines survive every store: key order is inside
the text, U+0000 is escaped there, and a store that appends may keep one row per turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from pollux_like import canonical, pairing, plugins
from pollux_like.errors import ConfigurationError, ContinuationError
from pollux_like.messages import ToolCall
from pollux_like.shown import Shown
from pollux_like.turns import Turn

VERSION = 3
FORMAT = "pollux_like.continuation"

MAX_CHARS = 64 * 1024 * 1024
"""Largest saved continuation, in characters of its lines together."""
MAX_REPLY_CHARS = 16 * 1024 * 1024
"""Largest reply of a provider, in characters. A conversation is refused before it could outgrow MAX_CHARS."""
MAX_TURNS = 1_000_000

UPCASTERS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda fields: {**fields, "version": 2},  # a stamp of version 1 names no parts of its prefix
    2: lambda fields: {**fields, "version": 3},  # a call of versions 1 and 2 is an object with all of its text
}
"""From version n to n + 1, applied one after the other at the door; an entry is added whenever VERSION grows."""


_GENESIS = canonical.sha256(FORMAT)


class Continuation(Shown):
    """An immutable, opaque state of a conversation. Give it to `Input(continuation=...)`, once or many times.

    Save `to_jsonable()`, restore with `from_jsonable()`, never look inside. Two are equal when their content is.
    """

    __slots__ = ("_digest", "_lines", "_size", "_turns")
    _turns: tuple[Turn, ...]
    _lines: tuple[str, ...]
    _digest: str
    _size: int

    def __init__(self) -> None:
        raise TypeError("A Continuation comes from Output.continuation or Continuation.from_jsonable(...)")

    @property
    def provider(self) -> str:
        """Name of the provider that it goes on with."""
        return self._turns[-1].stamp.provider

    @property
    def model(self) -> str:
        """The model that was asked last."""
        return self._turns[-1].stamp.model

    @property
    def digest(self) -> str:
        """SHA-256 over the whole chain, 64 hex digits: names this exact state of the conversation."""
        return self._digest

    @property
    def pending_tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that wait for results, in call order. Enough to take up a crashed loop from the saved state."""
        return self._turns[-1].calls

    @property
    def paused(self) -> bool:
        """The provider stopped in the middle of its turn: go on with `Input(continuation=...)` alone."""
        return self._turns[-1].status == "pause"

    def to_jsonable(self) -> dict[str, Any]:
        """JSON types only, free of U+0000. Grows by what each turn adds."""
        return {"format": FORMAT, "version": VERSION, "provider": self.provider, "digest": self._digest,
                "turns": list(self._lines)}  # fmt: skip

    @classmethod
    def from_jsonable(cls, data: object, expected_provider: str | None = None) -> Continuation:
        """Back from `to_jsonable`, whole or not at all.

        Raises ContinuationError for state that is no continuation, tampered with, cut, over-deep, over-large, of a
        newer version, of a provider that is not installed, or not of `expected_provider`.
        """
        fields = _door(data)
        provider = fields["provider"]
        if not plugins.known(provider):
            raise ContinuationError(
                "the continuation was issued by a provider that is not installed",
                hint=f"Install it; there are: {', '.join(plugins.names())}",
            )
        if expected_provider is not None and provider != expected_provider:
            raise ContinuationError(
                f"the continuation was issued by {provider!r}, not by {expected_provider!r}",
                hint="Go on with its own provider, or convert it with handoff()",
            )
        turns: list[Turn] = []
        digest = _GENESIS
        try:
            for line in fields["turns"]:
                digest = canonical.sha256(f"{digest}\n{line}")
            if digest != fields["digest"]:
                raise ConfigurationError("the digest does not fit", hint="Restore it")
            for line in fields["turns"]:
                turn = Turn.parse(line, turns[-1].stamp if turns else None)
                _check_turn(turn, turns[-1] if turns else None)
                turns.append(turn)
            if turns[0].stamp.provider != provider:
                raise ConfigurationError("the header names another provider", hint="Restore it")
        except (ConfigurationError, canonical.JSONPolicyError, UnicodeEncodeError) as error:
            reason = error.message if isinstance(error, ConfigurationError) else type(error).__name__
            raise ContinuationError(
                f"the saved continuation was changed or cut ({reason})",
                hint="Restore the value that to_jsonable() gave, or begin again from portable history",
            ) from None
        return _made(tuple(turns), tuple(fields["turns"]), digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Continuation) and other.digest == self._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield from (("provider", repr(self.provider)), ("model", repr(self.model)), ("turns", f"{len(self._turns)}"))
        yield from (("pending", f"{len(self.pending_tool_calls)}"), ("digest", repr(self._digest[:12])))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Continuation.from_jsonable, (self.to_jsonable(),))


def _made(turns: tuple[Turn, ...], lines: tuple[str, ...], digest: str) -> Continuation:
    result = object.__new__(Continuation)
    result._turns, result._lines, result._digest = turns, lines, digest  # pyright: ignore[reportPrivateUsage]
    result._size = sum(map(len, lines))  # pyright: ignore[reportPrivateUsage]
    return result


def extended(before: Continuation | None, turn: Turn) -> Continuation:
    """The continuation after one more turn; `before` stays as it is."""
    if before is None:
        line = turn.line(None)
        return _made((turn,), (line,), canonical.sha256(f"{_GENESIS}\n{line}"))
    line = turn.line(before._turns[-1].stamp)  # pyright: ignore[reportPrivateUsage]
    result = object.__new__(Continuation)
    result._turns = (*turns_of(before), turn)  # pyright: ignore[reportPrivateUsage]
    result._lines = (*before._lines, line)  # pyright: ignore[reportPrivateUsage]
    result._digest = canonical.sha256(f"{before.digest}\n{line}")  # pyright: ignore[reportPrivateUsage]
    result._size = size_of(before) + len(line)  # pyright: ignore[reportPrivateUsage]
    return result


def conversation_id(continuation: Continuation) -> str:
    """The same for every later state and every branch of a conversation: 32 hex digits of its own.

    Made of the first turn, in which the provider's id of the answer makes it one of a kind.
    """
    return canonical.sha256(f"{_GENESIS}\n{continuation._lines[0]}")[:32]  # pyright: ignore[reportPrivateUsage]


def turns_of(continuation: Continuation) -> tuple[Turn, ...]:
    """The turns, oldest first; at least one."""
    return continuation._turns  # pyright: ignore[reportPrivateUsage]


def size_of(continuation: Continuation) -> int:
    """Characters of all lines together."""
    return continuation._size  # pyright: ignore[reportPrivateUsage]


def _check_turn(turn: Turn, before: Turn | None) -> None:
    """The same rules that held when the turn was made."""
    if before is None and (not turn.added or turn.added[0].role != "user"):
        raise ConfigurationError("a conversation begins with a user message", hint="Restore it")
    ordered, pending = pairing.pair(before.calls if before else (), turn.added, where="added")
    if pending or ordered != turn.added or (turn.added and turn.added[-1].role == "assistant"):
        raise ConfigurationError("tool calls and results do not fit", hint="Restore it")
    if not turn.added and (before is None or before.status != "pause"):
        raise ConfigurationError("a turn adds nothing", hint="Restore it")
    if len({call.id for call in turn.calls}) != len(turn.calls):
        raise ConfigurationError("a tool call id stands twice in one turn", hint="Restore it")


def _door(data: object) -> dict[str, Any]:
    """Everything about the outer object: shape, version, size."""
    if not isinstance(data, Mapping) or cast("Mapping[str, object]", data).get("format") != FORMAT:
        raise ContinuationError(
            f"the value ({type(cast(object, data)).__name__}) is no saved continuation",
            hint="Pass what Continuation.to_jsonable() gave",
        )
    fields = dict(cast("Mapping[str, Any]", data))
    version = fields.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ContinuationError("the continuation has no valid version", hint="Restore what to_jsonable() gave")
    if version > VERSION:
        raise ContinuationError(
            f"the continuation has version {version}, this library knows up to {VERSION}",
            hint="Upgrade pollux_like on this machine",
        )
    for step in range(version, VERSION):
        fields = UPCASTERS[step](fields)
    if set(fields) != {"format", "version", "provider", "digest", "turns"}:
        raise ContinuationError(
            "the continuation has missing or unknown fields", hint="Restore what to_jsonable() gave"
        )
    turns: object = fields["turns"]
    if not isinstance(turns, (list, tuple)) or not turns or not isinstance(fields["provider"], str):
        raise ContinuationError("the continuation has fields of wrong types", hint="Restore what to_jsonable() gave")
    lines = cast("tuple[object, ...]", turns)
    if not all(isinstance(line, str) for line in lines):
        raise ContinuationError("the continuation has turns that are no text", hint="Restore what to_jsonable() gave")
    size = sum(len(line) for line in cast("tuple[str, ...]", lines))
    if len(lines) > MAX_TURNS or size > MAX_CHARS:
        raise ContinuationError(
            f"the continuation has {len(lines):,} turns and {size:,} characters",
            hint=f"The most is {MAX_TURNS:,} turns and {MAX_CHARS:,} characters; begin a new one from portable history",
        )
    return fields
