"""Reading a conversation off the wire: what a newer server may add is skipped and named, the rest is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from pollux_like import checks
from pollux_like.conversation.blocks import BLOCK_TYPES, Message
from pollux_like.errors import FormatError

_HINT = "Report it to the owner of the server"


@dataclass(frozen=True, slots=True)
class Decoded:
    """`messages` as they could be read, and `skipped`: one sentence for everything that was left out."""

    messages: list[Message]
    skipped: tuple[str, ...] = ()


def decode_messages(value: object) -> Decoded:
    """A conversation as a server sends it.

    Blocks of unknown type are skipped. A turn that is empty after that is skipped, so is the result of a call that was
    skipped, and the call whose result was; `skipped` names each. Raises FormatError for what is no conversation: an
    unknown role, a block without `type`, a placement that is not allowed.
    """
    if not isinstance(value, list):
        raise FormatError(f"the conversation is {checks.kind(value)}, not a list", hint=_HINT)
    messages: list[Message] = []
    skipped: list[str] = []
    lost = _unreadable_results(cast("list[object]", value))
    for at, item in enumerate(cast("list[object]", value)):
        kept, notes = _known(item, at, lost)
        skipped.extend(notes)
        if notes and kept.get("blocks") == []:
            skipped.append(f"messages[{at}]: nothing of this turn is left")
            continue
        messages.append(decode_message(kept, f"messages[{at}]"))
    return Decoded(messages, tuple(skipped))


def decode_message(value: object, where: str) -> Message:
    """One message. Raises FormatError naming the place."""
    try:
        return Message.model_validate(value)
    except ValidationError as error:
        said = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise FormatError(f"{where}: {said}", hint=_HINT) from None


def _unreadable_results(items: list[object]) -> set[str]:
    """The ids of calls that are answered by a block of unknown type."""
    found: set[str] = set()
    for item in items:
        blocks = cast("Mapping[str, Any]", item).get("blocks") if isinstance(item, Mapping) else None
        for block in cast("list[object]", blocks) if isinstance(blocks, list) else ():
            fields: Mapping[str, Any] = cast("Mapping[str, Any]", block) if isinstance(block, Mapping) else {}
            if fields.get("type") not in BLOCK_TYPES and isinstance(fields.get("tool_call_id"), str):
                found.add(fields["tool_call_id"])
    return found


def _known(item: object, at: int, lost: set[str]) -> tuple[dict[str, Any], list[str]]:
    """The message without what is unknown and without results of `lost` calls, and a note for each such block."""
    if not isinstance(item, Mapping):
        raise FormatError(f"messages[{at}] is {checks.kind(item)}, not an object", hint=_HINT)
    fields = {name: part for name, part in cast("Mapping[str, Any]", item).items() if name in Message.model_fields}
    if not isinstance(fields.get("blocks"), list):
        return fields, []
    notes: list[str] = []
    fields["blocks"] = _known_blocks(fields["blocks"], f"messages[{at}].blocks", BLOCK_TYPES, lost, notes)
    return fields, notes


def _known_blocks(
    blocks: list[object], where: str, known: tuple[str, ...], lost: set[str], notes: list[str]
) -> list[object]:
    kept: list[object] = []
    for n, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            kept.append(block)
            continue
        fields = dict(cast("Mapping[str, Any]", block))
        kind = fields.get("type")
        if not isinstance(kind, str):
            raise FormatError(f"{where}[{n}] has no type", hint=_HINT)
        own, call = _name(fields.get("id")), _name(fields.get("tool_call_id"))
        if kind not in BLOCK_TYPES or kind not in known:
            if own is not None:
                lost.add(own)
            notes.append(f"{where}[{n}]: a block of the unknown type {kind[:40]!r}")
        elif kind == "tool_call" and own in lost:
            notes.append(f"{where}[{n}]: the call {own!r}, whose result has a block of unknown type")
        elif kind == "tool_result" and call in lost:
            notes.append(f"{where}[{n}]: the result of call {call!r}, whose block was skipped")
        else:
            kept.append(_plain(fields, f"{where}[{n}]", lost, notes))
    return kept


def _name(value: object) -> str | None:
    return value if isinstance(value, str) else None


_FIELDS = {
    "text": {"text"}, "image": {"data", "mimeType"}, "reasoning": {"text", "signature"},
    "tool_call": {"id", "name", "input"}, "tool_result": {"tool_call_id", "blocks", "is_error"},
}  # fmt: skip


def _plain(fields: dict[str, Any], where: str, lost: set[str], notes: list[str]) -> dict[str, Any]:
    known = _FIELDS[fields["type"]] | {"type", "detail"}
    kept = {name: value for name, value in fields.items() if name in known}
    if fields["type"] == "tool_result" and isinstance(kept.get("blocks"), list):
        kept["blocks"] = _known_blocks(kept["blocks"], f"{where}.blocks", ("text", "image"), lost, notes)
    return kept
