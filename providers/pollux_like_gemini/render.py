"""Ours to wire: one `Request` as the JSON body of `generateContent`. Pure; imports no SDK."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pollux_like import canonical
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message
from pollux_like.output import Notice
from pollux_like.provider import CountParser, Request, Wire
from pollux_like.sources import Source, labelled
from pollux_like.turns import Turn, folded
from pollux_like.wire_ids import wire_ids

from .generation import generation_config
from .models import family
from .parse import ContentParser
from .parts import answers, names, replayed, wire_name
from .tools import tool_config, tools_of

OURS = frozenset({
    "model", "contents", "systemInstruction", "stream", "continuationToken", "system_instruction",
    "generation_config", "tool_config", "continuation_token",
})  # fmt: skip
"""Body keys that this library sets, and other spellings of those that it merges: refused in the options."""
SPECIAL = frozenset({"tools", "schemas", "toolConfig", "generationConfig"})
COUNTED = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})
"""What Vertex counts."""

STAND_IN = base64.b64encode(b"context_engineering_is_the_way_to_go").decode()
"""What the API takes for the signature of a call that it did not make (the guide "Thought signatures", FAQ; accepted in
recorded exchanges)."""

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:-]*")

_Open = tuple[str, str]
"""The joined contents that are complete, and the joined parts of the model's content that is still open."""


def render(request: Request) -> Wire:
    """The body, with the whole conversation in it.

    Automatic function calling and automatic continuation are the SDK's, above the road that is taken here: one request
    is one request. A turn that ended in CONTINUATION is asked for with its token and the contents that it began with.
    """
    options = request.options
    clash = OURS & options.keys()
    if clash:
        raise ConfigurationError(
            f"provider_options set {min(clash)!r}, which the library decides itself",
            hint="Use the argument of interact(), the camelCase spelling, or leave it out",
        )
    if not _MODEL.fullmatch(request.model) or ".." in request.model:
        raise ConfigurationError("Config.model is no model name of Gemini", hint='Give one such as "gemini-3-flash"')
    notices: list[Notice] = []
    head: dict[str, Any] = {}
    if request.instructions is not None:
        head["systemInstruction"] = {"parts": [{"text": request.instructions}]}
    asked = {
        "tools": tools_of(request, notices),
        "toolConfig": tool_config(request),
        "generationConfig": generation_config(request, notices),
    }
    head.update({key: value for key, value in asked.items() if value})
    head.update({key: value for key, value in options.items() if key not in SPECIAL})
    last = request.turns[-1] if request.turns else None
    if last is not None and last.status == "pause":
        head["continuationToken"] = last.state.get("continuation_token", "")
    if _stands_in(request.added, family(request.model).signs):
        notices.append(
            Notice(
                "signature_stand_in",
                "the history ends in a tool round of another origin; its calls carry Google's stand-in for a signature",
            )
        )
    action = "streamGenerateContent?alt=sse" if request.streaming else "generateContent"
    model = request.model if "/" in request.model else f"models/{request.model}"
    return Wire(
        path=f"{model}:{action}",
        body=canonical.splice(head, "contents", _contents(request)),
        streaming=request.streaming,
        parser=ContentParser,
        notices=tuple(notices),
    )


def render_count(request: Request) -> Wire:
    """The same request for `countTokens`: as one member on the Gemini API, and on Vertex by its own members, of which
    that API takes fewer (the references of both)."""
    wire = render(replace(request, streaming=False))
    place = wire.path.removesuffix(":generateContent")
    if "aiplatform.googleapis.com" in request.endpoint:
        body = canonical.picked(wire.body, COUNTED)
    else:
        body = f'{{"generateContentRequest":{{"model":{canonical.dumps(place)},{wire.body[1:]}}}'
    return Wire(f"{place}:countTokens", body, streaming=False, parser=lambda: CountParser("totalTokens"))


def _contents(request: Request) -> list[str]:
    """The texts of the contents; those of past turns are joined already."""
    signs = family(request.model).signs
    empty: _Open = ("", "")
    past, speaking = folded(request.turns, ("gemini", request.standing, signs), empty, partial(_past, request, signs))
    last = request.turns[-1] if request.turns else None
    if last is not None and last.status == "pause":  # the API holds what it said, and goes on from there
        return [past]
    said = [_model(speaking)] if speaking else []
    return [*([past] if past else []), *said, *_added(*request.at(len(request.turns)), last, signs)]


