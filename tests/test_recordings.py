"""Real exchanges replayed: we ask what the recording's client asked, and the provider answers as it did.

Our requests must say what the recorded ones said, and carry everything that is the provider's own to the letter. What
may differ stands in tables with its reason: `meaning`, OMITTED_THERE and OMITTED_HERE of each dialect, and tables.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from anyio.lowlevel import checkpoint
from recordings import chat, collection, compatible, gemini, messages, responses, router, tables
from recordings.collection import Exchange, compact
from recordings.replay import KEY, Replay
from recordings.shape import Asked, Dialect, Expected, Passage, differences

from pollux_like import (
    APIError,
    ConfigurationError,
    Continuation,
    Environment,
    Event,
    Input,
    Message,
    Output,
    ToolResult,
    canonical,
    interact,
    registry,
    stream,
)
from pollux_like.continuation import extended
from pollux_like.turns import Stamp, Turn

pytestmark = [
    pytest.mark.anyio,
    # httpx2 leaves its own generators open where a stream is not read to its end, which trio points out.
    pytest.mark.filterwarnings("ignore:Async generator 'httpx2:ResourceWarning"),
]

BUILT = ("anthropic", "deepseek", "gemini", "openai", "openrouter", "other")
LOCAL = ("deepseek", "other")
"""Folders of servers that are reached through the provider local."""
TABLES: list[Any] = [
    tables.NOT_APPLICABLE, tables.SINGLES, tables.REFUSED, tables.MENDED, tables.ERRORS, tables.STATUSES,
    tables.CHANGED, tables.OTHER_APIS, tables.RETRIED,
]  # fmt: skip
used: set[str] = set()
"""Allowed differences that were met."""
done: set[str] = set()
"""Recordings that were replayed."""


@dataclass(frozen=True)
class Step:
    """An exchange that went well, and what the run that it belongs to holds so far."""

    exchange: Exchange
    asked: Asked
    expected: Expected
    output: Output
    items: tuple[tuple[dict[str, Any], bool], ...]
    """The provider's own items of the run as they go back, False for those that stay out."""


