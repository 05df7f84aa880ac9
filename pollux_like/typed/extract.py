"""Copies: which texts a value may be, where they stand, and the spans that prove it.

A copied value begins and ends at word boundaries and stays on one line. Letters of scripts that are written without
blanks (Han, kana, Thai and the like) are words of their own. A boundary never cuts a combining mark, a variation
selector or a joined emoji from what it belongs to.
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
_LINE = regex.compile("[^\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]+")


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


def span(text: Text, start: int, end: int) -> Span:
    """The span of `text.text[start:end]`."""
    before, inner = utf16(text.text[:start]), utf16(text.text[start:end])
    return Span(text.source, text.message, text.role, start, end, before, before + inner, text.text[start:end])


def utf16(text: str) -> int:
    """UTF-16 code units, as JavaScript counts characters."""
    return len(text) + sum(1 for c in text if c > "\uffff")


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
        at = text.text.find(value)
        while at >= 0 and value:
            if bounded(text.text, at, at + len(value)):
                found.append(span(text, at, at + len(value)))
            at = text.text.find(value, at + 1)
    return tuple(found)


def candidates(pattern: str | None, format: str | None, texts: Iterable[Text]) -> tuple[Span, ...]:
    """Word-bounded matches of a pattern or named format, in reading order. Raises PatternTimeout."""
    expression = pattern if pattern is not None else patterns.FORMATS[format or ""]
    return tuple(found for text in texts for found in _matches(expression, text) if patterns.holds(format, found.text))


def _matches(expression: str, text: Text) -> Iterator[Span]:
    for start, end in patterns.spans(expression, text.text, 10 * MAX_CANDIDATES):
        while start < end and text.text[start].isspace():
            start += 1
        while end > start and text.text[end - 1].isspace():
            end -= 1
        stretch = text.text[start:end]
        one_line = _LINE.fullmatch(stretch) is not None
        if one_line and len(stretch) <= MAX_VALUE_CHARS and bounded(text.text, start, end):
            yield span(text, start, end)


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
