"""READ FIRST. One request: check, encode the shared prefix once, then field after field, then rules and guards.

Fields run one after another, in the order of their dependencies: all but the first token of each prompt's shared part
comes from the engine's cache. What a field depends on stands in its own turn, never in the prefix.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anyio.to_thread

from pollux_like import canonical, checks
from pollux_like.engine import Engine, Free, Prompt, Step
from pollux_like.errors import ConfigurationError
from pollux_like.typed import fields as _fields
from pollux_like.typed import guards, rendering, rules
from pollux_like.typed.answers import FieldAnswer, Fired, Generated, TypedAnswer
from pollux_like.typed.calls import CallFailed, Calls
from pollux_like.typed.conversation import Conversation, read_conversation
from pollux_like.typed.extract import Span, occurrences
from pollux_like.typed.fields import Calibrates, Job
from pollux_like.typed.guards import Flag
from pollux_like.typed.rules import Rule, read_match
from pollux_like.typed.schema import Field, read_schema

DEFAULT_GENERATE_TOKENS = 256
MAX_GENERATE_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was checked. `fields` is empty for generation, `match` is for generation alone."""

    conversation: Conversation
    fields: tuple[Field, ...] = ()
    order: tuple[str, ...] = ()
    previous: Mapping[str, Any] | None = field(default=None, repr=False)
    seed: int = 0
    max_tokens: int = DEFAULT_GENERATE_TOKENS
    match: tuple[Rule, ...] = ()
    model: Any = None


def read_request(
    *, messages: object = None, context: object = None, system: object = None, schema: object = None,
    previous: object = None, seed: object = 0, calls: Calls | None = None, model: Any = None,
) -> Request:  # fmt: skip
    """Check all of a typed request before any token is spent. Raises ConfigurationError, SchemaError."""
    conversation = read_conversation(messages, context, system)
    read = read_schema(schema)
    (calls or Calls()).check(read)
    earlier = None if previous is None else checks.json_object(previous, "previous")
    if earlier is not None and not all(isinstance(earlier.get(key), dict) for key in ("values", "provenance")):
        raise ConfigurationError("previous is no earlier answer", hint="Give the whole JSON of an answer back")
    order = tuple(cast("Mapping[str, Any]", schema))
    number = checks.whole(seed, "seed", least=0, most=2**31 - 1)
    return Request(conversation, read, order, earlier, number, model=model)


def read_generate(
    *, messages: object = None, context: object = None, system: object = None, match: object = None,
    max_tokens: object = DEFAULT_GENERATE_TOKENS, seed: object = 0,
) -> Request:  # fmt: skip
    """Check a request for the next assistant turn. Raises ConfigurationError, SchemaError for a bad `match`."""
    conversation = read_conversation(messages, context, system)
    if conversation.messages and conversation.messages[-1][1] != "user":
        raise ConfigurationError("the last message is the assistant's own", hint="End with a user message")
    most = checks.whole(max_tokens, "max_tokens", least=1, most=MAX_GENERATE_TOKENS)
    number = checks.whole(seed, "seed", least=0, most=2**31 - 1)
    return Request(conversation, seed=number, max_tokens=most, match=read_match(match, "match"))


async def fields(
    engine: Engine, request: Request, *, calls: Calls | None = None, calibrator: Calibrates | None = None
) -> AsyncGenerator[tuple[str, FieldAnswer] | TypedAnswer, None]:
    """Each field as soon as it is known, and last the whole answer. Raises APIError where the engine fails."""
    conversation = request.conversation
    job = Job(engine, conversation, rendering.shared(conversation), calibrator=calibrator, seed=request.seed)
    found = await anyio.to_thread.run_sync(guards.flags, conversation.texts(), abandon_on_cancel=True)
    asked = [one for one in request.fields if one.type != "call" and not one.fact]
    if asked:
        opened = await engine.open(rendering.field_prompt(job.turns, asked[0], {}))
        job.usage.prefix_tokens = opened.prompt
        job.count(opened)
    answers: dict[str, FieldAnswer] = {}
    compared = _compared(request)
    for one in request.fields:
        known = {name: answers[name].value for name in one.depends_on}
        answer = await _answer(job, one, known, calls or Calls())
        answer = await _ruled(one, _guarded(one, answer, found, answers), known, calls or Calls())
        answers[one.name] = _labelled(request, one, answer, compared)
        yield one.name, answers[one.name]
    ordered = {name: answers[name] for name in request.order}
    provenance = _provenance(engine, request, found, rendering.SYSTEM_LINE) | {"previous": compared}
    yield TypedAnswer(ordered, provenance, job.usage, request.model)


