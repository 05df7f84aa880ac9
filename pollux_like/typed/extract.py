"""Copies: which texts a value may be, where they stand, and the spans that prove it.

A copied value begins and ends at word boundaries and stays on one line; U+0000, which grammars end at, ends lines.
Letters of scripts that are written without blanks (Han, kana, Thai and the like) are words of their own. A boundary
never cuts a combining mark, a variation selector or a joined emoji from what it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import regex

from pollux_like.typed import patterns
from pollux_like.typed.conversation import Text

MAX_CANDIDATES = 256
MAX_VALUE_CHARS = 200

_TRIM = "\\p{Z}\\s.,;:!?…()\\[\\]{}\"'“”‘’„‚«»‹›<>*`|=。，、！？：；（）「」『』【】《》؟،؛"
_ALONE = "[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Thai}\\p{Lao}\\p{Khmer}\\p{Myanmar}]"
_WORD = regex.compile(
    f"{_ALONE}[\\p{{M}}\\u200d\\ufe0f]*|(?:(?!{_ALONE})[^{_TRIM}\\p{{C}}])(?:(?!{_ALONE})[^\\p{{Z}}\\s])*",
    regex.VERSION1,
)
_TAIL = regex.compile(f"[{_TRIM}]+$", regex.VERSION1)
_JOINS = regex.compile(
    "[\\p{M}\\u200c\\u200d\\ufe00-\\ufe0f\\U0001f3fb-\\U0001f3ff\\U000e0020-\\U000e007f]", regex.VERSION1
)
_INNER = regex.compile(f"(?!{_ALONE})[\\p{{L}}\\p{{N}}_]", regex.VERSION1)
_LINE = regex.compile("[^\\x00\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]+")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one text. `start` and `end` are code points, end exclusive; the others UTF-16 units."""

    source: str
    message: int | None
    role: str
    start: int
    end: int
    start_utf16: int
    end_utf16: int
    text: str = field(repr=False)


def spans(text: Text, places: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """The spans of `text.text[start:end]`, the starts in rising order; the text is counted once for all of them."""
    at = units = 0
    for start, end in places:
        units += utf16(text.text[at:start])
        at = start
        found = text.text[start:end]
        yield Span(text.source, text.message, text.role, start, end, units, units + utf16(found), found)


def utf16(text: str) -> int:
    """UTF-16 code units, as JavaScript counts characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def bounded(text: str, start: int, end: int) -> bool:
    """Whether the stretch begins and ends at word boundaries."""
    return _boundary(text, start) and _boundary(text, end)


def _boundary(text: str, at: int) -> bool:
    if at <= 0 or at >= len(text):
        return True
    if _JOINS.match(text[at]) or text[at - 1] == "\u200d":
        return False
    if 0x1F1E6 <= ord(text[at]) <= 0x1F1FF and 0x1F1E6 <= ord(text[at - 1]) <= 0x1F1FF:
        return False  # two letters of one flag
    left = at - 1
    while left and _JOINS.match(text[left]):
        left -= 1
    return not (_INNER.match(text[left]) and _INNER.match(text[at]))


def occurrences(value: str, texts: Iterable[Text]) -> tuple[Span, ...]:
    """Every word-bounded place of the value, in reading order."""
    found: list[Span] = []
    for text in texts:
        found += spans(text, _places(value, text.text))
    return tuple(found)


def _places(value: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(value)
    while at >= 0 and value:
        if bounded(text, at, at + len(value)):
            yield at, at + len(value)
        at = text.find(value, at + 1)


def candidates(pattern: str | None, format: str | None, texts: Iterable[Text]) -> tuple[Span, ...]:
    """Word-bounded matches of a pattern or named format, in reading order. Raises PatternTimeout."""
    expression = pattern if pattern is not None else patterns.FORMATS[format or ""]
    until = patterns.deadline()
    matched = (found for text in texts for found in spans(text, _matches(expression, text.text, until)))
    return tuple(found for found in matched if patterns.holds(format, found.text))


def _matches(expression: str, text: str, until: float) -> Iterator[tuple[int, int]]:
    for start, end in patterns.spans(expression, text, until):
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        fits = end - start <= MAX_VALUE_CHARS and _LINE.fullmatch(text, start, end) is not None
        if fits and bounded(text, start, end):
            yield start, end


def lines(texts: Iterable[Text]) -> tuple[tuple[str, ...], ...]:
    """The lines that a value may be copied from, each once: word, gap, word, gap, …, word. Gaps may be empty."""
    found: dict[tuple[str, ...], None] = {}
    for text in texts:
        for line in _LINE.findall(text.text):
            cut = tuple(_cut(line))
            if cut:
                found[cut] = None
    return tuple(found)


def _cut(line: str) -> Iterator[str]:
    end: int | None = None
    for word in _WORD.finditer(line):
        tail = _TAIL.search(word.group())
        stop = word.start() + tail.start() if tail else word.end()
        if stop <= word.start() or not (_boundary(line, word.start()) and _boundary(line, stop)):
            continue
        if end is not None:
            yield line[end : word.start()]
        yield line[word.start() : stop]
        end = stop


def distinct(spans: Sequence[Span]) -> tuple[str, ...]:
    """The texts of the spans, each once, in order of first appearance."""
    return tuple(dict.fromkeys(one.text for one in spans))
