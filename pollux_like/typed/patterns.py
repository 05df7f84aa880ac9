"""Regular expressions of the user, run with a bound on time (the package `regex`), and the named formats.

A pattern that takes longer than `TIMEOUT_S` on a conversation is an error of its field or rule, never a wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import regex

from pollux_like.errors import ConfigurationError

TIMEOUT_S = 0.5
"""Seconds that one expression may work for one field or rule, on all texts together."""

MAX_PATTERN_CHARS = 1000

FORMATS = {
    "email": r"[\p{L}\p{N}._%+-]{1,64}@(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24}",
    "phone": r"(?:\+|00)?[0-9(][0-9() ./-]{5,22}[0-9]",
    "iban": r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?",
    "date": (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}"
        r"|[0-9]{1,2}\.? \p{L}{3,12}\.?,? [0-9]{4}|\p{L}{3,12} [0-9]{1,2},? [0-9]{4}|[0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日"
    ),
    "number": r"(?<![\p{L}\p{N}_.,/-])[+-]?[0-9]+(?:[.,' ][0-9]{3})*(?:[.,][0-9]+)?(?![\p{N}/_-])",
    "id": (
        r"(?<![0-9][.,])(?=[A-Za-z\p{Cyrillic}\p{Greek}\p{N}/_-]*[0-9])"
        r"[A-Za-z\p{Cyrillic}\p{Greek}\p{N}]+(?:[/_-][A-Za-z\p{Cyrillic}\p{Greek}\p{N}]+)*(?![.,][0-9])"
    ),
    "url": r"https?://[^\s<>\"'()]+[^\s<>\"'().,;:!?]",
}
"""Named formats of extract fields: what candidates look like. `holds` says more on some of them."""


class PatternTimeout(Exception):
    """The expression did not finish in `TIMEOUT_S`."""


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """The expression. Raises ConfigurationError with what is wrong and where."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ConfigurationError(
            f"the pattern has more than {MAX_PATTERN_CHARS:,} characters", hint="Shorten it, or name a format"
        )
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise ConfigurationError(
            f"the pattern is no regular expression ({error})", hint="Correct it; the syntax is that of Python's re"
        ) from None


def deadline() -> float:
    """The moment, on the monotonic clock, at which an expression that begins now has to be through."""
    return time.monotonic() + TIMEOUT_S


def spans(pattern: str, text: str, until: float) -> Iterator[tuple[int, int]]:
    """Start and end of each match that is not empty. Raises PatternTimeout at `until`."""
    try:
        for found in compiled(pattern).finditer(text, timeout=_left(until), concurrent=True):
            if found.end() > found.start():
                yield found.start(), found.end()
    except (TimeoutError, MemoryError):
        raise PatternTimeout from None


def matches(pattern: str, text: str, until: float | None = None) -> bool:
    """Whether the expression matches the whole text. Raises PatternTimeout."""
    try:
        left = TIMEOUT_S if until is None else _left(until)
        return compiled(pattern).fullmatch(text, timeout=left, concurrent=True) is not None
    except (TimeoutError, MemoryError):
        raise PatternTimeout from None


def _left(until: float) -> float:
    return max(0.001, until - time.monotonic())


def begins(pattern: str, text: str) -> bool:
    """Whether some text that begins so matches the whole expression. For our own small expressions."""
    return compiled(pattern).fullmatch(text, partial=True) is not None


def holds(format: str | None, text: str) -> bool:
    """What an expression cannot say: an IBAN's check digits (ISO 13616), at most 15 digits of a phone (E.164)."""
    if format == "iban":
        plain = text.replace(" ", "")
        return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1
    return format != "phone" or 7 <= sum(c.isdecimal() for c in text) <= 15