async def _answer(job: Job, one: Field, known: Mapping[str, Any], calls: Calls) -> FieldAnswer:
    if one.call is None:
        return await _fields.read(job, one, known)
    try:
        value = await calls.value(one.call, one.name, known)
    except CallFailed as error:
        return _fields.failed("call_failed", str(error))
    return FieldAnswer(value, status="missing" if value is None else "present")


def _guarded(one: Field, answer: FieldAnswer, found: Sequence[Flag], answers: Mapping[str, FieldAnswer]) -> FieldAnswer:
    """Review for what rests on flagged text, for values that a later one of the slot conflicts with, for facts that no
    record shows, for claims that a fact contradicts."""
    fired: list[Fired] = []
    if one.type != "call" and not one.fact and answer.error is None:
        touched = _touched(one, answer.evidence, answer.value, found)
        fired += [Fired(f"guard:{kind}", "review") for kind in dict.fromkeys(flag.kind for flag in touched)]
    if answer.status == "conflicting":
        fired.append(Fired("conflicting", "review"))
    if one.fact and answer.value is not None and not answer.evidence:
        fired.append(Fired("fact_unproven", "review"))
    if one.claims is not None and answer.value is not None and not rules.same(answer.value, answers[one.claims].value):
        fired.append(Fired("claims", "review"))
    if not fired:
        return answer
    return replace(answer, decision="review", rules=(*answer.rules, *fired))


def _touched(one: Field, evidence: Sequence[Span], value: Any, found: Sequence[Flag]) -> list[Flag]:
    """The findings that bear on a value: those of its own texts where it was copied, else all."""
    if not one.extract or value is None:
        return list(found)
    places = {(span.source, span.message) for span in evidence}
    return [flag for flag in found if (flag.source, flag.message) in places]


async def _ruled(one: Field, answer: FieldAnswer, known: Mapping[str, Any], calls: Calls) -> FieldAnswer:
    """Apply the field's own rules, in order, each to what the ones before left; a rejected value stays rejected."""
    for rule in one.rules:
        if answer.error is not None or answer.decision == "reject" or not await _holds(rule, answer):
            continue
        answer = replace(answer, rules=(*answer.rules, Fired(rule.name, rule.do)))
        match rule.do:
            case "review":
                answer = replace(answer, decision="review")
            case "reject":
                answer = replace(answer, value=None, decision="reject", evidence=(), alternatives=())
            case "null":
                answer = replace(answer, value=None, status="missing", evidence=(), alternatives=())
            case _:
                answer = await _recorded(rule, one, answer, known, calls)
    return answer


async def _holds(rule: Rule, answer: FieldAnswer) -> bool:
    """In a thread, since an expression may take its whole time."""
    return await anyio.to_thread.run_sync(rules.holds, rule, answer.value, answer.confidence, abandon_on_cancel=True)


async def _recorded(rule: Rule, one: Field, answer: FieldAnswer, known: Mapping[str, Any], calls: Calls) -> FieldAnswer:
    try:
        value = await calls.value(rule.call or "", one.name, {**known, one.name: answer.value})
    except CallFailed as error:
        return replace(_fields.failed("call_failed", str(error)), rules=answer.rules)
    asked = {fired.rule for fired in answer.rules if fired.do == "review"} & {rule.name for rule in one.rules}
    return FieldAnswer(
        value,
        status="missing" if value is None else "present",
        decision="review" if asked else "accept",  # guards spoke of the value that the record's replaces
        rules=answer.rules,
    )


def _compared(request: Request) -> dict[str, Any] | None:
    """Whether the earlier answer is known: its messages begin these, beside the same context."""
    if request.previous is None:
        return None
    told = request.previous["provenance"]
    same = told.get("context_hash") == _context_hash(request.conversation)
    known = same and told.get("messages_hash") in request.conversation.hashes
    return {"known": known, "unchanged": [], "corrected": []}


