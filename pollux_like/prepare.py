"""prepare: everything that can be wrong with a turn is found here, before any byte leaves. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from pollux_like import cache, checks, pairing
from pollux_like.config import Config
from pollux_like.continuation import MAX_CHARS, MAX_REPLY_CHARS, Continuation, size_of, turns_of
from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError
from pollux_like.input import Input
from pollux_like.messages import Message
from pollux_like.output import Notice
from pollux_like.provider import Capabilities, Request, Vendor
from pollux_like.settings import Settings
from pollux_like.sources import Source, check_media
from pollux_like.turns import Stamp, Turn, folded

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A checked turn: what goes to the vendor, and what settling it needs. `fresh` are the messages that are new to the
    application's transcript: those added, without the history that it brought."""

    request: Request
    stamp: Stamp
    before: Continuation | None
    tracked: bool
    fresh: tuple[Message, ...]
    media: tuple[str, ...]
    notices: tuple[Notice, ...]
    caches: bool


def prepare(
    vendor: Vendor, environment: Environment, input: Input, config: Config, settings: Settings, *, streaming: bool
) -> Prepared:
    """Check one turn against what came before and what the model takes.

    Raises ConfigurationError; nothing has been sent or changed then, and the continuation stays good.
    """
    options = settings.provider_options.get(config.provider, {})
    model = config.model or vendor.default_model
    if model is None:
        raise ConfigurationError(f"provider {config.provider!r} has no default model", hint="Give Config.model")
    stamp = Stamp(
        vendor.name, vendor.dialect(options), vendor.endpoint(config), model,
        environment.fingerprint(provider=vendor.name), {**environment.parts(), **settings.parts()},
    )  # fmt: skip
    notices: list[Notice] = []
    turns: tuple[Turn, ...] = ()
    if input.continuation is not None:
        turns = turns_of(input.continuation)
        notices.extend(check_issuer(turns, stamp))
    added = _added(input, turns)
    can = vendor.capabilities(model, options)
    sources = tuple(environment.sources)
    check_media(sources, can.media, vendor.name)
    media, digests = _media(input, turns, can, vendor.name, notices)
    if environment.cache == "none" and not can.cache_off:
        notices.append(
            Notice("cache", f'{vendor.name} has no switch for the cache of {model}: cache="none" is not sent')
        )
    check_settings(settings, can, environment, options, vendor.name, model)
    if input.continuation is not None:
        _check_size(input.continuation, added)
    tracked = input.history is not None or input.continuation is not None
    request = Request(
        model=model, turns=turns, added=added, instructions=environment.instructions, sources=sources,
        tools=tuple(environment.tools), settings=settings, options=options, media=media,
        cache=environment.cache or ("auto" if tracked or environment.tools else None), streaming=streaming,
        endpoint=stamp.endpoint,
    )  # fmt: skip
    brought = {id(message) for message in input.history or ()}
    fresh = tuple(message for message in added if id(message) not in brought)
    return Prepared(
        request,
        stamp,
        input.continuation,
        tracked,
        fresh,
        digests,
        tuple(notices),
        can.caches and request.cache != "none",
    )


def check_types(environment: object, input: object, config: object) -> None:
    """The three positional arguments of a turn are what they should be."""
    expected: tuple[tuple[object, type[Any], str], ...] = (
        (environment, Environment, "environment"), (input, Input, "input"), (config, Config, "config"),
    )  # fmt: skip
    for value, kind, name in expected:
        if not isinstance(value, kind):
            raise ConfigurationError(f"{name} is {checks.kind(value)}", hint=f"Pass {kind.__name__}(...)")


def _added(input: Input, turns: tuple[Turn, ...]) -> tuple[Message, ...]:
    """The messages that this turn puts before the model, paired and in order."""
    before = turns[-1] if turns else None
    messages = [*(input.history or ()), *(result.to_message() for result in input.tool_results)]
    if input.content is not None:
        messages.append(Message("user", input.content))
    if before is not None and before.status == "pause":
        if messages:
            raise ConfigurationError(
                "the continuation is paused in the middle of a turn",
                hint="Go on with Input(continuation=...) alone, and bring new content after that",
            )
        return ()
    where = "history" if input.history is not None else "tool_results"
    pending = before.calls if before is not None else ()
    if pending and not input.tool_results:
        pairing.check_pending(pending)
    ordered, still_open = pairing.pair(pending, messages, where=where)
    pairing.check_pending(still_open)
    if not ordered:
        raise ConfigurationError("there is nothing to answer", hint="Give content, or the results of open tool calls")
    if before is None and ordered[0].role != "user":
        raise ConfigurationError(
            f"history[0] is of role {ordered[0].role}", hint="Begin a history with the user message that opened it"
        )
    if ordered[-1].role == "assistant":
        raise ConfigurationError(
            "the conversation ends with the assistant, so there is nothing to answer", hint="Give Input.content"
        )
    return ordered