@pytest.mark.parametrize("name", collection.NAMES or ["absent"])
async def test_recording(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "absent":
        pytest.skip(f"no recordings in {collection.FOLDER}; set POLLUX_LIKE_RECORDINGS to their folder")
    provider = name.split("/")[0]
    if provider not in BUILT:
        pytest.skip(f"the provider {provider} is not built yet")
    if name in tables.OTHER_APIS:
        done.add(name)
        pytest.skip(tables.OTHER_APIS[name])
    monkeypatch.setattr("pollux_like.send.anyio.sleep", _at_once)
    kinds, exchanges = collection.load(name)
    chained = any("previous_response_id" in kind for kind in kinds)
    before: Step | None = None
    continued = 0
    for exchange in exchanges:
        if exchange.where in tables.OTHER_APIS:
            continue
        provider = _provider(name, exchange)
        dialect = _dialect(provider, exchange)
        asked = _asked(dialect, exchange, chained)
        goes_on = before is not None and _goes_on(before, asked)
        if before is not None and not goes_on:
            await _follow_up(name, before)
        continued += goes_on
        before = await _play(provider, dialect, exchange, asked, before if goes_on else None)
    if before is not None:
        await _follow_up(name, before)
    assert (continued > 0) is ("multiturn" in kinds and name not in tables.SINGLES)
    done.add(name)


def test_the_tables_name_only_what_is_there() -> None:
    if not collection.NAMES:
        pytest.skip("no recordings here; set POLLUX_LIKE_RECORDINGS to their folder")
    there = {exchange.where for name in collection.NAMES for exchange in collection.load(name)[1]}
    named = {key for table in TABLES for key in table}
    assert named <= there | set(collection.NAMES)


def test_every_allowed_difference_was_needed() -> None:
    if {name for name in collection.NAMES if name.split("/")[0] in BUILT} - done or not collection.NAMES:
        pytest.skip("not all recordings were replayed before this test")
    dialects = (chat.DIALECT, compatible.DIALECT, gemini.DIALECT, messages.DIALECT, responses.DIALECT, router.DIALECT)
    allowed = {f"{one.name}:{rule}" for one in dialects for rule in (*one.omitted_there, *one.omitted_here)}
    assert allowed == used


async def test_a_lost_response_is_made_up_for_by_the_whole_conversation() -> None:
    if not collection.NAMES:
        pytest.skip("no recordings here; set POLLUX_LIKE_RECORDINGS to their folder")
    exchanges = collection.load("openai/errors.json")[1]
    exchange = next(one for one in exchanges if one.slug == "err-400-previous-response-not-found")
    asked = _asked(responses.DIALECT, exchange, True)
    replay = Replay(exchange)
    with pytest.raises(APIError, match="not found"):
        await _send("openai", asked, _input(asked, None, responses.DIALECT, _stamp("openai", replay, asked)), replay)
    first, second = (json.loads(request.content) for request in replay.asked)
    assert first["previous_response_id"] == exchange.request["previous_response_id"]  # type: ignore[index]
    assert "previous_response_id" not in second
    assert [item["role"] for item in second["input"]] == ["user", "assistant", "user"]
    assert first["input"] == second["input"][2:]


async def _at_once(seconds: float) -> None:
    """The wait that a provider asked for, without waiting."""
    await checkpoint()


def _provider(name: str, exchange: Exchange) -> str:
    """By folder, but for a conversation that begins with another provider."""
    if exchange.path == "/v1/responses":
        return "openai"
    folder = name.split("/")[0]
    return "local" if folder in LOCAL else folder


def _dialect(provider: str, exchange: Exchange) -> Dialect:
    if provider == "gemini":
        return gemini.DIALECT
    if provider == "openrouter":
        return router.DIALECT
    if provider == "anthropic":
        return messages.DIALECT
    if provider == "local":
        return compatible.DIALECT
    return chat.DIALECT if exchange.path.endswith("/chat/completions") else responses.DIALECT


def _asked(dialect: Dialect, exchange: Exchange, chained: bool) -> Asked:
    if exchange.request is None:
        assert exchange.where in tables.NOT_APPLICABLE
        return Asked("gpt-5-nano", Environment(), {}, {}, True, (Passage((Message("user", "Hello"),)),))
    asked = dialect.asked(gemini.with_path(exchange) if dialect is gemini.DIALECT else exchange.request)
    assert bool(asked.unsaid) is (exchange.where in tables.NOT_APPLICABLE), "NOT_APPLICABLE is not up to date"
    return replace(asked, options={**asked.options, "store": True}) if chained or asked.previous else asked


def _goes_on(before: Step, asked: Asked) -> bool:
    """Whether a request is the next one of the conversation: what was said until then is the same."""
    if asked.previous is not None:
        return asked.previous == before.expected.id
    known = before.asked.passages
    if len(asked.passages) != len(known) + 1:
        return False
    return all(ours.said == theirs.said for ours, theirs in zip(known, asked.passages, strict=False))


async def _play(provider: str, dialect: Dialect, exchange: Exchange, asked: Asked, before: Step | None) -> Step | None:
    """One exchange: our request against the recorded one, our output against the recorded answer."""
    replay = Replay(exchange)
    given = _input(asked, before, dialect, _stamp(provider, replay, asked))
    fails = exchange.status >= 400 or any("error" in event for event in exchange.events)
    if exchange.where in tables.REFUSED:
        with pytest.raises(ConfigurationError, match=re.escape(tables.REFUSED[exchange.where])):
            await _send(provider, asked, given, replay)
        assert replay.asked == []  # refused before any I/O; the provider's answer is tested with a plain request
        plain = Asked(asked.model, Environment(), {}, {}, asked.streaming, ())
        await _fail(provider, plain, Input("Hello"), replay)
        return None
    if fails:
        await _fail(provider, asked, given, replay)
        _compare(dialect, exchange, asked, json.loads(replay.asked[0].content))
        return before  # a failed turn leaves its continuation good
    output = await _send(provider, asked, given, replay)
    _compare(dialect, exchange, asked, replay.body)
    expected = dialect.expected(exchange.body, exchange.events)
    _check_output(exchange, asked, expected, output)
    earlier = (
        before.items
        if before is not None
        else tuple(
            (item, True) for passage in asked.passages for item in passage.replied if dialect is not gemini.DIALECT
        )
    )
    if asked.previous is None:  # portable calls have no key order of their own: Gemini's are compared by value, above
        _check_verbatim(dialect, earlier, replay)
    return Step(exchange, asked, expected, output, (*earlier, *_going_back(exchange, expected)))


def _going_back(exchange: Exchange, expected: Expected) -> Iterator[tuple[dict[str, Any], bool]]:
    changes = tables.CHANGED.get(exchange.where, {})
    for index, item in enumerate(expected.items):
        change, _ = changes.get(index, ({}, ""))
        changed = {key: value for key, value in {**item, **(change or {})}.items() if value is not ...}
        yield changed, change is not None


async def _follow_up(name: str, last: Step) -> None:
    """One more turn after the last answer of a run: it must carry that answer's own items too."""
    provider = _provider(name, last.exchange)
    dialect = _dialect(provider, last.exchange)
    replay = Replay(last.exchange)
    calls = last.output.tool_calls
    given = Input(
        None if calls else "And then?",
        continuation=_saved(last.output.continuation),
        tool_results=[ToolResult(call.id, "noted") for call in calls],
    )
    await _send(provider, last.asked, given, replay)
    if last.asked.options.get("store"):  # the answer is on the server
        assert replay.body["previous_response_id"] == last.expected.id
        assert len(replay.body["input"]) == max(len(calls), 1)
    else:
        _check_verbatim(dialect, last.items, replay)


async def _send(provider: str, asked: Asked, input: Input, replay: Replay) -> Output:
    config = replay.config(provider, asked.model)
    arguments: dict[str, Any] = {**asked.arguments, "provider_options": {provider: asked.options}}
    if not asked.streaming:
        return await interact(asked.environment, input, config, **arguments)
    events: list[Event] = []
    async with stream(asked.environment, input, config, **arguments) as running:
        events.extend([event async for event in running])
    output = events[-1].output
    assert output is not None
    assert [event.type for event in events if event.type in ("start", "done")] == ["start", "done"]
    assert "".join(event.text for event in events if event.type == "text_delta") == output.text
    assert "".join(event.text for event in events if event.type == "reasoning_delta") == output.reasoning
    assert tuple(event.tool_call for event in events if event.type == "tool_call") == output.tool_calls
    for index, call in enumerate(output.tool_calls):
        pieces = [event.text for event in events if event.type == "tool_call_delta" and event.index == index]
        written = "".join(pieces) or "{}"  # no piece at all is no arguments
        free_form = call.arguments and call.arguments.get("input")  # the deltas of a custom tool are its bare text
        if provider == "anthropic":  # both roads give a call's JSON without blanks; a delta is what the model wrote
            written = canonical.minify(written)
        assert written in (call.arguments_text, free_form)
    return output


async def _fail(provider: str, asked: Asked, input: Input, replay: Replay) -> None:
    exchange = replay.exchange
    with pytest.raises(APIError) as caught:
        await _send(provider, asked, input, replay)
    error = caught.value
    inner = next((event["error"] for event in exchange.events if "error" in event), None) or exchange.body["error"]
    assert type(error) is tables.ERRORS.get(exchange.where, APIError)
    assert (error.code, error.type) == _words(inner)
    assert error.status == (exchange.status if exchange.status >= 400 else tables.INSIDE[exchange.where])
    assert error.retry_after_s == tables.RETRIED.get(exchange.where)
    assert error.retryable is (exchange.where in tables.RETRIED)
    again = asked.previous is not None or error.retryable  # the fallback of a lost response, or what may go better
    assert len(replay.asked) == (2 if again else 1)
    assert KEY not in str(error)
    assert error.request_id == _request_id(exchange)


def _words(inner: dict[str, Any]) -> tuple[Any, Any]:
    """Code and type of a refusal. Google's and OpenRouter's `code` is the status; Google's words are `status` and a
    detail's reason, OpenRouter has none."""
    if "type" not in inner and "status" not in inner:
        return None, None
    if "status" not in inner:
        return inner.get("code"), inner["type"]
    reasons = [detail["reason"] for detail in inner.get("details", []) if "reason" in detail]
    return next(iter(reasons), None), inner["status"]


def _request_id(exchange: Exchange) -> str | None:
    return exchange.headers.get("x-request-id") or exchange.headers.get("request-id")


def _input(asked: Asked, before: Step | None, dialect: Dialect, stamp: Stamp) -> Input:
    """What the recorded request adds, on top of our continuation, of portable history, or of opaque items given."""
    last = asked.passages[-1].said
    tools = [message for message in last if message.role == "tool"]
    content = "\n\n".join(message.content for message in last if message.role == "user") or None
    results = [ToolResult(message.tool_call_id or "", message.content, message.is_error) for message in tools]
    if before is not None:
        if dialect is gemini.DIALECT:  # results are told apart by their order; most calls there have no id
            calls = before.output.tool_calls
            results = [replace(result, call_id=call.id) for call, result in zip(calls, results, strict=True)]
        return Input(content, continuation=_saved(before.output.continuation), tool_results=results)
    earlier = asked.passages[:-1]
    if asked.previous is not None:  # on a response that another process got, and that the provider has forgotten
        assert not earlier
        said = (Message("user", "Hello"),)
        native = compact({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]})
        turn = Turn(stamp, said, (native,), state={"response_id": asked.previous})
        return Input(content, continuation=extended(None, turn), tool_results=results)
    replies = [dialect.portable(passage.replied) for passage in earlier]
    portable = [reply for reply in replies if reply is not None]
    if len(portable) == len(replies):
        pairs = zip(earlier, portable, strict=True)
        history = [message for passage, reply in pairs for message in (*passage.said, reply)]
        return Input(content, history=[*history, *tools])
    continuation: Continuation | None = None
    for passage in earlier:
        calls = tuple(call for call in map(dialect.call, passage.replied) if call is not None)
        status = "tool_calls" if calls else "stop"
        native = tuple(map(compact, passage.replied))
        continuation = extended(continuation, Turn(stamp, passage.said, native, calls, status, signed=True))
    return Input(content, continuation=_saved(continuation), tool_results=results)


