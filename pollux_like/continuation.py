"""Continuation: a conversation as one opaque value, and the only home of what a provider signed, sealed or numbered.

A conversation is a chain of turns. A turn is one line of JSON text: the messages it put before the model, the
provider's own items exactly as they came, and what is needed to go on. The digest of a turn covers its line and the
digest before it, so a change, a cut or a swap anywhere is seen on load. Lines survive every store: key order is inside
the text, U+0000 is escaped there, and a store that appends may keep one row per turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pollux_like import canonical, checks, pairing, plugins
from pollux_like.errors import ConfigurationError, ContinuationError
from pollux_like.memo import Memo
from pollux_like.messages import Message, ToolCall

T = TypeVar("T")

VERSION = 2
FORMAT = "pollux_like.continuation"

MAX_CHARS = 64 * 1024 * 1024
"""Largest saved continuation, in characters of its lines together."""
MAX_REPLY_CHARS = 16 * 1024 * 1024
"""Largest reply of a provider, in characters. A conversation is refused before it could outgrow MAX_CHARS."""
MAX_ITEM_DEPTH = 200
"""Deepest nesting of a provider's item: a call's arguments may have MAX_DEPTH levels, and stand inside of it."""
MAX_TURNS = 1_000_000

CONVERSATION = "conversation"
"""Name in `Turn.state` of the first turn: the provider's id of the answer, where it gave one."""
STATUSES = ("stop", "tool_calls", "length", "refusal", "content_filter", "pause", "malformed_tool_call", "other")

UPCASTERS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda fields: {**fields, "version": 2},  # a stamp of version 1 names no parts of its prefix
}
"""From version n to n + 1, applied one after the other at the door; an entry is added whenever VERSION grows."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who issued a turn: provider, dialect, endpoint, the model asked for, and the environment's fingerprint.

    `prefix`: what stands before the conversation in a request, part by part - a short digest of instructions, sources,
    tools and the output schema, tool choice and reasoning in words - so that a change can be named later. None in
    what version 1 saved.
    """

    provider: str
    dialect: str
    endpoint: str
    model: str
    environment: str
    prefix: Mapping[str, str] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class Turn(Memo):
    """One exchange.

    `added`: the portable messages put before the model, results in call order. `native`: the provider's items, each the
    JSON text that came. `calls`: the tool calls made. `status`: one of STATUSES. `signed`: the items hold signed or
    sealed reasoning. `state`: what else the provider needs back, by name (a stored response's id, a container).
    `media`: digests of the sources given for this turn only.
    """

    stamp: Stamp
    added: tuple[Message, ...] = field(repr=False)
    native: tuple[str, ...] = field(repr=False)
    calls: tuple[ToolCall, ...] = ()
    status: str = "stop"
    signed: bool = False
    state: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, hash=False)
    media: tuple[str, ...] = ()

    def line(self, before: Stamp | None) -> str:
        """The turn as JSON text; the stamp is written only where it differs from the turn before."""
        head: dict[str, Any] = {}
        if self.stamp != before:
            one = self.stamp
            prefix = [] if one.prefix is None else [dict(one.prefix)]
            head["stamp"] = [one.provider, one.dialect, one.endpoint, one.model, one.environment, *prefix]
        if self.added:
            head["added"] = [message.to_jsonable() for message in self.added]
        if self.calls:
            head["calls"] = [call.to_jsonable() for call in self.calls]
        if self.status != "stop":
            head["status"] = self.status
        if self.signed:
            head["signed"] = True
        if self.state:
            head["state"] = dict(self.state)
        if self.media:
            head["media"] = list(self.media)
        return canonical.splice(head, "native", list(self.native))

    @classmethod
    def parse(cls, line: str, before: Stamp | None) -> Turn:
        """Back from `line`. Raises JSONPolicyError or ConfigurationError where anything is not as `line` writes it."""
        fields, native = canonical.unspliced(line, "native")
        canonical.check_depth(line, MAX_ITEM_DEPTH + 2)
        stamp = before
        if "stamp" in fields:
            stamp = _stamp(_list(fields.pop("stamp"), "stamp"))
        if stamp is None or any(not item.startswith("{") for item in native):
            raise ConfigurationError("a turn lacks its stamp or its items", hint="Restore it")
        if before is not None and (stamp.provider, stamp.dialect) != (before.provider, before.dialect):
            raise ConfigurationError("a turn was issued by another provider", hint="Restore it")
        turn = cls(
            stamp,
            tuple(map(Message.from_jsonable, _list(fields.pop("added", []), "added"))),
            native,
            tuple(map(ToolCall.from_jsonable, _list(fields.pop("calls", []), "calls"))),
            checks.one_of(fields.pop("status", "stop"), "status", STATUSES),
            checks.flag(fields.pop("signed", False), "signed"),
            _words(fields.pop("state", {}), "state"),
            _texts(fields.pop("media", []), "media"),
        )
        if fields:
            raise ConfigurationError(f"a turn has the unknown field {min(fields)!r}", hint="Restore it")
        return turn


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigurationError(f"{name} is {checks.kind(value)}", hint="Restore it")
    return cast("list[Any]", value)


def _texts(value: object, name: str) -> tuple[str, ...]:
    return checks.sequence(_list(value, name), name, str)


def _words(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where} is {checks.kind(value)}", hint="Restore it")
    words = cast("dict[str, object]", value)
    return {name: checks.filled(word, f"{where}.{name}") for name, word in words.items()}


def _stamp(parts: list[Any]) -> Stamp:
    if len(parts) not in (5, 6):
        raise ConfigurationError("a stamp has five parts or six", hint="Restore it")
    provider, dialect, endpoint, model, environment = _texts(parts[:5], "stamp")
    return Stamp(provider, dialect, endpoint, model, environment, _words(parts[5], "prefix") if parts[5:] else None)


_GENESIS = canonical.sha256(FORMAT)


class Continuation:
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
        if provider not in plugins.names():
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

    def __repr__(self) -> str:
        return (
            f"Continuation(provider={self.provider!r}, model={self.model!r}, turns={len(self._turns)}, "
            f"pending={len(self.pending_tool_calls)}, digest={self._digest[:12]!r})"
        )

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


def folded(turns: Sequence[Turn], key: object, empty: T, step: Callable[[T, int], T]) -> T:
    """A fold over the turns, `step(state, index)` from the oldest on, that costs only the turns that are new.

    The newest turn keeps the state, and hands it on when it is no longer the newest: memory stays linear. A branch from
    an older turn is folded from the start. The state is never None, and depends on nothing but the turns and `key`.
    """
    done = len(turns)
    state = empty
    while done > 0:
        kept = turns[done - 1].take(key)
        if kept is not None:
            state = kept
            break
        done -= 1
    for index in range(done, len(turns)):
        state = step(state, index)
    if turns:
        newest = state
        turns[-1].remember(key, lambda: newest)
    return state


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
