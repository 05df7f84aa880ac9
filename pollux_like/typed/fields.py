"""One field: what may be its value, what the engine chose among it, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import anyio.to_thread

from pollux_like.engine import Choice, Constraint, Copy, Counted, Engine, Free, Prompt, Step, Turn
from pollux_like.errors import ContextOverflowError
from pollux_like.typed import decoding, extract, rendering
from pollux_like.typed.answers import FieldAnswer, FieldError, Fired, Usage
from pollux_like.typed.conversation import Conversation, Text
from pollux_like.typed.decoding import Scored
from pollux_like.typed.extract import Span
from pollux_like.typed.patterns import PatternTimeout
from pollux_like.typed.schema import Field
from pollux_like.typed.values import rendered, value_of

MAX_VALUE_TOKENS = 256
COPY_TOKENS = 128
"""Of a value that is any stretch of a line. A small model copies on and on."""

PLAIN_TOKENS = 48
MAX_EVIDENCE = 32
_FORMAT = {"int": "number", "float": "number", "date": "date"}
_SHAPES = {"int": decoding.INT, "float": decoding.FLOAT, "date": decoding.DATE}


class Calibrates(Protocol):
    """Turns raw probabilities into calibrated ones."""

    def confidence(self, field: Field, answer: FieldAnswer) -> float | None:
        """The calibrated confidence, None where nothing was fitted for this type."""
        ...


@dataclass(slots=True)
class Job:
    """One request in work: the engine, the conversation as turns, and the tokens so far."""

    engine: Engine
    conversation: Conversation
    turns: tuple[Turn, ...]
    usage: Usage = field(default_factory=Usage)
    calibrator: Calibrates | None = None
    seed: int = 0

    def texts(self, one: Field) -> tuple[Text, ...]:
        """What the field may be read from."""
        return self.conversation.system_texts() if one.fact else self.conversation.texts()

    def count(self, counted: Counted) -> None:
        """Add the counters of one call."""
        usage = self.usage
        fresh = None if counted.prompt is None or counted.cached is None else counted.prompt - counted.cached
        usage.evaluated_tokens = _sum(usage.evaluated_tokens, fresh)
        usage.cached_tokens = _sum(usage.cached_tokens, counted.cached)
        usage.generated_tokens = _sum(usage.generated_tokens, counted.generated)

    async def decode(self, prompt: Prompt, constraint: Constraint, most: int) -> tuple[Scored, str]:
        """Run the engine once, and walk what it gave. The second is why it stopped: stop or length."""
        steps: list[Step] = []
        finish = "stop"
        running = self.engine.generate(prompt, constraint, max_tokens=most, seed=self.seed)
        async with aclosing(running) as items:
            async for item in items:
                if isinstance(item, Step):
                    steps.append(item)
                else:
                    finish = item.finish
                    self.count(item)
        return decoding.scored(constraint, steps, masked=self.engine.info.masked), finish


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def failed(code: str, message: str) -> FieldAnswer:
    """A field without a value."""
    return FieldAnswer(None, status="missing", decision="review", error=FieldError(code, message))


async def read(job: Job, one: Field, known: Mapping[str, Any]) -> FieldAnswer:
    """The model's answer for a field. Raises what the engine raises, APIError; all else is in the answer."""
    if one.fact and job.conversation.system is None:
        return _absent(one, "no_record", "A fact is read from the system text, and there is none")
    try:
        if one.type == "list":
            return await _list(job, one, known)
        return await _single(job, one, known)
    except PatternTimeout:
        return failed("pattern_timeout", "The pattern did not finish in time on this conversation")
    except ContextOverflowError as error:
        return failed("context_overflow", error.message)