def _stamp(provider: str, replay: Replay, asked: Asked) -> Stamp:
    config = replay.config(provider, asked.model)
    vendor = registry.vendor_of(config)
    fingerprint = asked.environment.fingerprint(provider=provider)
    return Stamp(provider, vendor.dialect(asked.options), vendor.endpoint(config), asked.model, fingerprint)


def _saved(continuation: Continuation | None) -> Continuation:
    """Each continuation goes through JSON between two turns, as between two processes."""
    assert continuation is not None
    restored = Continuation.from_jsonable(json.loads(json.dumps(continuation.to_jsonable())))
    assert restored == continuation
    return restored


def _compare(dialect: Dialect, exchange: Exchange, asked: Asked, ours: dict[str, Any]) -> None:
    if exchange.request is None:
        return
    recorded = dialect.accepted_tools(exchange.request, exchange.body, exchange.events)
    recorded = {**recorded, dialect.input_key: [one for one in recorded[dialect.input_key] if one not in asked.unsaid]}
    ours, theirs = dialect.meaning(ours), dialect.meaning(recorded)
    if exchange.where in tables.MENDED:
        schemas = [
            {key: side.pop(key, None) for key in ("tools", "text", "response_format")} for side in (ours, theirs)
        ]
        assert list(differences(schemas[0], schemas[1], dialect, set())), "MENDED is not up to date"
    assert list(differences(ours, theirs, dialect, used)) == []


