"""OpenAI's own items on their way back: replayed to the letter, but for what the API returns and then refuses.

The list (each with the answer of the API that it avoids):
* `reasoning.status`, even null: "Unknown parameter: 'input[N].status'."
* `reasoning.content`: "Invalid 'input[N].content': array too long. Expected an array with maximum length 0".
* reasoning without encrypted content: "Items are not persisted when `store` is set to false", and what was stored may
  be gone as well; its followers then go without their ids, since an id is checked against the reasoning before it.
* reasoning with an id at the end of a turn, with nothing after it: "provided without its required following item"
  (without an id nothing is checked, and it stays).
* a function call that was cut: its arguments become `{}`, so that no broken JSON is replayed.
* a message without content: nothing was said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from pollux_like import canonical
from pollux_like.turns import Turn


def replayed(turn: Turn) -> list[str]:
    """The texts of the turn's items as the next request carries them, from its compaction on where there is one."""
    items = decoded(turn)
    if compacts(turn):
        items = items[_compaction(items) or 0 :]
    while items and _kind(items[-1][1]) == "reasoning" and items[-1][1].get("id"):
        items = items[:-1]
    kept: list[tuple[str, dict[str, Any]]] = []
    loose = False
    for text, item in items:
        kind = _kind(item)
        if kind == "reasoning" and not item.get("encrypted_content"):
            loose = True
            continue
        if kind == "message" and not item.get("content"):
            loose = True
            continue
        kept.append((text, item))
    return [_mended(text, item, loose) for text, item in kept]


def _mended(text: str, item: dict[str, Any], loose: bool) -> str:
    kind = _kind(item)
    changed = dict(item)
    if kind == "reasoning":
        changed.pop("status", None)
        if changed.get("content"):
            del changed["content"]
    elif kind == "function_call" and not _is_object(item.get("arguments")):
        changed["arguments"] = "{}"
        changed.pop("status", None)
    if loose:
        changed.pop("id", None)
    return text if changed == item else canonical.dumps_received(changed)


def decoded(turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    """Each item with its text."""
    return [(text, json.loads(text)) for text in turn.native]


def custom_calls(turn: Turn) -> frozenset[str]:
    """Ids of the calls of free-form tools: their results have another item type."""
    calls = [item for _, item in decoded(turn) if _kind(item) == "custom_tool_call"]
    return frozenset(str(item.get("call_id")) for item in calls)


def compacts(turn: Turn) -> bool:
    """Whether the turn holds a compaction item that stands for everything before it.

    The API still reads and bills what is sent before such an item, so the replay begins at the newest one. Not where a
    call before it is answered after it: pairs are never split.
    """
    items = decoded(turn)
    at = _compaction(items)
    return at is not None and not any(_kind(item).endswith("_call") and item.get("call_id") for _, item in items[:at])


def _compaction(items: Sequence[tuple[str, dict[str, Any]]]) -> int | None:
    found = [at for at, (_, item) in enumerate(items) if _kind(item) == "compaction"]
    return found[-1] if found else None


def _kind(item: dict[str, Any]) -> str:
    return str(item.get("type", ""))


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(canonical.loads(cast("str", arguments) or "{}", unique_keys=True), dict)
    except (canonical.JSONPolicyError, TypeError):
        return False
