"""READ FIRST. One turn: prepare -> send -> settle.

`interact` is the turn watched to its end, `stream` shows the events on the way; both fold the same `Reply` into the
same `Output`. A new continuation is made last, and only after the provider said that the turn is complete: whatever
fails before that raises, and leaves the old continuation as good as it was.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, TypeAlias, Unpack

from pollux_like import api_errors, cache, canonical, registry, schemas, spans, structured
from pollux_like.config import Config
from pollux_like.continuation import MAX_REPLY_CHARS, extended
from pollux_like.environment import Environment
from pollux_like.errors import APIError
from pollux_like.input import Input
from pollux_like.messages import MAX_TOOL_CALLS, Message, ToolCall
from pollux_like.output import Event, EventType, Metrics, Notice, Output
from pollux_like.prepare import Prepared, check_types, prepare
from pollux_like.provider import Reply
from pollux_like.registry import Connect
from pollux_like.send import Sending, send
from pollux_like.settings import Arguments, Settings
from pollux_like.turns import CONVERSATION, MAX_ITEM_DEPTH, Turn


async def interact(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> Output:
    """One turn of a conversation.

    Keyword arguments, each sent or refused: `tool_choice` ("auto", "required", "none" or {"name": ...}),
    `parallel_tool_calls`, `output` (a pydantic model class, or the JSON Schema of an object), `max_tokens`,
    `temperature`, `top_p`, `seed`, `stop`, `reasoning_effort` ("none" to "max"), `reasoning_budget_tokens`, `timeout_s`
    (the longest silence of the provider) and `provider_options` ({"provider": {"option": value}}).

    Raises ConfigurationError before any I/O, APIError where the provider or the way to it failed, and
    StructuredOutputError where the answer does not fit `output`. After any of them `input` can be used again.
    """
    return await turn(environment, input, config, registry.pooled, dict(arguments))


def stream(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> Stream:
    """The same turn as events, ending in one of type "done". Arguments and errors as for `interact`.

    Leaving the loop closes the connection: at once with `async with stream(...) as events:`, else when the object goes.
    """
    return Stream(events(environment, input, config, registry.pooled, dict(arguments)))


class Stream:
    """An async iterator of events, and an async context manager that closes the connection on leaving."""

    __slots__ = ("_events",)

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def aclose(self) -> None:
        """Close the connection; the turn does not exist then."""
        await self._events.aclose()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


async def turn(
    environment: Environment, input: Input, config: Config, connect: Connect, arguments: dict[str, Any]
) -> Output:
    """A turn over a given way of connecting, not streamed by the provider."""
    output: Output | None = None
    running = _run(_started(environment, input, config, arguments, streaming=False), config, connect)
    async with aclosing(running):
        async for event in running:
            output = event.output
    assert output is not None  # _run ends in done or raises
    return output


def events(
    environment: Environment, input: Input, config: Config, connect: Connect, arguments: dict[str, Any]
) -> AsyncGenerator[Event, None]:
    """A turn over a given way of connecting, event by event. Bad input raises here, not at the first event."""
    return _run(_started(environment, input, config, arguments, streaming=True), config, connect)


@dataclass(slots=True, eq=False)
class _Turn:
    """What is known of a turn under way."""

    prepared: Prepared
    settings: Settings
    sending: Sending
    began: float = field(default_factory=time.monotonic)


def _started(
    environment: Environment, input: Input, config: Config, arguments: dict[str, Any], *, streaming: bool
) -> _Turn:
    settings = Settings.of(**arguments)
    check_types(environment, input, config)
    vendor = registry.vendor_of(config)
    prepared = prepare(vendor, environment, input, config, settings, streaming=streaming)
    wire = vendor.render(prepared.request)
    notices = [*prepared.notices, *(wire.notices if _is_news(prepared) else ())]
    sending = Sending(wire, settings.timeout_s or config.timeout_s, config.max_attempts, notices=notices)
    return _Turn(prepared, settings, sending)


def _is_news(prepared: Prepared) -> bool:
    """Notices about the environment are given when a conversation begins and when its environment changes."""
    turns = prepared.request.turns
    return not turns or turns[-1].stamp.environment != prepared.stamp.environment


async def _run(this: _Turn, config: Config, connect: Connect) -> AsyncGenerator[Event, None]:
    with spans.recorded(this.prepared) as span:
        connection = await connect(config)
        reply: Reply | None = None
        halves: _Halves = {}
        async with connection.limit:
            yield Event("start")
            for notice in this.sending.notices:
                yield Event("notice", notice=notice)
            async with aclosing(send(this.sending, connection.adapter)) as items:
                async for item in items:
                    if isinstance(item, Reply):
                        reply = item
                    elif item.type == "tool_call" and item.tool_call is not None:
                        yield replace(item, tool_call=_cleaned(item.tool_call, this))
                    elif item.text and (halves or not item.text.isascii()):
                        whole = _whole(item, halves)
                        if whole.text:
                            yield whole
                    else:
                        yield item
        if reply is None:
            raise api_errors.unreadable(config.provider)
        for kind, index in halves:
            yield Event(kind, text="\ufffd", index=index)
        for event in _ended(this, reply):  # nothing is held any more: a loop may go on from inside "done"
            if event.output is not None:
                span.done(event.output, this.sending, this.prepared)
            yield event


_Halves: TypeAlias = dict[tuple[EventType, int | None], str]
"""The first half of a surrogate pair that ended a piece, by what the piece was of: its other half begins the next."""


def _whole(event: Event, halves: _Halves) -> Event:
    """The event with whole characters only."""
    key = (event.type, event.index)
    text = halves.pop(key, "") + event.text
    if "\ud800" <= text[-1] <= "\udbff":
        halves[key] = text[-1]
        text = text[:-1]
    return replace(event, text=canonical.repair_text(text))


def _check_saving(reply: Reply, provider: str) -> None:
    """No state is made that could not be restored."""
    problem = None
    if sum(map(len, reply.native)) > MAX_REPLY_CHARS:
        problem = f"the reply has more than {MAX_REPLY_CHARS:,} characters"
    try:
        for item in reply.native:
            canonical.check_depth(item, MAX_ITEM_DEPTH)
    except canonical.JSONPolicyError:
        problem = f"the reply holds an item nested deeper than {MAX_ITEM_DEPTH} levels"
    if problem is not None:
        raise APIError(problem, hint="Ask for less at once", provider=provider)


def _ended(this: _Turn, reply: Reply) -> Iterator[Event]:
    """The last events of a turn. Raises APIError for calls that no result could answer, and above MAX_REPLY_CHARS."""
    ids = [call.id for call in reply.calls]
    if len(ids) > MAX_TOOL_CALLS or len(set(ids)) != len(ids):
        raise APIError(
            f"the reply holds {len(ids)} tool calls, {len(set(ids))} of them with an id of their own",
            hint=f"Try again; at most {MAX_TOOL_CALLS} calls with different ids can be answered",
            provider=this.prepared.stamp.provider,
        )
    _check_saving(reply, this.prepared.stamp.provider)
    if reply.calls:
        reply = replace(reply, calls=tuple(_cleaned(call, this) for call in reply.calls))
    broken = _cache_break(this.prepared, reply)
    if broken is not None:
        reply = replace(reply, notices=(*reply.notices, broken))
    for notice in reply.notices:
        yield Event("notice", notice=notice)
    output = settle(this, reply)
    yield Event("usage", usage=output.usage)
    yield Event("finish", finish=output.finish)
    yield Event("done", output=structured.fitted(output, this.settings.output))


def _cleaned(call: ToolCall, this: _Turn) -> ToolCall:
    """Without the nulls that the tool's own schema rejects: strict mode made optional parameters nullable."""
    arguments = call.arguments
    if not arguments or "null" not in call.arguments_text:
        return call
    for tool in this.prepared.request.tools:
        if tool.name == call.name:
            return call.with_arguments(schemas.clean_arguments(tool.schema, arguments))
    return call