async def _single(job: Job, one: Field, known: Mapping[str, Any]) -> FieldAnswer:
    texts = job.texts(one)
    spans = await anyio.to_thread.run_sync(_candidates, one, texts, abandon_on_cancel=True)
    constraint, most = _constraint(one, texts, spans)
    if constraint is None:
        return _absent(one, "no_candidate", "Nothing in the conversation can be the value of this extract field")
    if isinstance(constraint, Choice) and len(constraint.options) > extract.MAX_CANDIDATES + 1:
        return failed("too_many_candidates", f"More than {extract.MAX_CANDIDATES} texts match; narrow the pattern")
    turns = rendering.record(job.conversation) if one.fact else job.turns
    result, finish = await job.decode(rendering.field_prompt(turns, one, known), constraint, most)
    if isinstance(constraint, Free):
        return _written(one, result.text, finish)
    if not result.fits and finish == "length" and isinstance(constraint, Copy):
        return failed("too_long", f"The value did not end in {most} tokens; a pattern says what it looks like")
    if not result.fits:
        return failed("engine_error", "The engine left the constraint of the field")
    return await _chosen(job, one, result, texts, spans)


def _written(one: Field, text: str, finish: str) -> FieldAnswer:
    value = text.strip() if one.free_form else text.strip().split("\n")[0].strip()
    if not value or (one.nullable and value == "null"):
        return _absent(one, "empty", "The model wrote nothing")
    cut = finish == "length" and (one.free_form or "\n" not in text.strip())
    rules = (Fired("length", "review"),) if cut else ()
    return FieldAnswer(value, decision="review" if rules else "accept", rules=rules)


async def _chosen(
    job: Job, one: Field, result: Scored, texts: Sequence[Text], spans: tuple[Span, ...] | None
) -> FieldAnswer:
    try:
        value = _value(one, result.text)
    except ValueError:
        return failed("out_of_bounds", "The value is out of the bounds of the field, or is no such value")
    status, evidence = await anyio.to_thread.run_sync(_evidence, one, result.text, value, texts, spans)
    made = FieldAnswer(
        value,
        confidence=result.confidence,
        mass=result.mass,
        status=status,
        evidence=evidence[-MAX_EVIDENCE:],
        alternatives=tuple(_alternatives(one, result)),
    )
    fitted = job.calibrator.confidence(one, made) if job.calibrator and made.confidence is not None else None
    return made if fitted is None else replace(made, confidence=fitted, calibrated=True)


async def _list(job: Job, one: Field, known: Mapping[str, Any]) -> FieldAnswer:
    """Item by item: among what is left, or the word none that ends the list."""
    item = one.items
    assert item is not None  # every field of type list has items
    texts = job.texts(one)
    spans = await anyio.to_thread.run_sync(_candidates, item, texts, abandon_on_cancel=True)
    turns = rendering.record(job.conversation) if one.fact else job.turns
    values, taken, evidence = list[Any](), set[str](), list[Span]()
    confidence: float | None = None
    mass: float | None = None
    bare = False
    while len(values) < one.max_items:
        left = None if spans is None else tuple(span for span in spans if span.text not in taken)
        constraint, most = _constraint(item, texts, left, taken=taken, end=" none")
        if constraint is None:
            break
        begin = "".join(f" {rendered(value)};" for value in values)
        result, _ = await job.decode(rendering.field_prompt(turns, one, known, begin), constraint, most)
        if not result.fits:
            return failed("engine_error", "The engine left the constraint of the field")
        first = not values
        confidence = result.confidence if first else _times(confidence, result.confidence)
        mass = result.mass if first else _times(mass, result.mass)
        if result.text == "none" or result.text in taken:
            break
        try:
            value = value_of(item, result.text)
        except ValueError:
            return failed("out_of_bounds", "An item is out of the bounds of the field")
        taken.add(result.text)
        values.append(value)
        own = (await anyio.to_thread.run_sync(_evidence, item, result.text, value, texts, spans))[1]
        bare = bare or not own
        evidence += own[-4:]
    if not values:
        return FieldAnswer(None if one.nullable else [], confidence=confidence, mass=mass, status="missing")
    made = FieldAnswer(values, confidence=confidence, mass=mass, evidence=tuple(evidence[:MAX_EVIDENCE]))
    if one.fact and bare and evidence:  # where nothing is proven, the guard of facts speaks
        return replace(made, decision="review", rules=(Fired("fact_unproven", "review"),))
    return made


