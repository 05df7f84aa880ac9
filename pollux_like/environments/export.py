"""Export of a served task to other harnesses: Responses items, and text with role spans through a chat template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from pollux_like import checks
from pollux_like.conversation import ImageBlock, Message, ToolSpec, convert, convert_tools
from pollux_like.conversation.chat import render_chat
from pollux_like.errors import FormatError, missing_extra

if TYPE_CHECKING:
    from pollux_like.environments.templates import ChatTemplate

FORMAT = "chat template"
MARK = "mark7f3c9e21"
"""Stands for a part of the conversation, where it is tried whether a template keeps that part."""


def export_responses(messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> dict[str, Any]:
    """`{"input": [...], "tools": [...]}` for the Responses API. Raises FormatError for what it cannot hold."""
    return {
        "input": convert(messages, "openai-responses"),
        "tools": convert_tools(tools, "openai-responses"),
    }


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the text; `message` is the index among the rendered chat messages."""

    start: int
    end: int
    role: str
    message: int


@dataclass(frozen=True, slots=True)
class Templated:
    """A conversation as one text.

    `spans`: where each chat message stands, in order; one whose place cannot be told is not among them. `losses`: what
    the template left out or rewrote, in words. `prefix_kept`: every shorter conversation is a prefix of the text.
    """

    text: str = field(repr=False)
    spans: tuple[Span, ...]
    losses: tuple[str, ...]
    prefix_kept: bool


def export_text(
    messages: Sequence[Message],
    template: str,
    *,
    tools: Sequence[ToolSpec] = (),
    add_generation_prompt: bool = True,
    variables: Mapping[str, Any] | None = None,
) -> Templated:
    """Render a conversation with a Hugging Face chat template, in jinja2's sandbox.

    The template gets `messages` in chat-completions shape with call arguments as objects, texts of one turn joined by
    a blank line, `tools`, `add_generation_prompt` and `variables` (such as `bos_token`). Raises FormatError for images,
    for what chat completions cannot hold, and for a template that fails or exceeds the bounds of its room.
    """
    given = checks.sequence(messages, "messages", Message)
    _check_text(given)
    chat = [_for_template(message) for message in render_chat(given, FORMAT)]
    declared = convert_tools(tools, "openai") if tools else None
    rendering = _template(template, declared, variables or {})
    text = rendering.text(chat, add_generation_prompt=add_generation_prompt)
    whole = rendering.text(chat, add_generation_prompt=False)
    losses: list[str] = []
    bounds: list[int | None] = [0]
    prefix_kept = True
    for count in range(1, len(chat)):
        earlier = rendering.maybe(chat[:count])
        if earlier is None:
            bounds.append(None)
            losses.append(f"the place of chat message {count}: the template refuses the conversation before it")
        elif text.startswith(earlier):
            bounds.append(len(earlier))
        else:
            bounds.append(None)
            prefix_kept = False
            losses.append(f"the conversation before chat message {count} is rendered otherwise once it has come")
    bounds.append(len(whole) if text.startswith(whole) else len(text))
    losses.extend(_dropped(rendering, chat, declared, text))
    spans = [
        Span(start, end, str(chat[at]["role"]), at)
        for at, (start, end) in enumerate(pairwise(bounds))
        if start is not None and end is not None
    ]
    return Templated(text, tuple(spans), tuple(losses), prefix_kept)


def _check_text(messages: Sequence[Message]) -> None:
    for at, message in enumerate(messages):
        for n, block in enumerate(message.blocks):
            if isinstance(block, ImageBlock):
                raise FormatError(
                    f"a chat template cannot hold messages[{at}].blocks[{n}]: text has no images",
                    hint="Leave the image out, or export Responses items",
                )


def _for_template(message: dict[str, Any]) -> dict[str, Any]:
    found = dict(message)
    content: object = found.get("content")
    if isinstance(content, list):
        found["content"] = "\n\n".join(part["text"] for part in cast("list[dict[str, str]]", content))
    elif content is None:
        found["content"] = ""
    if "tool_calls" in found:
        found["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
            for call in found["tool_calls"]
        ]
    return found


def _template(source: str, tools: Any, variables: Mapping[str, Any]) -> ChatTemplate:
    try:
        from pollux_like.environments.templates import ChatTemplate
    except ModuleNotFoundError as error:
        raise missing_extra("environments", error) from None
    return ChatTemplate(source, tools, variables)


def _dropped(rendering: ChatTemplate, chat: Sequence[dict[str, Any]], tools: Any, text: str) -> list[str]:
    """What of the conversation is not in the text, to the letter (white space at the ends apart).

    The same words may stand elsewhere, so each part is also rendered with a mark in its place.
    """
    found: list[str] = []

    def lost(at: int, marked: dict[str, Any]) -> bool:
        probe = rendering.maybe([*chat[:at], marked, *chat[at + 1 :]])
        return probe is not None and MARK not in probe

    for at, message in enumerate(chat):
        for name in ("content", "reasoning_content"):
            part = str(message.get(name) or "").strip()
            if part and (not _stands(part, text) or lost(at, {**message, name: MARK})):
                found.append(f"{name} of chat message {at} ({message['role']}) is not in the text")
        calls: list[dict[str, Any]] = message.get("tool_calls", [])
        for n, call in enumerate(calls):
            function = call["function"]

            def marked(change: dict[str, Any], n: int = n, calls: list[Any] = calls, message: Any = message) -> Any:
                call = {**calls[n], "function": {**calls[n]["function"], **change}}
                return {**message, "tool_calls": [*calls[:n], call, *calls[n + 1 :]]}

            if not _stands(function["name"], text) or lost(at, marked({"name": MARK})):
                found.append(f"a tool call of chat message {at} is not in the text")
            elif function["arguments"] and lost(at, marked({"arguments": {**function["arguments"], MARK: MARK}})):
                found.append(f"the arguments of a tool call of chat message {at} are not in the text")
    if tools:
        renamed = [{**tool, "function": {**tool["function"], "name": MARK}} for tool in tools]
        probe = rendering.maybe(chat, tools=renamed)
        if probe is not None and MARK not in probe:
            found.append("the tools are not in the text")
    return found


def _stands(part: str, text: str) -> bool:
    return part in text or json.dumps(part, ensure_ascii=False)[1:-1] in text
