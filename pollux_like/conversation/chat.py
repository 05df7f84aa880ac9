"""Chat completions: formats "openai" and "openrouter", with reasoning in `reasoning_content` (DeepSeek, vLLM)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pollux_like.conversation.blocks import (
    ImageBlock,
    Message,
    MessageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from pollux_like.conversation.refusal import check_filled, check_pairing, check_unsigned, refused, result_text


def render_chat(messages: Sequence[Message], format: str = "openai") -> list[dict[str, Any]]:
    """The message list of chat completions. Raises FormatError for what it cannot hold, order included."""
    check_filled(format, messages)
    check_pairing(format, messages)
    rendered: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        match message.role:
            case "system":
                rendered.append({"role": "system", "content": _content(format, at, message.blocks, images=False)})
            case "user":
                rendered.extend(_user(format, at, message))
            case "assistant":
                rendered.append(_assistant(format, at, message))
    return rendered


def _user(format: str, at: int, message: Message) -> list[dict[str, Any]]:
    rendered: list[dict[str, Any]] = []
    rest: list[MessageBlock] = []
    for n, block in enumerate(message.blocks):
        if not isinstance(block, ToolResultBlock):
            rest.append(block)
            continue
        if rest:
            raise refused(
                format, at, "the result stands after other blocks, and must come right after the call", block=n
            )
        content = result_text(format, at, n, block)
        rendered.append({"role": "tool", "tool_call_id": block.tool_call_id, "content": content})
    if rest:
        rendered.append({"role": "user", "content": _content(format, at, rest, images=True)})
    return rendered


def _assistant(format: str, at: int, message: Message) -> dict[str, Any]:
    order = {"reasoning": 0, "text": 1, "image": 1, "tool_call": 2}
    reached, said = 0, [block for block in message.blocks if isinstance(block, (TextBlock, ImageBlock))]
    for n, block in enumerate(message.blocks):
        if order[block.type] < reached:
            raise refused(format, at, f"the {block.type} comes too late: the order is reasoning, text, calls", block=n)
        reached = order[block.type]
        if isinstance(block, ReasoningBlock):
            check_unsigned(format, at, n, block)
    rendered: dict[str, Any] = {
        "role": "assistant", "content": _content(format, at, said, images=False) if said else None
    }  # fmt: skip
    thoughts = [block.text for block in message.blocks if isinstance(block, ReasoningBlock)]
    if thoughts:
        rendered["reasoning_content"] = "\n\n".join(thoughts)
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    if not said and not calls:
        raise refused(format, at, "an assistant turn needs text or a call beside its reasoning")
    if calls:
        rendered["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.input)}}
            for call in calls
        ]
    return rendered


def _content(format: str, at: int, blocks: Sequence[MessageBlock], *, images: bool) -> Any:
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageBlock) and images:
            parts.append({"type": "image_url", "image_url": {"url": data_url(block)}})
        else:
            raise refused(format, at, f"it holds a block of type {block.type}")
    return parts


def data_url(block: ImageBlock) -> str:
    """The image as a `data:` URL."""
    return f"data:{block.mimeType};base64,{block.data}"
