"""Structured reasoning of a chat message, a list of typed entries: its streamed pieces put together again.

Recorded answers of OpenRouter: text in pieces under one index with the signature last, and two entries of different
types under one index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

_GROWING = ("text", "summary")
_NAMES = ("type", "id")


def merged(entries: Sequence[dict[str, Any]], pieces: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries so far with a chunk's pieces: text and summary grow, any other member is taken when it appears.

    A piece belongs to the newest entry of its index whose type and id it does not contradict, else it begins one.
    """
    result = list(entries)
    for piece in pieces:
        for position in reversed(range(len(result))):
            if _same(result[position], piece, newest=position == len(result) - 1):
                result[position] = _grown(result[position], piece)
                break
        else:
            result.append(dict(piece))
    return result


def sealed(entries: object) -> bool:
    """Whether an entry has a signature or encrypted data."""
    found = cast("list[object]", entries) if isinstance(entries, list) else []
    return any(
        bool(cast("dict[str, Any]", one).get("signature") or cast("dict[str, Any]", one).get("data"))
        for one in found
        if isinstance(one, dict)
    )


def _same(entry: dict[str, Any], piece: dict[str, Any], *, newest: bool) -> bool:
    if entry.get("index") != piece.get("index"):
        return False
    if piece.get("index") is None and (not newest or piece.get("data") is not None):
        return False
    return all(entry.get(name) == piece.get(name) or None in (entry.get(name), piece.get(name)) for name in _NAMES)


def _grown(entry: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    grown = dict(entry)
    for key, value in piece.items():
        before = grown.get(key)
        if key in _GROWING and isinstance(before, str) and isinstance(value, str):
            grown[key] = before + value
        elif value is not None or key not in grown:
            grown[key] = value
    return grown
