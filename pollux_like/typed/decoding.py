"""Decoding: the constraint of a field, and what the engine's steps prove about it.

An engine is asked to keep a constraint and is not believed: every step is walked here again. A token is allowed where
what was written so far and the token still begin an allowed text; the end of the turn and a line break both end it.
`confidence` is the product over the steps of the chosen token's share among the allowed ones, a posterior over the
allowed texts; `mass` is the product of what all allowed tokens had together, how willingly the model kept to them.
Sums go over the alternatives that the engine returns, the likeliest ones.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp

from pollux_like.engine import Choice, Constraint, Copy, Free, Shape, Step
from pollux_like.typed import patterns

INT = Shape(" -?(0|[1-9][0-9]{0,17})", '" " "-"? ("0" | [1-9] [0-9]{0,17})')
FLOAT = Shape(" -?(0|[1-9][0-9]{0,14})(\\.[0-9]{1,8})?", '" " "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,8})?')
DATE = Shape(
    " [12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    '" " [12] [0-9]{3} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])',
)


def or_words(shape: Shape, words: Sequence[str]) -> Shape:
    """The shape, or one of the words."""
    quoted = [f'"{word}"' for word in words]
    return Shape(f"({'|'.join((shape.pattern, *words))})", f"({' | '.join((shape.gbnf, *quoted))})")


@dataclass(frozen=True, slots=True)
class Scored:
    """What the steps say: the text without its leading blank, whether it is allowed and complete, and probabilities.

    `alternatives` (of a choice): other options with their probability, None where the steps leave several options
    of one beginning undecided.
    """

    text: str = field(repr=False)
    fits: bool
    confidence: float | None = None
    mass: float | None = None
    alternatives: tuple[tuple[str, float | None], ...] = field(default=(), repr=False)


class Walk:
    """A constraint with a text in the making, as bytes."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._written = b""
        self._options = [option.encode() for option in _options(constraint)]
        self._places: list[tuple[str, int, frozenset[int]]] = []
        if isinstance(constraint, Copy):
            for line in constraint.lines:
                starts, ends, at = list[int](), set[int](), 0
                for index, piece in enumerate(line):
                    if index % 2 == 0:
                        starts.append(at)
                        ends.add(at + len(piece))
                    at += len(piece)
                whole = "".join(line)
                last = frozenset(ends)
                self._places += [(whole, start, last) for start in starts]
        self._firsts: dict[str, list[tuple[str, int, frozenset[int]]]] = {}
        for place in self._places:
            self._firsts.setdefault(place[0][place[1]], []).append(place)

    @property
    def text(self) -> str:
        """What was written, an unfinished character left out."""
        return self._written.decode(errors="ignore")

    def add(self, data: bytes) -> None:
        """Write a token."""
        self._written += data
        self._options = [option for option in self._options if option.startswith(self._written)]
        known, _ = _cut(self._written)
        if known[:1] == " ":
            self._places = [place for place in self._places if place[0].startswith(known[1:], place[1])]

    def ended(self, data: bytes) -> bool:
        """Whether the token ends the text. Free text has lines; all else is of one."""
        return not data or (ends(data) and not isinstance(self._constraint, Free))

    def allows(self, data: bytes) -> bool:
        """Whether what was written and `data` begin an allowed text, or `data` ends an allowed one."""
        if self.ended(data):
            return self.complete()
        text = self._written + data
        match self._constraint:
            case Free():
                return True
            case Shape(pattern):
                return text.isascii() and patterns.begins(pattern, text.decode())
            case _:
                return any(option.startswith(text) for option in self._options) or self._copies(text)

    def complete(self) -> bool:
        """Whether what was written is an allowed text."""
        match self._constraint:
            case Free():
                return True
            case Shape(pattern):
                return self._written.isascii() and patterns.matches(pattern, self._written.decode())
            case _:
                if self._written in self._options:
                    return True
                known, rest = _cut(self._written)
                value = known[1:]
                return not rest and bool(value) and any(start + len(value) in e for _, start, e in self._places)

    def options(self, data: bytes) -> list[bytes]:
        """The options of a choice that are left after `data`."""
        if ends(data):
            return [self._written] if self._written in self._options else []
        return [option for option in self._options if option.startswith(self._written + data)]

    def _copies(self, text: bytes) -> bool:
        known, rest = _cut(text)
        if not self._places or (known and known[0] != " "):
            return False
        value = known[1:]
        begun = len(self._written) > 1
        for whole, start, _ in self._places if begun or not value else self._firsts.get(value[0], []):
            if whole.startswith(value, start):
                after = start + len(value)
                if not rest or (len(whole) > after and whole[after].encode().startswith(rest)):
                    return True
        return False


