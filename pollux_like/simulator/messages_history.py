"""What Anthropic Messages refuses in the conversation itself: roles, blocks, call and result pairing, thinking places.

Consecutive messages of one role are one turn for the API, and so they are here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pollux_like.simulator.accepts import MESSAGES_BLOCKS
from pollux_like.simulator.ledger import Ledger, digest
from pollux_like.simulator.messages_thinking import PREFIX, SIGNED, blocks, check_signed, on_beta
from pollux_like.simulator.models import Claude
from pollux_like.simulator.options import Options
from pollux_like.simulator.shapes import is_array, is_object
from pollux_like.simulator.wire import Exchange, Fault

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_EXTRA = "Extra inputs are not permitted"
_USER_ONLY = ("tool_result",)
_ASSISTANT_ONLY = ("tool_use", "server_tool_use", *SIGNED)


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role: the role, the first message's index, and blocks with their places."""

    role: str
    first: int
    blocks: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list[tuple[int, int, dict[str, Any]]])

    def of(self, *types: str) -> list[tuple[int, int, dict[str, Any]]]:
        return [entry for entry in self.blocks if entry[2].get("type") in types]


def check_history(ledger: Ledger, options: Options, exchange: Exchange, gates: Claude) -> Fault | None:
    """All rules of the conversation, shape before meaning."""
    messages = exchange.body["messages"]
    if not messages:
        return Fault(400, "messages: at least one message is required")
    modern = exchange.headers.get("anthropic-version") == "2026-10-21"
    for n, message in enumerate(messages):
        bad = _shape(n, message, last=n == len(messages) - 1, modern=modern)
        if bad is None and message["role"] == "system" and gates.system_role != "yes":
            beta = gates.system_role == "beta" and on_beta(exchange)
            bad = None if beta else Fault(400, "role 'system' is not supported on this model")
        if bad is not None:
            return bad
    turns = _turns(messages)
    bad = _pairing(turns) or _order(turns, gates) or _thinking_places(ledger, exchange, turns, gates)
    if bad is None and options.tools_required and not exchange.body.get("tools"):
        bad = _needs_tools(turns)
    return bad or _compactions(ledger, turns) or check_signed(ledger, options, exchange, _open_from(turns))


