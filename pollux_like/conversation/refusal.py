"""Refusals and pairing that the formats share: each names message, block and format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollux_like.conversation.blocks import Message, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from pollux_like.errors import FormatError

Calls = dict[tuple[int, int], str]
"""The name of the called tool, by message and block index of each result."""


def refused(format: str, message: int, what: str, *, block: int | None = None, hint: str | None = None) -> FormatError:
    """The error for one place of the conversation."""
    where = f"messages[{message}]" if block is None else f"messages[{message}].blocks[{block}]"
    return FormatError(
        f'format="{format}" cannot hold {where}: {what}',
        hint=hint or "Use another format, or format=None for the conversation as it is",
    )


def check_filled(format: str, messages: Sequence[Message]) -> None:
    """Refuse an empty conversation and an empty turn: no provider takes either."""
    if not messages:
        raise FormatError(
            f'format="{format}" cannot hold a conversation without messages', hint="Serve at least one user message"
        )
    for index, message in enumerate(messages):
        if not message.blocks:
            raise refused(format, index, f"the {message.role} turn has no blocks", hint="Leave the turn out")


def check_pairing(format: str, messages: Sequence[Message], *, open_end: bool = False, one_turn: bool = False) -> Calls:
    """Each call is answered exactly once, by id, right after its turn; returns the called name for each result.

    `open_end`: the last turn may end in open calls. `one_turn`: all results of a turn stand in one message.
    Ids may come again in later turns. Raises FormatError naming the id.
    """
    names: Calls = {}
    pending: dict[str, str] = {}
    answered: set[str] = set()
    for at, message in enumerate(messages):
        results = [(n, block) for n, block in enumerate(message.blocks) if isinstance(block, ToolResultBlock)]
        if pending and not results:
            raise refused(format, at, f"it comes before the results of calls {_ids(pending)}")
        for n, block in results:
            if block.tool_call_id in answered:
                raise refused(format, at, f"call {block.tool_call_id!r} is answered a second time", block=n)
            if block.tool_call_id not in pending:
                raise refused(format, at, f"there is no open call {block.tool_call_id!r} before it", block=n)
            names[at, n] = pending.pop(block.tool_call_id)
            answered.add(block.tool_call_id)
        if pending and (one_turn or len(results) < len(message.blocks)):
            raise refused(format, at, f"calls {_ids(pending)} have no result in it")
        calls = [(n, block) for n, block in enumerate(message.blocks) if isinstance(block, ToolCallBlock)]
        if calls:
            answered = set()
        for n, call in calls:
            if call.id in pending:
                raise refused(format, at, f"call id {call.id!r} stands twice in one turn", block=n)
            pending[call.id] = call.name
    if pending and not open_end:
        raise refused(format, len(messages) - 1, f"calls {_ids(pending)} are never answered")
    return names


def _ids(calls: Mapping[str, str]) -> str:
    return ", ".join(map(repr, calls))


def hoisted(format: str, messages: Sequence[Message]) -> tuple[str | None, int]:
    """The text of the leading system turns, joined by blank lines, and the index of the first other turn.

    Raises FormatError for images there, and for a system turn further down.
    """
    first = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    texts: list[str] = []
    for at, message in enumerate(messages):
        if message.role != "system":
            continue
        if at > first:
            raise refused(format, at, "a system turn stands after the conversation began")
        for n, block in enumerate(message.blocks):
            if not isinstance(block, TextBlock):
                raise refused(format, at, f"a system turn with a block of type {block.type}", block=n)
            texts.append(block.text)
    if first == len(messages):
        raise FormatError(
            f'format="{format}" cannot hold a conversation of system turns only', hint="Serve a user message"
        )
    return ("\n\n".join(texts) if texts else None), first


def result_text(format: str, at: int, n: int, block: ToolResultBlock) -> str:
    """The text of a result, for formats whose results are text. Raises FormatError for images and for `is_error`."""
    if block.is_error:
        raise refused(format, at, "it has no place for is_error", block=n, hint="Use anthropic, or say it in the text")
    texts: list[str] = []
    for part in block.blocks:
        if not isinstance(part, TextBlock):
            raise refused(format, at, "a tool result is text there, and this one has an image", block=n)
        texts.append(part.text)
    return "\n".join(texts)


def check_unsigned(format: str, at: int, n: int, block: ReasoningBlock) -> None:
    """Refuse a signature where the format has no place for one."""
    if block.signature:
        raise refused(format, at, "it has no place for the signature", block=n, hint="Use anthropic or format=None")
