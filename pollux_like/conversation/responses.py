"""Responses items: format "openai-responses". Every block keeps its place; results may hold images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pollux_like.conversation.blocks import ImageBlock, Message, TextBlock, ToolCallBlock, ToolResultBlock
from pollux_like.conversation.chat import data_url
from pollux_like.conversation.refusal import check_filled, check_pairing, refused

FORMAT = "openai-responses"


def render_responses(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The `input` list of the Responses API: message, function_call and function_call_output items.

    Raises FormatError for reasoning (an item of it needs an id or encrypted content of the API), `is_error`, and
    images outside of user turns and results.
    """
    check_filled(FORMAT, messages)
    check_pairing(FORMAT, messages)
    items: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        parts: list[dict[str, Any]] = []
        for n, block in enumerate(message.blocks):
            match block:
                case TextBlock() if message.role == "assistant":  # input takes the assistant's words as a string only
                    items.append({"type": "message", "role": "assistant", "content": block.text})
                case TextBlock():
                    parts.append({"type": "input_text", "text": block.text})
                case ImageBlock() if message.role == "user":
                    parts.append(_image(block))
                case ToolCallBlock():
                    parts = _said(items, message.role, parts)
                    items.append(
                        {"type": "function_call", "call_id": block.id, "name": block.name,
                         "arguments": json.dumps(block.input, ensure_ascii=False)}
                    )  # fmt: skip
                case ToolResultBlock():
                    parts = _said(items, message.role, parts)
                    output = _output(at, n, block)
                    items.append({"type": "function_call_output", "call_id": block.tool_call_id, "output": output})
                case _:
                    what = f"a block of type {block.type} in {message.role} input"
                    raise refused(FORMAT, at, what, block=n)
        _said(items, message.role, parts)
    return items


def _said(items: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if parts:
        items.append({"type": "message", "role": role, "content": parts})
    return []


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(block), "detail": "auto"}


def _output(at: int, n: int, block: ToolResultBlock) -> Any:
    if block.is_error:
        raise refused(FORMAT, at, "it has no place for is_error", block=n, hint="Use anthropic, or say it in the text")
    if len(block.blocks) == 1 and isinstance(block.blocks[0], TextBlock):
        return block.blocks[0].text
    if not block.blocks:
        return ""
    return [
        {"type": "input_text", "text": part.text} if isinstance(part, TextBlock) else _image(part)
        for part in block.blocks
    ]