def _check_output(exchange: Exchange, asked: Asked, expected: Expected, output: Output) -> None:
    status = tables.STATUSES.get(exchange.where, "tool_calls" if expected.calls else "stop")
    assert (output.finish.status, output.finish.raw) == (status, expected.raw)
    assert (output.text, output.reasoning, output.refusal) == (expected.text, expected.reasoning, expected.refusal)
    ids = [call.id if theirs[0] else "" for call, theirs in zip(output.tool_calls, expected.calls, strict=True)]
    said = [(call.name, call.arguments_text) for call in output.tool_calls]
    assert tuple((one, *words) for one, words in zip(ids, said, strict=True)) == expected.calls
    assert len({call.id for call in output.tool_calls}) == len(said)  # also where we made them up
    for call in output.tool_calls:
        try:
            arguments = json.loads(call.arguments_text)
        except ValueError:
            arguments = None
        assert call.arguments == arguments
        assert (call.arguments_error is None) is (arguments is not None)
    usage = output.usage
    numbers = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert numbers == expected.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.cached_tokens + usage.cache_write_tokens <= usage.input_tokens
    assert usage.reasoning_tokens <= usage.output_tokens
    assert (output.metrics.model, output.metrics.attempts) == (expected.model, 1)
    assert output.metrics.request_id == _request_id(exchange)
    wanted = "output" in asked.arguments and status == "stop"
    assert output.structured == (json.loads(expected.text) if wanted else None)
    assert output.continuation is not None
    assert output.continuation.pending_tool_calls == output.tool_calls


def _check_verbatim(dialect: Dialect, items: tuple[tuple[dict[str, Any], bool], ...], replay: Replay) -> None:
    """Every item of the answers so far stands in the request, to the letter and in order, as it came or as CHANGED."""
    text = replay.text
    if dialect in (chat.DIALECT, compatible.DIALECT, router.DIALECT):  # kept in one key order: compared by value
        sent = [{"content": None, **one} for one in replay.body["messages"] if one["role"] == "assistant"]
        assert sent == [{"content": None, **item} for item, _ in items]
        return
    at = 0
    for item, kept in items:
        # A body is served unescaped; an event stream comes as recorded, some with \u escapes, and keeps them.
        found = max(text.find(form, at) for form in (compact(item), json.dumps(item, separators=(",", ":"))))
        assert (found >= at) is kept, f"{item.get('type')} {'is not' if kept else 'is'} replayed"
        at = max(found, at)