def ends(data: bytes) -> bool:
    """Whether the token ends the value: the end of the turn, or a line break."""
    return not data or data[:1] in (b"\n", b"\r")


def scored(constraint: Constraint, steps: Sequence[Step], *, masked: bool | None) -> Scored:
    """Walk the steps. `masked`: the engine's probabilities are already shares among the allowed tokens."""
    walk = Walk(constraint)
    confidence, mass = 1.0, 1.0
    known = masked is not None
    others: dict[bytes, float | None] = {}
    for step in steps:
        if not walk.allows(step.data):
            return Scored(_value(walk.text + step.data.decode(errors="replace")), fits=False)
        if step.logprob is None:
            known = False
        else:
            share, total, rivals = _share(walk, step, masked=bool(masked))
            _note(walk, rivals, confidence, others)
            confidence, mass = confidence * share, mass * total
        if walk.ended(step.data):
            break
        walk.add(step.data)
    if not walk.complete():
        return Scored(_value(walk.text), fits=False)
    chosen = walk.text.encode()
    if isinstance(constraint, Choice):
        for option in constraint.options:
            others.setdefault(option.encode(), 0.0 if known and len(constraint.options) == 1 else None)
    found = tuple((_value(text.decode()), p) for text, p in others.items() if text != chosen)
    free = isinstance(constraint, Free)
    return Scored(
        _value(walk.text),
        fits=True,
        confidence=min(1.0, confidence) if known and not free else None,
        mass=min(1.0, mass) if known and not masked and not free else None,
        alternatives=tuple(sorted(found, key=lambda pair: -(pair[1] or 0.0))),
    )


def _share(walk: Walk, step: Step, *, masked: bool) -> tuple[float, float, list[tuple[bytes, float]]]:
    """The chosen token's share, the allowed mass, and the share of each other allowed token."""
    found = {data: exp(logprob) for data, logprob in step.alternatives if walk.allows(data)}
    found[step.data] = exp(step.logprob or 0.0)
    same = ends(step.data)
    chosen = sum(p for data, p in found.items() if ends(data)) if same else found[step.data]
    total = sum(found.values())
    scale = 1.0 if masked else total
    if scale <= 0.0:
        return 0.0, 0.0, []
    rivals = [(d, p / scale) for d, p in found.items() if d != step.data and not (same and ends(d))]
    return chosen / scale, total, rivals


def _note(walk: Walk, rivals: list[tuple[bytes, float]], before: float, others: dict[bytes, float | None]) -> None:
    for data, share in rivals:
        options = walk.options(data)
        if len(options) == 1:
            others[options[0]] = (others.get(options[0]) or 0.0) + before * share


def _options(constraint: Constraint) -> tuple[str, ...]:
    match constraint:
        case Choice(options):
            return options
        case Copy(_, also):
            return also
        case _:
            return ()


def _cut(data: bytes) -> tuple[str, bytes]:
    """Whole characters, and the bytes of one that is not finished."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    known = decoder.decode(data)
    return known, decoder.getstate()[0]


def _value(text: str) -> str:
    return text[1:] if text.startswith(" ") else text
