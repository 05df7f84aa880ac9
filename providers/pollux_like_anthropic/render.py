"""Ours to wire: one `Request` as the JSON body of `POST /v1/messages`. Pure; imports no SDK."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pollux_like import canonical, checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message
from pollux_like.output import Notice
from pollux_like.provider import CountParser, Request, Wire
from pollux_like.sources import Source, labelled
from pollux_like.turns import folded
from pollux_like.wire_ids import wire_ids, wire_name

from .blocks import begins_with_thinking, goes_on, opens_anew, replayed
from .models import family
from .parse import MessagesParser
from .tools import tool_choice, tools_of

OURS = frozenset({
    "model", "messages", "system", "stream", "tool_choice", "max_tokens", "temperature", "top_p", "stop_sequences",
})  # fmt: skip
"""Body keys that this library sets; in provider_options they are refused."""
MAX_UNSTREAMED_TOKENS = 21_333
"""Above this an answer may take more than ten minutes, and idle connections are dropped on the way: it is streamed on
the wire, also for `interact` (the SDK's own methods refuse such a call: "Streaming is required for operations that may
take longer than 10 minutes")."""
COUNTED = frozenset({
    "cache_control", "context_management", "mcp_servers", "messages", "model", "output_config", "speed", "system",
    "thinking", "tool_choice", "tools",
})  # fmt: skip
"""Members that the counting endpoint takes (API reference, Count tokens in a Message)."""
SPECIAL = frozenset({"tools", "thinking", "output_config", "betas", "anthropic_version", "container"})


def render(request: Request) -> Wire:
    """The whole conversation, each assistant turn with its own blocks, signatures and order untouched."""
    options, settings = request.options, request.settings
    clash = OURS & options.keys()
    if clash:
        raise ConfigurationError(
            f"provider_options set {min(clash)!r}, which the library decides itself",
            hint="Use the argument of interact(), or leave it out",
        )
    notices: list[Notice] = []
    head: dict[str, Any] = {"model": request.model}
    thinking, effort = _thinking(request)
    head["max_tokens"] = _max_tokens(request, thinking)
    if request.instructions is not None:
        head["system"] = request.instructions
    tools = tools_of(request, notices)
    if tools:
        head["tools"] = tools
    choice = tool_choice(request)
    if choice is not None:
        head["tool_choice"] = choice
    if thinking:
        head["thinking"] = thinking
    config = _output_config(request, effort, notices)
    if config:
        head["output_config"] = config
    for name in ("temperature", "top_p"):
        if getattr(settings, name) is not None:
            head[name] = getattr(settings, name)
    if thinking.get("type") in ("enabled", "adaptive") and settings.temperature not in (None, 1, 1.0):
        raise ConfigurationError("temperature is given while the model thinks", hint="Leave it out, or use 1")
    if thinking.get("type") in ("enabled", "adaptive") and choice is not None and choice["type"] in ("any", "tool"):
        raise ConfigurationError(
            "a tool is forced while the model thinks", hint='Use tool_choice="auto", or leave thinking out'
        )
    if settings.stop:
        head["stop_sequences"] = list(settings.stop)
    if request.cache == "none" and "cache_control" in options:
        raise ConfigurationError(
            'provider_options set cache_control beside Environment(cache="none")', hint="Give only one"
        )
    if request.cache == "auto":
        head["cache_control"] = {"type": "ephemeral"}  # marks the last block; provider_options may set its ttl
    turns = request.turns
    kept = folded(turns, "anthropic.container", "", lambda before, at: turns[at].state.get("container", before))
    container = options.get("container") or kept
    if container:
        head["container"] = container
    head.update({key: value for key, value in options.items() if key not in SPECIAL})
    streaming = request.streaming or head["max_tokens"] > MAX_UNSTREAMED_TOKENS
    if streaming:
        head["stream"] = True
    _check_thinking(request, thinking)
    headers: dict[str, str] = {}
    if "anthropic_version" in options:
        headers["anthropic-version"] = str(options["anthropic_version"])
    betas = checks.sequence(options.get("betas") or (), _name("betas"), str)
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    return Wire(
        path="/v1/messages?beta=true" if betas else "/v1/messages",
        body=canonical.splice(head, "messages", _messages(request)),
        streaming=streaming,
        parser=MessagesParser,
        headers=headers,
        notices=tuple(notices),
    )


def render_count(request: Request) -> Wire:
    """The same conversation for `POST /v1/messages/count_tokens`, which takes these members and no others."""
    wire = render(request)
    path = wire.path.replace("/messages", "/messages/count_tokens")
    return Wire(path, canonical.picked(wire.body, COUNTED), streaming=False, parser=lambda: CountParser("input_tokens"),
                headers=wire.headers)  # fmt: skip


def _name(option: str) -> str:
    return f'provider_options["anthropic"]["{option}"]'


def _thinking(request: Request) -> tuple[dict[str, Any], str | None]:
    """The `thinking` member and the effort: from the arguments, over what provider_options say."""
    settings = request.settings
    thinking = checks.maybe_object(request.options.get("thinking"), _name("thinking"))
    if thinking.get("budget_tokens") is not None:
        checks.whole(thinking["budget_tokens"], _name("thinking") + '["budget_tokens"]', least=1)
    effort, budget = settings.reasoning_effort, settings.reasoning_budget_tokens
    if effort is not None and budget is not None:
        raise ConfigurationError("both reasoning_effort and reasoning_budget_tokens are given", hint="Give only one")
    wanted: dict[str, Any] = {}
    if budget is not None:
        if budget < 1024:
            raise ConfigurationError(f"reasoning_budget_tokens is {budget}", hint="Anthropic's least is 1024")
        wanted = {"type": "enabled", "budget_tokens": budget}
    elif effort == "none":
        wanted, effort = {"type": "disabled"}, None
    elif effort is not None and family(request.model).adaptive:
        wanted = {"type": "adaptive"}
    clash = wanted.keys() & thinking.keys()
    if clash:
        raise ConfigurationError(
            f"provider_options set thinking.{min(clash)} beside a reasoning argument", hint="Give only one of the two"
        )
    return {**wanted, **thinking}, effort


def _max_tokens(request: Request, thinking: dict[str, Any]) -> int:
    """Required by the API. Where the caller says nothing: the family's default, on top of a thinking budget."""
    budget = thinking.get("budget_tokens") or 0
    given = request.settings.max_tokens
    if given is None:
        return family(request.model).max_tokens + budget
    if budget >= given:
        raise ConfigurationError(
            f"the thinking budget ({budget}) leaves nothing of max_tokens ({given})",
            hint="Raise max_tokens above the budget",
        )
    return given


def _output_config(request: Request, effort: str | None, notices: list[Notice]) -> dict[str, Any]:
    config = checks.maybe_object(request.options.get("output_config"), _name("output_config"))
    wanted: dict[str, Any] = {}
    if effort is not None:
        wanted["effort"] = effort
    output = request.settings.output
    if output is not None:
        normal = schemas.normalise(output.schema, "anthropic", strict=True, name=output.name)
        if not normal.strict:
            raise ConfigurationError(
                f"output {output.name!r} does not fit Anthropic's structured output: {'; '.join(normal.losses)}",
                hint="Close its objects and avoid recursion and free-form maps",
            )
        notices.extend(Notice("schema", loss) for loss in normal.losses)
        wanted["format"] = {"type": "json_schema", "schema": normal.schema}
    clash = wanted.keys() & config.keys()
    if clash:
        raise ConfigurationError(
            f"provider_options set output_config.{min(clash)} beside an argument", hint="Give only one of the two"
        )
    return {**wanted, **config}


def _check_thinking(request: Request, thinking: dict[str, Any]) -> None:
    """One thinking mode within a tool round (extended-thinking guide, "Toggling thinking modes in conversations").

    With a budget an open round must hold signed thinking, and without thinking it must hold none; only the continuation
    that came with the calls can satisfy either. Where the round began with thinking its later steps may have none: that
    is how a model without interleaved thinking answers.
    """
    mode = thinking.get("type")
    portable_round = next((m for m in reversed(request.added) if m.role == "assistant"), None)
    if portable_round is not None:
        if mode == "enabled" and portable_round.tool_calls:
            raise ConfigurationError(
                "the history ends in a tool round, and portable history cannot carry the signed thinking it needs",
                hint="Return tool results with the untouched continuation, or leave reasoning_budget_tokens out",
            )
        return
    turns = request.turns
    if not turns or not goes_on(turns[-1]):
        return
    began = folded(
        turns, "anthropic.thinking", False,
        lambda before, at: begins_with_thinking(turns[at]) or (before and goes_on(turns[at - 1])),
    )  # fmt: skip
    if mode == "enabled" and not began and turns[-1].calls:
        raise ConfigurationError(
            "the open tool round began without thinking, and a thinking budget cannot begin inside it",
            hint="Finish the round first, then give reasoning_budget_tokens",
        )
    off = mode == "disabled" or (mode is None and not family(request.model).unasked)
    if off and begins_with_thinking(turns[-1]):
        raise ConfigurationError(
            "the open round began with thinking, and this turn has none",
            hint="Give the same reasoning arguments until the round is finished",
        )


def _messages(request: Request) -> list[str]:
    """The texts of the messages; those of past turns are joined already."""
    past = folded(request.turns, ("anthropic", request.standing), "", partial(_past, request))
    added = _added(*request.at(len(request.turns)))
    return [past, *added] if past else added


def _past(request: Request, before: str, index: int) -> str:
    """The joined messages of the turns up to one. A signed compaction must be the first block of a conversation."""
    turn = request.turns[index]
    blocks = replayed(turn)
    said = [f'{{"role":"assistant","content":[{",".join(blocks)}]}}'] if blocks else []
    if opens_anew(turn):
        return ",".join(said)
    return ",".join([*([before] if before else []), *_added(*request.at(index)), *said])


def _added(messages: Sequence[Message], sources: Sequence[Source], media: Sequence[Source]) -> list[str]:
    """User text and tool results between two assistant messages are one user message, the results first."""
    ids = wire_ids(messages)
    last_user = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    result: list[str] = []
    open_blocks: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        match message.role:
            case "user":
                parts = [*(sources if index == 0 else ()), *(media if index == last_user else ())]
                open_blocks.extend(map(_source, parts))
                open_blocks.append({"type": "text", "text": message.content})
            case "tool":
                open_blocks.append(_result(message, ids[index][0]))
            case "assistant":
                result.extend(_user(open_blocks))
                open_blocks = []
                text = [{"type": "text", "text": message.content.rstrip()}] if message.content.strip() else []
                calls = [
                    {"type": "tool_use", "id": wire_id, "name": wire_name(call.name), "input": call.arguments or {}}
                    for call, wire_id in zip(message.tool_calls, ids[index], strict=True)
                ]
                result.append(canonical.dumps({"role": "assistant", "content": [*text, *calls]}))
    return [*result, *_user(open_blocks)]


def _user(blocks: list[dict[str, Any]]) -> list[str]:
    if not blocks:
        return []
    content = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks
    return [canonical.dumps({"role": "user", "content": content})]


def _result(message: Message, wire_id: str) -> dict[str, Any]:
    """An empty result has no content member: the API refuses empty text."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id}
    if message.content.strip():
        block["content"] = message.content
    if message.is_error:
        block["is_error"] = True
    return block


def _source(source: Source) -> dict[str, Any]:
    match source.kind:
        case "text":
            return {"type": "text", "text": labelled(source)}
        case "image" | "pdf":
            where: dict[str, Any] = (
                {"type": "url", "url": source.uri}
                if source.uri
                else {"type": "base64", "media_type": source.mime_type, "data": source.base64}
            )
            kind = "image" if source.kind == "image" else "document"
            title = {"title": source.name} if source.name and kind == "document" else {}
            return {"type": kind, "source": where, **title}