def _past(request: Request, signs: bool, before: _Open, index: int) -> _Open:
    """The joined contents up to a turn. What a paused turn and its sequel said is one content."""
    turn = request.turns[index]
    past, speaking = before
    added = _added(*request.at(index), request.turns[index - 1] if index else None, signs)
    if added:
        past = ",".join([*([past] if past else []), *([_model(speaking)] if speaking else []), *added])
        speaking = ""
    return past, ",".join([*([speaking] if speaking else []), *replayed(turn)])


def _model(parts: str) -> str:
    return f'{{"role":"model","parts":[{parts}]}}'


def _stands_in(messages: Sequence[Message], signs: bool) -> bool:
    return signs and any(message.tool_calls for message in messages[_opened(messages) :])


def _opened(messages: Sequence[Message]) -> int:
    """Where the open round of these messages begins: only what follows the last user message is checked."""
    return max((index + 1 for index, message in enumerate(messages) if message.role == "user"), default=0)


def _added(
    messages: Sequence[Message],
    sources: Sequence[Source],
    media: Sequence[Source],
    before: Turn | None,
    signs: bool,
) -> list[str]:
    """A step's results are one content, in call order: as many responses as calls, or the API refuses them."""
    ids = wire_ids(messages)
    known: dict[str, tuple[str | None, str]] = answers(before)
    opened = _opened(messages)
    contents: list[tuple[str, list[str]]] = []
    kind = ""
    for index, message in enumerate(messages):
        parts: list[str] = []
        match message.role:
            case "user":
                given = [*(sources if index == 0 else ()), *(media if index == opened - 1 else ())]
                parts = [canonical.dumps(part) for part in (*map(_source, given), {"text": message.content})]
            case "tool":
                parts = [_response(message, known)]
            case "assistant":
                known.update(names(message.tool_calls, ids[index]))
                parts = _said(message, ids[index], signs and index >= opened)
        if message.role == kind and kind != "user":
            contents[-1][1].extend(parts)
        else:
            contents.append(("model" if message.role == "assistant" else "user", parts))
        kind = message.role
    return [f'{{"role":"{role}","parts":[{",".join(parts)}]}}' for role, parts in contents]


def _said(message: Message, ids: Sequence[str], stands_in: bool) -> list[str]:
    """A portable answer. Only the first call of a step carries a signature, as in the model's own."""
    parts: list[dict[str, Any]] = [{"text": message.content}] if message.content.strip() else []
    for at, (call, wire_id) in enumerate(zip(message.tool_calls, ids, strict=True)):
        part: dict[str, Any] = {
            "functionCall": {"id": wire_id, "name": wire_name(call.name), "args": call.arguments or {}}
        }
        if stands_in and at == 0:
            part["thoughtSignature"] = STAND_IN
        parts.append(part)
    return [canonical.dumps(part) for part in parts]


def _response(message: Message, known: Mapping[str, tuple[str | None, str]]) -> str:
    """A result as the object that the API wants: a JSON object as it is, other text under "result", a failure under
    "error". An object with a key such as `$ref` goes as text: the API reads it as a reference."""
    wire_id, name = known[message.tool_call_id or ""]
    head: dict[str, Any] = {"name": name} if wire_id is None else {"id": wire_id, "name": name}
    text = message.content
    if message.is_error:
        response = canonical.dumps({"error": text or "Error"})
    elif _is_object(text):
        response = canonical.minify(text)
    else:
        response = canonical.dumps({"result": text})
    return f'{{"functionResponse":{canonical.dumps(head)[:-1]},"response":{response}}}}}'


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return not _refers(canonical.loads(text, unique_keys=True))
    except canonical.JSONPolicyError:
        return False


def _refers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key.startswith("$") or _refers(one) for key, one in cast("dict[str, Any]", value).items())
    return isinstance(value, list) and any(map(_refers, cast("list[Any]", value)))


def _source(source: Source) -> dict[str, Any]:
    if source.kind == "text":
        return {"text": labelled(source)}
    if source.uri is not None:
        return {"fileData": {"mimeType": source.mime_type, "fileUri": source.uri}}
    return {"inlineData": {"mimeType": source.mime_type, "data": source.base64}}
