"""Gemini contents: format "google". The assistant's role is `model`; results go by the name of the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pollux_like.conversation.blocks import (
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from pollux_like.conversation.refusal import Calls, check_filled, check_pairing, hoisted, refused, result_text

FORMAT = "google"


def render_google(messages: Sequence[Message]) -> dict[str, Any]:
    """`{"system_instruction": str | None, "contents": [...]}`; parts keep their order.

    Raises FormatError for reasoning (no input form for what is not encrypted), images in results, `is_error`, empty
    text, and results that do not stand together in the turn after their calls.
    """
    check_filled(FORMAT, messages)
    system, first = hoisted(FORMAT, messages)
    names = check_pairing(FORMAT, messages, open_end=True, one_turn=True)
    contents = [
        {
            "role": "model" if message.role == "assistant" else "user",
            "parts": [_part(at, n, message, names) for n in range(len(message.blocks))],
        }
        for at, message in enumerate(messages[first:], start=first)
    ]
    return {"system_instruction": system, "contents": contents}


def _part(at: int, n: int, message: Message, names: Calls) -> dict[str, Any]:
    block = message.blocks[n]
    match block:
        case TextBlock():
            if not block.text:
                raise refused(FORMAT, at, "the text is empty", block=n, hint="Leave the block out")
            return {"text": block.text}
        case ImageBlock():
            return {"inline_data": {"mime_type": block.mimeType, "data": block.data}}
        case ReasoningBlock():
            raise refused(FORMAT, at, "there is no input form for unencrypted reasoning", block=n)
        case ToolCallBlock():
            return {"function_call": {"name": block.name, "args": block.input}}
        case ToolResultBlock():
            output = result_text(FORMAT, at, n, block)
            return {"function_response": {"name": names[at, n], "response": {"output": output}}}
