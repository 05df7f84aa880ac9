"""Anthropic Messages: format "anthropic". Native thinking, tool_use and tool_result blocks."""

from __future__ import annotations

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
from pollux_like.conversation.refusal import check_filled, check_pairing, hoisted, refused

FORMAT = "anthropic"


def render_anthropic(messages: Sequence[Message]) -> dict[str, Any]:
    """`{"system": str | None, "messages": [...]}`; leading system turns are hoisted, content is always a list.

    Unsigned reasoning is emitted, without `signature`; Anthropic's own API wants one, servers that speak its dialect
    do not. Raises FormatError for what the API refuses: system turns later on, an assistant turn first, blank text,
    trailing white space of a final assistant turn, results that are not first in their turn, assistant images.
    """
    check_filled(FORMAT, messages)
    system, first = hoisted(FORMAT, messages)
    if system is not None and not system.strip():
        raise refused(FORMAT, 0, "the system text is blank", hint="Leave the system turn out")
    if messages[first].role != "user":
        raise refused(FORMAT, first, "the first turn is the assistant's", hint="Begin with a user turn")
    check_pairing(FORMAT, messages)
    rendered: list[dict[str, Any]] = []
    for at, message in enumerate(messages[first:], start=first):
        rendered.append({"role": message.role, "content": [_block(at, n, message) for n in range(len(message.blocks))]})
    last = messages[-1].blocks[-1]
    if messages[-1].role == "assistant" and isinstance(last, TextBlock) and last.text != last.text.rstrip():
        raise refused(FORMAT, len(messages) - 1, "the final assistant text ends in white space")
    return {"system": system, "messages": rendered}


def _block(at: int, n: int, message: Message) -> dict[str, Any]:
    block: MessageBlock = message.blocks[n]
    match block:
        case TextBlock():
            if not block.text.strip():
                raise refused(FORMAT, at, "the text is blank", block=n, hint="Leave the block out")
            return _text(block)
        case ImageBlock():
            if message.role == "assistant":
                raise refused(FORMAT, at, "an image stands in an assistant turn", block=n)
            return _image(block)
        case ReasoningBlock():
            signed = {"signature": block.signature} if block.signature else {}
            return {"type": "thinking", "thinking": block.text, **signed}
        case ToolCallBlock():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case ToolResultBlock():
            if any(not isinstance(before, ToolResultBlock) for before in message.blocks[:n]):
                raise refused(FORMAT, at, "the result stands after other blocks; results come first", block=n)
            failed = {"is_error": True} if block.is_error else {}
            content = [_text(part) if isinstance(part, TextBlock) else _image(part) for part in block.blocks]
            return {"type": "tool_result", "tool_use_id": block.tool_call_id, "content": content, **failed}


def _text(block: TextBlock) -> dict[str, Any]:
    return {"type": "text", "text": block.text}


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": block.mimeType, "data": block.data}}
