"""Export of a served task to other harnesses: Responses items, and text with role spans through a chat template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, cast

from pollux_like import checks
from pollux_like.conversation import ImageBlock, Message, ToolSpec, convert, convert_tools
from pollux_like.conversation.chat import render_chat
from pollux_like.errors import FormatError

FORMAT = "chat template"


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
    for what chat completions cannot hold, and for a template that fails.
    """
    given = checks.sequence(messages, "messages", Message)
    _check_text(given)
    chat = [_for_template(message) for message in render_chat(given, FORMAT)]
    rendering = _Template(template, convert_tools(tools, "openai") if tools else None, variables or {})
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
    losses.extend(_dropped(chat, text))
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


class _Template:
    def __init__(self, source: str, tools: Any, variables: Mapping[str, Any]) -> None:
        try:
            from jinja2 import TemplateError
            from jinja2.ext import loopcontrols
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                'Chat templates need jinja2. Run: pip install "pollux-like[environments]"', name=error.name
            ) from None
        self._error = TemplateError
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = _tojson
        helpers = {"raise_exception": _raise, "strftime_now": _now}
        blank = {"documents": None, "bos_token": "", "eos_token": ""}
        self._variables = {**helpers, **blank, "tools": tools, **variables}
        try:
            self._template = environment.from_string(checks.filled(source, "template"))
        except TemplateError as error:
            raise _failed(error) from None

    def text(self, chat: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool) -> str:
        """The rendered text. Raises FormatError where the template fails."""
        try:
            return self._template.render(
                messages=list(chat), add_generation_prompt=add_generation_prompt, **self._variables
            )
        except (self._error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise _failed(error) from None

    def maybe(self, chat: Sequence[Mapping[str, Any]]) -> str | None:
        """The same, None where the template refuses."""
        try:
            return self.text(chat, add_generation_prompt=False)
        except FormatError:
            return None


def _failed(error: Exception) -> FormatError:
    return FormatError(f"the chat template failed: {type(error).__name__}", hint="Check it against the conversation")


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise(message: str) -> str:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)  # templates want the local date


def _dropped(chat: Sequence[Mapping[str, Any]], text: str) -> list[str]:
    """What of the conversation is not in the text, to the letter (white space at the ends apart)."""
    found: list[str] = []
    for at, message in enumerate(chat):
        for name in ("content", "reasoning_content"):
            part = str(message.get(name) or "").strip()
            if part and part not in text and json.dumps(part, ensure_ascii=False)[1:-1] not in text:
                found.append(f"{name} of chat message {at} ({message['role']}) is not in the text")
        missing = [call for call in message.get("tool_calls", ()) if call["function"]["name"] not in text]
        found.extend(f"a tool call of chat message {at} is not in the text" for _ in missing)
    return found
