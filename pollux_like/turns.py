"""Turns: one exchange with a provider each, the line of text that saves it, and folds over many."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pollux_like import canonical, checks
from pollux_like.errors import ConfigurationError
from pollux_like.memo import Memo
from pollux_like.messages import MAX_TOOL_CALLS, Message, ToolCall

T = TypeVar("T")

MAX_ITEM_DEPTH = 200
"""Deepest nesting of a provider's item: a call's arguments may have MAX_DEPTH levels, and stand inside of it."""

CONVERSATION = "conversation"
"""Name in `Turn.state` of the first turn: the provider's id of the answer, where it gave one."""
STATUSES = ("stop", "tool_calls", "length", "refusal", "content_filter", "pause", "malformed_tool_call", "other")

_MIN_POINTED_CHARS = 12
"""Arguments from this length on are not written again: their place in an item takes about ten characters."""
_MAX_MISSES = 8
"""After so many calls whose arguments stand in no item none is looked for any more: saving stays linear."""


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
            head["calls"] = _written(self.calls, self.native)
        if self.status != ("tool_calls" if self.calls else "stop"):
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
        stamp = _stamp(fields.pop("stamp")) if "stamp" in fields else before
        if stamp is None or not all(item.startswith("{") for item in native):
            raise ConfigurationError("a turn lacks its stamp or its items", hint="Restore it")
        if before is not None and (stamp.provider, stamp.dialect) != (before.provider, before.dialect):
            raise ConfigurationError("a turn was issued by another provider", hint="Restore it")
        calls = _list(fields.pop("calls", []), "calls")
        _check_calls(calls, native)
        usual = "tool_calls" if calls and isinstance(calls[0], list) else "stop"
        turn = cls(
            stamp,
            tuple(map(Message.from_jsonable, _list(fields.pop("added", []), "added"))),
            native,
            tuple([_read(call, native) for call in calls]),
            checks.one_of(fields.pop("status", usual), "status", STATUSES),
            checks.flag(fields.pop("signed", False), "signed"),
            _words(fields.pop("state", {}), "state"),
            checks.sequence(_list(fields.pop("media", []), "media"), "media", str),
        )
        if fields:
            raise ConfigurationError(f"a turn has the unknown field {min(fields)!r}", hint="Restore it")
        return turn


def _written(calls: Sequence[ToolCall], native: Sequence[str]) -> list[list[Any]]:
    """Each `[id, name, arguments]`, and the arguments object where it differs from what the text says.

    Long arguments are the place where an item holds them, as a JSON string or as the object itself: its index, the
    first character and their number. Places follow each other, so a call is looked for behind the one before.
    """
    written: list[list[Any]] = []
    place, missed = [0, 0, 0], 0
    for call in calls:
        fields = call.to_jsonable()
        text: str = fields["arguments_text"]
        found = None
        if len(text) >= _MIN_POINTED_CHARS and missed < _MAX_MISSES:
            found = _place(text, native, place[0], place[1] + place[2])
            missed += found is None
        place = found or place
        more = [fields["arguments"]] if "arguments" in fields else []
        written.append([call.id, call.name, found or text, *more])
    return written


def _place(text: str, native: Sequence[str], first: int, start: int) -> list[int] | None:
    """Where the arguments stand, in the item `first` from the character `start` on, or in a later one."""
    spellings = [canonical.dumps(text), json.dumps(text)]
    if text.startswith("{"):
        spellings.append(text)
    for index in range(first, len(native)):
        for spelling in dict.fromkeys(spellings):
            at = native[index].find(spelling, start if index == first else 0)
            if at >= 0:
                return [index, at, len(spelling)]
    return None


def _read(written: object, native: Sequence[str]) -> ToolCall:
    """Back from `_written`, or from the object that versions 1 and 2 write; "stop" is the usual status beside those."""
    if isinstance(written, dict):
        return ToolCall.from_jsonable(cast("object", written))
    parts = _list(written, "a call")
    if len(parts) not in (3, 4):
        raise ConfigurationError("a call has three parts or four", hint="Restore it")
    text = parts[2]
    if isinstance(text, list):
        text = _pointed(cast("list[object]", text), native)
    call = ToolCall(parts[0], parts[1], checks.text(text, "arguments"))
    return call.with_arguments(checks.json_object(parts[3], "arguments")) if parts[3:] else call


def _check_calls(calls: list[Any], native: Sequence[str]) -> None:
    """What calls point at is at most what there is: a short line cannot stand for gigabytes."""
    if len(calls) > MAX_TOOL_CALLS:
        raise ConfigurationError(f"a turn holds {len(calls):,} calls", hint="Restore it")
    parts = [cast("list[object]", call) for call in calls if isinstance(call, list)]
    places = [cast("list[object]", part[2]) for part in parts if len(part) > 2 and isinstance(part[2], list)]
    sizes = [place[2] for place in places if len(place) > 2]
    if sum(size for size in sizes if isinstance(size, int) and size > 0) > sum(map(len, native)):
        raise ConfigurationError("the arguments of the calls overlap", hint="Restore it")


def _pointed(place: list[object], native: Sequence[str]) -> str:
    whole = [part for part in place if isinstance(part, int) and not isinstance(part, bool) and part >= 0]
    if len(place) != 3 or len(whole) != 3 or whole[0] >= len(native):
        raise ConfigurationError("the arguments of a call have no place", hint="Restore it")
    index, at, size = whole
    text = native[index][at : at + size]
    return canonical.loads(text) if text.startswith('"') else text


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigurationError(f"{name} is {checks.kind(value)}", hint="Restore it")
    return cast("list[Any]", value)


def _words(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where} is {checks.kind(value)}", hint="Restore it")
    words = cast("dict[str, object]", value)
    return {name: checks.filled(word, f"{where}.{name}") for name, word in words.items()}


def _stamp(written: object) -> Stamp:
    parts = _list(written, "stamp")
    if len(parts) not in (5, 6):
        raise ConfigurationError("a stamp has five parts or six", hint="Restore it")
    provider, dialect, endpoint, model, environment = checks.sequence(parts[:5], "stamp", str)
    return Stamp(provider, dialect, endpoint, model, environment, _words(parts[5], "prefix") if parts[5:] else None)


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
