"""Flattening: a conversation as the text and image blocks of a prompt, for harnesses that know nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pollux_like.conversation.blocks import (
    ImageBlock,
    Message,
    MessageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)


def flatten(messages: Sequence[Message]) -> list[TextBlock | ImageBlock]:
    """The prompt of a conversation, as the OpenReward SDK 0.1.167 writes it (its answers are our test vectors).

    Exactly one user message of text and images is its own blocks. Otherwise each message begins with a block `[role]`;
    reasoning is `<think>…</think>`, a call `[tool_call name] {args}` with ASCII JSON, a result `[tool_result]` or
    `[tool_result (error)]` and then its blocks. `detail` says what each was.
    """
    if len(messages) == 1 and messages[0].role == "user":
        plain = [block for block in messages[0].blocks if isinstance(block, (TextBlock, ImageBlock))]
        if len(plain) == len(messages[0].blocks):
            return plain
    flat: list[TextBlock | ImageBlock] = []
    for message in messages:
        flat.append(TextBlock(text=f"[{message.role}]", detail={"role": message.role}))
        for block in message.blocks:
            flat.extend(_flat(block))
    return flat


def _flat(block: MessageBlock) -> Iterator[TextBlock | ImageBlock]:
    match block:
        case TextBlock() | ImageBlock():
            yield block
        case ReasoningBlock():
            yield TextBlock(text=f"<think>{block.text}</think>", detail={"type": "reasoning"})
        case ToolCallBlock():
            text = f"[tool_call {block.name}] {json.dumps(block.input)}"
            yield TextBlock(text=text, detail={"type": "tool_call", "id": block.id})
        case ToolResultBlock():
            head = "[tool_result (error)]" if block.is_error else "[tool_result]"
            yield TextBlock(text=head, detail={"type": "tool_result", "tool_call_id": block.tool_call_id})
            yield from block.blocks