def _cache_break(prepared: Prepared, reply: Reply) -> Notice | None:
    if not prepared.caches:
        return None
    media = bool(prepared.media) or any(turn.media for turn in prepared.request.turns[-1:])
    return cache.broken(prepared.before, prepared.stamp, reply.usage, media=media)


def settle(this: _Turn, reply: Reply) -> Output:
    """The Output of a completed reply, with the new continuation where the conversation is tracked."""
    prepared = this.prepared
    continuation = None
    if prepared.tracked or reply.calls or reply.finish.status == "pause":
        state = dict(reply.state)
        if prepared.before is None and reply.response_id is not None:
            state[CONVERSATION] = reply.response_id
        added = Turn(
            prepared.stamp, prepared.request.added, reply.native, reply.calls, reply.finish.status, reply.signed,
            state, prepared.media,
        )  # fmt: skip
        continuation = extended(prepared.before, added)
    messages = prepared.fresh
    said = reply.text if reply.text.strip() else (reply.refusal or "")
    if said.strip() or reply.calls:
        messages = (*messages, Message("assistant", said, reply.calls))
    return Output(
        text=reply.text, reasoning=reply.reasoning, refusal=reply.refusal, tool_calls=reply.calls,
        continuation=continuation, messages=messages, usage=reply.usage, finish=reply.finish,
        metrics=Metrics(time.monotonic() - this.began, this.sending.attempts, reply.request_id, reply.model),
        notices=(*this.sending.notices, *reply.notices),
    )  # fmt: skip
