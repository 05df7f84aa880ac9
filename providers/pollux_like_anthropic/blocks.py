"""Anthropic's own blocks on their way back: replayed to the letter and in order, but for what the API then refuses.

The list (each with the answer of the API that it avoids):
* blank text: "messages: text content blocks must be non-empty" (the API itself returns such blocks).
* thinking at the end of a turn, cut by the token limit: "the final block in an assistant message cannot be thinking";
  unfinished thinking has no valid signature.
* a server tool's call that was cut before its result, in a turn that ended: it would never be answered.
* a turn without blocks (`content: []`): "all messages must have non-empty content".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pollux_like.turns import Turn

THINKING = ("thinking", "redacted_thinking")


def replayed(turn: Turn) -> list[str]:
    """The texts of the turn's blocks as the next request carries them, from its signed compaction on."""
    blocks = decoded(turn)
    blocks = blocks[_signed_compaction(blocks) or 0 :]
    answered = {block.get("tool_use_id") for _, block in blocks}
    kept = [
        (text, block)
        for text, block in blocks
        if not (block.get("type") == "text" and not str(block.get("text", "")).strip())
        and not (
            block.get("type") == "server_tool_use"
            and block.get("id") not in answered
            and turn.status not in ("pause", "tool_calls")
        )
    ]
    if turn.status != "pause":
        while kept and kept[-1][1].get("type") in THINKING:
            kept.pop()
    return [text for text, _ in kept]


def decoded(turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    """Each block with its text."""
    return [(text, json.loads(text)) for text in turn.native]


def begins_with_thinking(turn: Turn) -> bool:
    """Whether the turn's first block is signed thinking."""
    blocks = decoded(turn)
    return bool(blocks) and blocks[0][1].get("type") in THINKING


def goes_on(turn: Turn) -> bool:
    """Whether the assistant's turn is not over with it: it waits for tool results, or is paused."""
    return bool(turn.calls) or turn.status == "pause"


def opens_anew(turn: Turn) -> bool:
    """Whether the turn holds a signed compaction, which stands for everything before it and must be the first block
    sent (error code compaction_block_misplaced). An unsigned one keeps its place, and the API ignores what precedes it.
    """
    return _signed_compaction(decoded(turn)) is not None


def _signed_compaction(blocks: Sequence[tuple[str, dict[str, Any]]]) -> int | None:
    found = [at for at, (_, block) in enumerate(blocks) if block.get("type") == "compaction" and block.get("signature")]
    return found[-1] if found else None
