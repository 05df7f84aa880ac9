"""What leaves the server, field by field: nothing is passed on that is not named here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pollux_like import canonical
from pollux_like.messages import Message
from pollux_like.output import Usage
from pollux_like.store import Branch, Found, Overview, Page, Pending, Shown, Summary

MAX_TEXT = 8_000
"""Most characters of one text where the whole was not asked for."""
AROUND = 80
"""Characters before and behind the words in an excerpt."""

Call = Mapping[str, Any]


def version(summary: Summary) -> str:
    """Differs when anything of a conversation did, or another one has its id."""
    return f"{summary.number}.{summary.revision}"


def listed(summary: Summary) -> dict[str, Any]:
    """A conversation in a list."""
    return {
        "id": summary.id, "title": summary.title, "turns": summary.turns, "pending": summary.pending,
        "created_at": summary.created_at, "updated_at": summary.updated_at,
    }  # fmt: skip


def overview(found: Overview) -> dict[str, Any]:
    """A conversation without its turns. `metadata` is JSON text, since numbers of JavaScript would change it."""
    return {
        **listed(found.summary),
        "version": version(found.summary),
        "revision": found.summary.revision,
        "metadata": canonical.dumps(found.metadata) if found.metadata else None,
        "input": None if found.pending is None else _pending(found.pending),
        "open_calls": [{"id": call.id, "name": call.name} for call in found.open_calls],
    }


def _pending(pending: Pending) -> dict[str, Any]:
    return {
        "content": None if pending.content is None else _cut(pending.content, MAX_TEXT),
        "results": [
            {"id": result.call_id, "is_error": result.is_error, **_cut(result.content, MAX_TEXT)}
            for result in pending.tool_results
        ],
        "history": len(pending.history or ()),
        "sources": len(pending.sources),
    }


def page(found: Page, *, whole: bool) -> dict[str, Any]:
    """Turns, their texts cut to MAX_TEXT unless `whole`."""
    named = dict(found.named)
    most = None if whole else MAX_TEXT
    return {"version": version(found.summary), "turns": [_turn(shown, named, most) for shown in found.turns]}


def _turn(shown: Shown, named: dict[str, str], most: int | None) -> dict[str, Any]:
    details = shown.details
    return {
        "seq": shown.seq,
        "finish": shown.finish,
        "created_at": shown.created_at,
        "model": details.get("model"),
        "refused": details.get("refused"),
        "notices": [[kind, text] for kind, text in details.get("notices", ())],
        "usage": _usage(shown.usage),
        "messages": [_message(message, named, most) for message in shown.messages],
    }


def _message(message: Message, named: dict[str, str], most: int | None) -> dict[str, Any]:
    """`named`: the tools of the calls so far, by call id; ids may come again, and the nearest call before counts."""
    shape: dict[str, Any] = {"role": message.role, **_cut(message.content, most)}
    if message.tool_calls:
        named.update((call.id, call.name) for call in message.tool_calls)
        shape["calls"] = [
            {"id": call.id, "name": call.name, **_cut(call.arguments_text, most)} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        shape |= {"id": message.tool_call_id, "name": named.get(message.tool_call_id), "is_error": message.is_error}
    return shape


def _cut(text: str, most: int | None) -> dict[str, Any]:
    """The beginning of a text, and how many characters it has."""
    return {"text": text if most is None else text[:most], "chars": len(text)}


def _usage(usage: Usage | None) -> list[int] | None:
    """Input, cached, cache write, output, reasoning."""
    if usage is None:
        return None
    return [
        usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens, usage.reasoning_tokens
    ]  # fmt: skip


def usages(summary: Summary, first: int, found: Iterable[Usage | None]) -> dict[str, Any]:
    """The usage of turns in order."""
    return {"version": version(summary), "first": first, "usage": [_usage(one) for one in found]}


def place(found: Found, words: str) -> dict[str, Any]:
    """Where words stand, with the text around them."""
    return {"seq": found.seq, "role": found.role, "of": found.of, **excerpt(found.text, found.start, len(words))}


def excerpt(text: str, start: int, length: int) -> dict[str, str]:
    """The words as they stand, and what is before and behind them."""
    end = start + length
    before = text[max(0, start - AROUND) : start]
    return {"before": before, "words": text[start:end], "after": text[end : end + AROUND]}


def branches(found: Sequence[Branch]) -> dict[str, Any]:
    """A tree of forks."""
    names = ("id", "title", "turns", "updated_at", "parent", "at")
    return {"branches": [{name: getattr(branch, name) for name in names} for branch in found]}