def _turns(messages: list[dict[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    for n, message in enumerate(messages):
        if not turns or turns[-1].role != message["role"]:
            turns.append(Turn(message["role"], n))
        turns[-1].blocks.extend((n, m, block) for m, block in enumerate(blocks(message["content"])))
    return turns


def _shape(n: int, message: dict[str, Any], *, last: bool, modern: bool) -> Fault | None:
    role, content = message.get("role"), message.get("content")
    for key in message:
        if key not in ("role", "content"):
            return Fault(400, f"messages.{n}.{key}: {_EXTRA}")
    if role not in ("user", "assistant", "system"):
        return Fault(400, f"messages.{n}.role: Input should be 'user', 'assistant' or 'system'")
    if not isinstance(content, (str, list)):
        return Fault(400, f"messages.{n}.content: Field required")
    if not content and not (last and role == "assistant"):
        return Fault(
            400,
            f"messages.{n}: all messages must have non-empty content except for the optional final assistant message",
        )
    for m, block in enumerate(blocks(content) if content else []):
        bad = _block(f"messages.{n}.content.{m}", block, role, modern=modern)
        if bad is not None:
            return bad
    return None


def _block(path: str, block: Any, role: str, *, modern: bool) -> Fault | None:
    kind = block.get("type") if is_object(block) else None
    known = MESSAGES_BLOCKS.get(str(kind))
    if known is None:
        tags = ", ".join(f"'{tag}'" for tag in sorted(MESSAGES_BLOCKS))
        return Fault(
            400, f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
    for key in block:
        if key not in known:
            return Fault(400, f"{path}.{kind}.{key}: {_EXTRA}")
    for types, home in ((_USER_ONLY, "user"), (_ASSISTANT_ONLY, "assistant")):
        if kind in types and role != home:
            return Fault(400, f"{path}: `{kind}` blocks can only be in `{home}` messages")
    if kind == "text":
        if modern and role == "user" and block.get("citations"):
            return Fault(400, f"{path}.text.citations: {_EXTRA}")
        return _text(block)
    if kind == "document" and modern and role == "assistant":
        return Fault(400, f"{path}: `document` blocks can only be in `user` messages")
    if kind == "tool_use":
        return _tool_use(path, block)
    if kind == "server_tool_use" and not _SERVER_ID.fullmatch(str(block.get("id", ""))):
        return Fault(400, f"{path}.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'")
    if kind == "thinking" and not isinstance(block.get("signature"), str):
        return Fault(400, f"{path}.thinking.signature: Field required")
    if kind == "tool_result":
        if not isinstance(block.get("tool_use_id"), str):
            return Fault(400, f"{path}.tool_result.tool_use_id: Field required")
        inner = block.get("content")
        texts = [part for part in inner if part.get("type") == "text"] if is_array(inner) else []
        return next((bad for bad in map(_text, texts) if bad is not None), None)
    return None


def _text(block: dict[str, Any]) -> Fault | None:
    text = block.get("text")
    if not text:
        return Fault(400, "messages: text content blocks must be non-empty")
    if not str(text).strip():
        return Fault(400, "messages: text content blocks must contain non-whitespace text")
    return None


def _tool_use(path: str, block: dict[str, Any]) -> Fault | None:
    if not _ID.fullmatch(str(block.get("id", ""))):
        return Fault(400, f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not block.get("name"):
        return Fault(400, f"{path}.tool_use.name: Field required")
    if "input" not in block:
        return Fault(400, f"{path}.tool_use.input: Field required")
    if not is_object(block["input"]):
        return Fault(400, f"{path}.tool_use.input: Input should be a valid dictionary")
    return None


def _order(turns: list[Turn], gates: Claude) -> Fault | None:
    head = turns[0]
    if head.role == "assistant" and not (head.blocks and head.blocks[0][2].get("type") == "compaction"):
        return Fault(400, 'messages: first message must use the "user" role')
    final = turns[-1]
    if final.role == "assistant" and not gates.prefill and not final.of("tool_use") and not _paused(final):
        return Fault(
            400,
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )
    return None


def _paused(turn: Turn) -> bool:
    """A paused turn is resent as it is: it holds server tools (platform docs, server tools: pause_turn)."""
    return bool(turn.of("server_tool_use", "mcp_tool_use"))


def _pairing(turns: list[Turn]) -> Fault | None:
    served: set[str] = set()
    for at, turn in enumerate(turns):
        served.update(entry[2]["id"] for entry in turn.of("server_tool_use", "mcp_tool_use"))
        before = turns[at - 1] if at else None
        asked: set[str] = set()
        if before is not None and before.role == "assistant":
            asked = {b["id"] for _, _, b in before.of("tool_use")}
        shift = 1 if turns[0].role == "assistant" else 0  # the API counts as if a user message stood first
        after = turns[at + 1] if at + 1 < len(turns) else None
        bad = _uses(turn, after, shift) or _results(turn, asked, served)
        if bad is not None:
            return bad
    return None


def _uses(turn: Turn, after: Turn | None, shift: int) -> Fault | None:
    uses = turn.of("tool_use")
    ids = [block["id"] for _, _, block in uses]
    if len(set(ids)) != len(ids):
        return Fault(400, "messages: `tool_use` ids must be unique")
    answered: set[str] = set()
    for _, _, block in after.blocks if after and after.role == "user" else []:
        if block["type"] != "tool_result":
            break
        answered.add(block["tool_use_id"])
    places = {(n, m) for n, m, _ in uses}
    trailing = [b for n, m, b in turn.blocks if b["type"] == "text" and places and (n, m) > min(places)]
    missing = [(n, block["id"]) for n, _, block in uses if trailing or block["id"] not in answered]
    if not missing:
        return None
    names = ", ".join(made for _, made in missing)
    return Fault(
        400,
        f"messages.{missing[0][0] + shift}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{names}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    )


def _results(turn: Turn, asked: set[str], served: set[str]) -> Fault | None:
    given: set[str] = set()
    for n, m, block in turn.blocks:
        kind = block["type"]
        if not kind.endswith("tool_result"):
            continue
        made = block.get("tool_use_id", "")
        known, call = (asked, "tool_use") if kind == "tool_result" else (served, "server_tool_use")
        if made not in known:
            return Fault(
                400,
                f"messages.{n}.content.{m}: unexpected `tool_use_id` found in `{kind}` blocks: {made}. Each `{kind}` "
                f"block must have a corresponding `{call}` block in the previous message.",
            )
        if made in given:
            return Fault(
                400,
                f"messages.{n}.content.{m}: each tool_use must have a single result. Found multiple `{kind}` blocks "
                f"with id: {made}",
            )
        given.add(made)
    return None


def _needs_tools(turns: list[Turn]) -> Fault | None:
    if not any(turn.of("tool_use", "tool_result") for turn in turns):
        return None
    return Fault(400, "Requests which have `tool_use` or `tool_result` blocks in conversation must have tools defined.")


def _open_from(turns: list[Turn]) -> int:
    """The first message of the latest assistant turn, all steps of its tool loop included."""
    at = max((n for n, turn in enumerate(turns) if turn.role == "assistant"), default=None)
    if at is None:
        return len(turns)
    while at >= 2 and turns[at - 1].of("tool_result") and turns[at - 2].role == "assistant":
        at -= 2
    return turns[at].first


def _thinking_places(ledger: Ledger, exchange: Exchange, turns: list[Turn], gates: Claude) -> Fault | None:
    for turn in turns:
        if turn.role != "assistant" or not turn.of(*SIGNED):
            continue
        kinds = [b["type"] for _, _, b in turn.blocks]
        head = next((k for k in kinds if k != "compaction"), "")
        if head not in SIGNED:
            return Fault(
                400,
                f"messages.{turn.first}.content.0: If an assistant message contains any thinking blocks, the first "
                f"block must be thinking or redacted_thinking. Found {head}.",
            )
        if kinds[-1] in SIGNED:
            n, m, _ = turn.blocks[-1]
            return Fault(
                400, f"messages.{n}.content.{m}: The final block in an assistant message cannot be `thinking`."
            )
    final = turns[-1] if turns[-1].role == "assistant" else None
    if final is None and len(turns) > 1 and turns[-1].of("tool_result"):
        final = turns[-2]
    if final is None:
        return None
    thinking = exchange.body.get("thinking")
    kind = ("adaptive" if gates.adaptive else "disabled") if thinking is None else thinking["type"]
    if kind == "disabled" and final.of(*SIGNED):
        return Fault(
            400,
            "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use "
            "thinking blocks, enable `thinking` in your request.",
        )
    begun = bool(final.blocks) and final.blocks[0][2]["type"] in SIGNED
    uses = final.of("tool_use")
    if kind != "enabled" or begun or not uses or all(b["id"] in ledger.bare_calls for _, _, b in uses):
        return None
    return Fault(
        400,
        f"messages.{final.first}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        f"`{final.blocks[0][2]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include "
        "thinking blocks from previous turns. To avoid this requirement, disable `thinking`.",
    )


def _compactions(ledger: Ledger, turns: list[Turn]) -> Fault | None:
    """Signed compaction: one block, first of all, unchanged (SDK error codes of anthropic 2.14)."""
    signed = [(t, at, b) for t, turn in enumerate(turns) for at, (_, _, b) in enumerate(turn.of("compaction"))]
    signed = [entry for entry in signed if entry[2].get("signature") is not None]
    if not signed:
        return None
    if len(signed) > 1:
        return Fault(400, "messages: more than one signed compaction block", code="compaction_block_ambiguous")
    if turns[0].blocks[0][2] is not signed[0][2]:
        text = "messages: a signed compaction block must be the first block of the conversation"
        return Fault(400, text, code="compaction_block_misplaced")
    block = signed[0][2]
    sealed = [ledger.open_text(block.get(key), prefix=PREFIX) for key in ("signature", "encrypted_content")]
    if any(claims is None or claims.get("k") != "compaction" for claims in sealed):
        return Fault(400, "messages: invalid compaction signature", code="compaction_block_signature_invalid")
    if any(claims is not None and claims["c"] != digest(block.get("content")) for claims in sealed):
        return Fault(400, "messages: compaction content was changed", code="compaction_block_content_mismatch")
    if block.get("tool_changes"):
        return Fault(400, "messages: compaction tool_changes differ", code="compaction_block_tool_changes_mismatch")
    return None