def _labelled(request: Request, one: Field, now: FieldAnswer, compared: dict[str, Any] | None) -> FieldAnswer:
    """Label against the earlier answer: unchanged where the hash chain and the field prove it, corrected else."""
    if compared is None or not compared["known"] or request.previous is None:
        return now
    stamps = request.previous["provenance"].get("field_hashes")
    if not isinstance(stamps, dict) or cast("dict[str, Any]", stamps).get(one.name) != one.fingerprint:
        return now
    before = request.previous["values"].get(one.name)
    if rules.same(before, now.value):
        compared["unchanged"].append(one.name)
    elif before is not None and now.value is not None and not one.free_form and one.type != "call":
        compared["corrected"].append(one.name)
        if now.status == "present":
            return replace(now, status="corrected", evidence=_with_earlier(request, one, now.evidence, before))
    return now


def _with_earlier(request: Request, one: Field, evidence: tuple[Span, ...], before: Any) -> tuple[Span, ...]:
    """The evidence and, for a copied text, where the earlier value stands."""
    if not one.extract or not isinstance(before, str):
        return evidence
    texts = request.conversation.system_texts() if one.fact else request.conversation.texts()
    order = {(text.source, text.message): number for number, text in enumerate(texts)}
    every = {*evidence, *occurrences(before, texts)}
    return tuple(sorted(every, key=lambda span: (order[span.source, span.message], span.start)))[
        -_fields.MAX_EVIDENCE :
    ]


def _context_hash(conversation: Conversation) -> str | None:
    return None if conversation.context is None else canonical.sha256(conversation.context)


def _provenance(engine: Engine, request: Request, found: Sequence[Flag], line: str) -> dict[str, Any]:
    info = engine.info
    return {
        "messages_hash": request.conversation.messages_hash,
        "model": info.model,
        "engine": info.engine,
        "model_fingerprint": info.fingerprint,
        "template_hash": info.template_hash,
        "prompt_version": rendering.PROMPT_VERSION,
        "prompt_hash": rendering.prompt_hash(),
        "system_line": line if request.conversation.system is None else None,
        "layout": list(info.layout),
        "flags": [{"source": flag.source, "message": flag.message, "kind": flag.kind} for flag in found],
        "field_hashes": {one.name: one.fingerprint for one in request.fields},
        "context_hash": _context_hash(request.conversation),
    }


def _held(match: Sequence[Rule], text: str) -> list[Rule]:
    return [rule for rule in match if rules.holds(rule, text, None)]


async def generate(engine: Engine, request: Request) -> AsyncGenerator[str | Generated, None]:
    """The next assistant turn in pieces, and last the whole. With `match` rules the text is held until they spoke."""
    conversation = request.conversation
    turns = rendering.shared(conversation, rendering.GENERATE_LINE)
    job = Job(engine, conversation, turns, seed=request.seed)
    found = await anyio.to_thread.run_sync(guards.flags, conversation.texts(), abandon_on_cancel=True)
    written, finish = b"", "stop"
    running = engine.generate(Prompt(turns), Free(), max_tokens=request.max_tokens, seed=request.seed)
    shown = 0
    async with aclosing(running) as items:
        async for item in items:
            if isinstance(item, Step):
                written += item.data
                text = written.decode(errors="ignore")
                if not request.match and len(text) > shown:
                    yield text[shown:]
                    shown = len(text)
            else:
                finish = item.finish
                job.count(item)
                job.usage.prefix_tokens = item.prompt
    fired = [Fired(f"guard:{kind}", "review") for kind in dict.fromkeys(flag.kind for flag in found)]
    text = written.decode(errors="ignore")
    held = await anyio.to_thread.run_sync(_held, request.match, text, abandon_on_cancel=True)
    fired += [Fired(rule.name, rule.do) for rule in held]
    withheld = any(rule.do in ("reject", "null") for rule in held)
    if request.match and not withheld and text:
        yield text
    decision = "reject" if withheld else ("review" if fired else "accept")
    provenance = _provenance(engine, request, found, rendering.GENERATE_LINE)
    yield Generated(None if withheld else text, decision, tuple(fired), finish, provenance, job.usage)