def _times(total: float | None, factor: float | None) -> float | None:
    return None if total is None or factor is None else total * factor


def _absent(one: Field, code: str, message: str) -> FieldAnswer:
    return FieldAnswer(None, status="missing") if one.nullable else failed(code, message)


def _candidates(one: Field, texts: Sequence[Text]) -> tuple[Span, ...] | None:
    """Spans that can be the value, None where every stretch of words can."""
    form = one.format if one.format is not None else _FORMAT.get(one.type)
    if not one.extract or (one.pattern is None and form is None):
        return None
    return tuple(found for found in extract.candidates(one.pattern, form, texts) if _reads(one, found.text))


def _reads(one: Field, text: str) -> bool:
    try:
        value_of(one, text)
    except (ValueError, KeyError):
        return False
    return True


def _constraint(
    one: Field, texts: Sequence[Text], spans: tuple[Span, ...] | None, *, taken: set[str] | None = None, end: str = ""
) -> tuple[Constraint | None, int]:
    """The constraint and the most tokens it can take; None where no text satisfies it."""
    also = tuple(word for word in (" null" if one.nullable else "", end) if word)
    if one.extract and spans is None:
        lines = extract.lines(texts)
        return (Copy(lines, also) if lines else None), COPY_TOKENS
    if spans is not None:
        return _choice([f" {text}" for text in extract.distinct(spans)], also)
    if one.type in _SHAPES:
        shape = _SHAPES[one.type]
        if also:
            shape = decoding.or_words(shape, also)
        return shape, 32
    if one.type == "bool":
        return _choice([" true", " false"], also)
    if one.type == "enum":
        return _choice([f" {option}" for option in one.options if option not in (taken or ())], also)
    return Free(), one.max_tokens if one.free_form else PLAIN_TOKENS


def _choice(options: list[str], also: tuple[str, ...]) -> tuple[Constraint | None, int]:
    if not options:
        return None, 0
    every = tuple(dict.fromkeys((*options, *also)))
    return Choice(every), min(MAX_VALUE_TOKENS, max(len(option.encode()) for option in every) + 2)


def _value(one: Field, text: str) -> Any:
    return None if one.nullable and text == "null" else value_of(one, text)


def _alternatives(one: Field, result: Scored) -> list[tuple[Any, float | None]]:
    found: list[tuple[Any, float | None]] = []
    for text, probability in result.alternatives:
        value = _value(one, text)
        if all(value != other or isinstance(value, bool) != isinstance(other, bool) for other, _ in found):
            found.append((value, probability))
    return found


def _evidence(
    one: Field, text: str, value: Any, texts: Sequence[Text], spans: tuple[Span, ...] | None
) -> tuple[str, tuple[Span, ...]]:
    """The status, and spans in reading order."""
    if value is None:
        return "missing", ()
    if one.type in _FORMAT and spans is None:
        try:
            found = extract.candidates(None, _FORMAT[one.type], texts)
        except PatternTimeout:  # the value stands; on so long a conversation it has no evidence
            return "present", ()
        return "present", tuple(span for span in found if _reads(one, span.text) and value_of(one, span.text) == value)
    if not one.extract:
        return "present", extract.occurrences(text, texts) if one.type == "enum" else ()
    if spans is None or (one.pattern is None and one.format is None):
        return "present", extract.occurrences(text, texts)
    order = {(span.source, span.message, span.start): n for n, span in enumerate(spans)}
    meant = {same: value_of(one, same) == value for same in extract.distinct(spans)}
    own = [span for span in spans if meant[span.text]]
    rest = [span for span in spans if span.role == "user" and not meant[span.text]]
    both = tuple(sorted((*own, *rest), key=lambda span: order[span.source, span.message, span.start]))
    if not rest:
        return "present", tuple(own)
    return ("corrected" if both[-1] in own else "conflicting"), both