def check_issuer(turns: tuple[Turn, ...], now: Stamp) -> list[Notice]:
    """Refuse state that another issuer made; report what changed within the allowed."""
    last = turns[-1]
    then = last.stamp
    notices: list[Notice] = []
    if then.provider != now.provider:
        raise ConfigurationError(
            f"the continuation was issued by {then.provider!r}, not by {now.provider!r}",
            hint="Convert it with handoff() and go on with Input(history=...)",
        )
    if then.dialect != now.dialect:
        raise ConfigurationError(
            f"the continuation speaks the {then.dialect!r} dialect, not {now.dialect!r}",
            hint="Keep the provider_options it was made with, or convert it with handoff()",
        )
    if then.endpoint != now.endpoint:
        new = _host(now.endpoint)
        sealed = dict.fromkeys(_host(turn.stamp.endpoint) for turn in turns if turn.signed)
        foreign = next((old for old in sealed if old != new and old not in _LOOPBACK), None)
        if foreign is not None and new not in _LOOPBACK:  # also where the state came through loopback
            raise ConfigurationError(
                f"the continuation holds state that {foreign} sealed, and {new} cannot open it",
                hint="Go back to that endpoint, or convert it with handoff()",
            )
        notices.append(Notice("endpoint_change", f"the conversation moves from {then.endpoint} to {now.endpoint}"))
    if then.model != now.model:
        if last.calls or last.status == "pause":
            raise ConfigurationError(
                f"the continuation waits inside a tool round of {then.model!r}, and the model is now {now.model!r}",
                hint="Finish the round with its own model, then change",
            )
        notices.append(Notice("model_change", f"the conversation moves from {then.model} to {now.model}"))
    if then.environment != now.environment:
        if last.signed and last.calls:
            raise ConfigurationError(
                "the environment changed inside a tool round whose reasoning is bound to it",
                hint="Finish the round with the same instructions, sources and tools, then change them",
            )
        found = cache.changes(then, now)
        what = ", ".join(found[name] for name in ("environment", *cache.ENVIRONMENT) if name in found)
        notices.append(Notice("environment_drift", f"since the turn before, {what}"))
    return notices


def _host(endpoint: str) -> str | None:
    try:
        return urlsplit(endpoint).hostname
    except ValueError:  # of a forged state: it is no host of ours
        return endpoint


def check_settings(
    settings: Settings, can: Capabilities, environment: Environment, options: Any, provider: str, model: str
) -> None:
    """Each setting is one that this model takes, and none contradicts another."""
    for name in settings.asked():
        if name not in can.settings:
            reason = can.reasons.get(name, "it has no such argument")
            raise ConfigurationError(
                f"{provider} does not take {name} with {model}: {reason}", hint=f"Leave {name} out"
            )
    if settings.reasoning_effort is not None and settings.reasoning_effort not in can.efforts:
        raise ConfigurationError(
            f"{model} has no reasoning_effort {settings.reasoning_effort!r}",
            hint=f"Use one of: {', '.join(sorted(can.efforts)) or 'none; leave it out'}",
        )
    if settings.temperature is not None and settings.temperature > can.max_temperature:
        raise ConfigurationError(
            f"temperature {settings.temperature} is above what {provider} takes",
            hint=f"Use at most {can.max_temperature}",
        )
    if len(settings.stop) > can.max_stop:
        raise ConfigurationError(
            f"{len(settings.stop)} stop sequences are too many", hint=f"Use at most {can.max_stop}"
        )
    tools = tuple(environment.tools)
    if tools and not can.tools:
        raise ConfigurationError(f"{model} does not support tools", hint="Choose a model that does, or give no tools")
    hosted = bool(options.get("tools"))
    for name in ("tool_choice", "parallel_tool_calls"):
        if getattr(settings, name) is not None and not tools and not hosted:
            raise ConfigurationError(f"{name} is given and there are no tools", hint="Give Environment.tools")
    choice = settings.tool_choice
    if choice is not None and not hosted:
        choice.check(tools)
    if choice is not None and choice.mode in ("required", "tool") and not can.forced_choice:
        raise ConfigurationError(f"{model} cannot be forced to call a tool", hint='Use tool_choice="auto"')
    reasons = settings.reasoning_effort not in (None, "none") or settings.reasoning_budget_tokens is not None
    if choice is not None and choice.mode in ("required", "tool") and reasons and not can.forced_choice_with_reasoning:
        raise ConfigurationError(
            f"{model} cannot be forced to call a tool while it reasons",
            hint='Use tool_choice="auto", or leave the reasoning arguments out',
        )


def _media(
    input: Input, turns: tuple[Turn, ...], can: Capabilities, provider: str, notices: list[Notice]
) -> tuple[dict[int, tuple[Source, ...]], tuple[str, ...]]:
    """Where the sources of this turn or of the open round stand: by turn index; and the digests this turn records."""
    given = tuple(input.sources)
    check_media(given, can.media, provider)
    index = folded(
        turns, "media", -1, lambda before, at: at if turns[at].media else before if turns[at - 1].calls else -1
    )
    if turns and turns[-1].calls and index >= 0:  # the open round began with sources
        supplied = {source.digest: source for source in given}
        if supplied.keys() != set(turns[index].media):
            raise ConfigurationError(
                f"the open tool round began with {len(turns[index].media)} sources of its own",
                hint="Give the same sources in Input(sources=...) with the tool results",
            )
        return {index: tuple(supplied[digest] for digest in turns[index].media)}, ()
    if (turns and turns[-1].media) or any(turn.media for turn in turns[-2:]):
        notices.append(Notice("media_dropped", "sources given for one earlier turn only are not sent again"))
    if not given:
        return {}, ()
    if input.content is None:
        raise ConfigurationError("Input.sources comes without content", hint="Say in content what the sources are for")
    return {len(turns): given}, tuple(source.digest for source in given)


def _check_size(continuation: Continuation, added: tuple[Message, ...]) -> None:
    size = size_of(continuation) + sum(len(message.content) for message in added)
    if size > MAX_CHARS - MAX_REPLY_CHARS:
        raise ConfigurationError(
            f"the conversation has {size:,} characters, and could not be saved after one more turn",
            hint="Begin a new one from a shortened portable history (see handoff)",
        )


def without_server_state(request: Request) -> Request:
    """The same request, to be rendered in full because the provider forgot the turn it chains on."""
    last = request.turns[-1]
    kept = {name: word for name, word in last.state.items() if name != "response_id"}
    return replace(request, turns=(*request.turns[:-1], replace(last, state=kept)))
