"""Signed thinking of Anthropic Messages: how blocks are bound, and which replays are refused or set aside.

A signature is sealed over the block's kind and text, the model, the signed block before it, and everything else
before it (system, tools, content; `cache_control` apart). Every model checks the text and the order; models with
preserved thinking check the prefix too (docs.anthropic.com: build-with-claude/preserved-thinking/prefix-checks).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from pollux_like.simulator.ledger import Ledger, digest, family
from pollux_like.simulator.models import claude
from pollux_like.simulator.options import Options
from pollux_like.simulator.shapes import as_objects, is_array, is_object
from pollux_like.simulator.wire import Exchange, Fault

PREFIX = b"\x12\x8a"
SIGNED = ("thinking", "redacted_thinking")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
_FIELD = {"thinking": "signature", "redacted_thinking": "data"}


def blocks(content: Any) -> list[dict[str, Any]]:
    """Message content as blocks; a plain string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if is_array(content) else []


def betas(exchange: Exchange) -> set[str]:
    """Names in the `anthropic-beta` header."""
    return {name.strip() for name in exchange.headers.get("anthropic-beta", "").split(",") if name.strip()}


def on_beta(exchange: Exchange) -> bool:
    """Whether the request came over the beta resource, or names a beta."""
    return exchange.query.get("beta") == "true" or bool(betas(exchange))


def _plain(value: Any) -> Any:
    """A block without what does not count: cache markers, nulls, the direct caller, string against one text block."""
    if is_array(value):
        return [_plain(child) for child in value]
    if not is_object(value):
        return value
    kept = {k: v for k, v in value.items() if k != "cache_control" and v is not None and v != {"type": "direct"}}
    if kept.get("type") == "tool_use":
        return kept
    if kept.get("type") == "tool_result" and isinstance(kept.get("content"), str):
        kept["content"] = blocks(kept["content"])
    if kept.get("is_error") is False:
        del kept["is_error"]
    return {key: _plain(child) for key, child in kept.items()}


def _joined(before: str, value: Any) -> str:
    return hashlib.sha256((before + digest(value)).encode()).hexdigest()[:32]


@dataclass(slots=True)
class Chain:
    """The running identity of a conversation: `prefix` of its unsigned content, `last` of its signed blocks."""

    ledger: Ledger
    model: str
    start: str
    prefix: str
    last: str = ""
    role: str = "assistant"
    reply: str = ""
    signed: int = 0
    made: int = field(default=0)

    @classmethod
    def of_request(cls, ledger: Ledger, exchange: Exchange) -> Chain:
        body = exchange.body
        start = digest(_plain([blocks(body.get("system") or []), as_objects(body.get("tools"))]))
        return cls(ledger, family(exchange.model), start, start)

    @classmethod
    def of_reply(cls, ledger: Ledger, exchange: Exchange, *, signed: int) -> Chain:
        """The chain at the end of a request, ready to sign a reply of so many signed blocks."""
        chain = cls.of_request(ledger, exchange)
        gone = {entry["path"] for entry in exchange.dropped}
        for n, message in enumerate(exchange.body.get("messages", [])):
            for m, block in enumerate(blocks(message.get("content"))):
                if f"messages.{n}.content.{m}" not in gone:
                    chain.follow(block, role=message["role"])
        chain.reply, chain.signed = ledger.hex(12), signed
        return chain

    def follow(self, block: dict[str, Any], *, role: str = "assistant") -> None:
        """Go past one block. A compaction block starts the conversation anew."""
        if block.get("type") in SIGNED:
            self.last = digest(block.get(_FIELD[block["type"]]))
        elif block.get("type") == "compaction":
            self.prefix, self.last = _joined(self.start, [role, _plain(block)]), ""
        else:
            self.prefix = _joined(self.prefix, [role, _plain(block)])

    def sign(self, content: list[str]) -> str:
        """The signature of the next signed block of the reply."""
        claims = {
            "k": content[0],
            "c": digest(content),
            "m": self.model,
            "x": self.prefix,
            "p": self.last,
            "r": self.reply,
            "n": self.signed,
        }
        self.made += 1
        return self.ledger.seal_text(claims, prefix=PREFIX, pad=64 + len(content[1]))


def adopt_block(ledger: Ledger, block: dict[str, Any]) -> None:
    """Take a signed block that another server issued as one of ours. Only its text stays bound."""
    if block["type"] == "thinking":
        ledger.adopt(block["signature"], {"k": "thinking", "c": digest(["thinking", block["thinking"]])})
    else:
        ledger.adopt(block["data"], {"k": "redacted", "c": digest(["redacted", ""])})


def check_signed(ledger: Ledger, options: Options, exchange: Exchange, open_from: int) -> Fault | None:
    """The rules of the module's docstring. `open_from` is the index of the first message of the latest turn."""
    chain = Chain.of_request(ledger, exchange)
    behavior, bad = _behavior(options, exchange)
    if bad is not None:
        return bad
    preserving = claude(exchange.model).preserves
    seen: dict[str, list[str]] = {}
    any_before = False
    totals: dict[str, int] = {}
    for n, message in enumerate(exchange.body["messages"]):
        for m, block in enumerate(blocks(message.get("content"))):
            if block.get("type") not in SIGNED:
                chain.follow(block, role=message["role"])
                continue
            path, latest = f"messages.{n}.content.{m}", n >= open_from
            claims = _claims(ledger, block)
            if claims is None:
                return _invalid(path, block)
            if claims["c"] != digest(_content(block)):
                return _modified(path) if latest else _invalid(path, block)
            reply = claims.get("r")
            if reply is not None:
                if not _readable(exchange.model, claims["m"]):
                    exchange.dropped.append(_drop(path, "model_binding_mismatch"))
                    any_before = True
                    continue
                moved = claims["p"] != chain.last and (any_before or (latest and reply in seen))
                if moved and not preserving:
                    return _modified(path) if latest else _invalid(path, block)
                rebound = preserving and claude(claims["m"]).preserves and claims["x"] != chain.prefix
                if moved or rebound:
                    if behavior == "error":
                        return _bound(path, block)
                    exchange.dropped.append(_drop(path, "prefix_binding_mismatch"))
                    any_before = True
                    continue
                if latest:
                    seen.setdefault(reply, []).append(path)
                    totals[reply] = claims["n"]
            any_before = True
            chain.follow(block)
    short = next((paths for reply, paths in seen.items() if len(paths) != totals[reply]), None)
    return None if short is None else _modified(short[-1])


def _behavior(options: Options, exchange: Exchange) -> tuple[str, Fault | None]:
    thinking = exchange.body.get("thinking")
    given = thinking.get("block_binding") if is_object(thinking) else None
    if given is None:
        return options.binding, None
    if BINDING_BETA not in betas(exchange):
        return options.binding, Fault(400, "thinking.block_binding: Extra inputs are not permitted")
    return str(given.get("prefix_mismatch_behavior", options.binding)), None


def _claims(ledger: Ledger, block: dict[str, Any]) -> dict[str, Any] | None:
    claims = ledger.open_text(block.get(_FIELD[block["type"]]), prefix=PREFIX)
    wanted = "thinking" if block["type"] == "thinking" else "redacted"
    return claims if claims is not None and claims.get("k") == wanted else None


def _content(block: dict[str, Any]) -> list[Any]:
    return ["thinking", block.get("thinking")] if block["type"] == "thinking" else ["redacted", ""]


def _readable(model: str, issuer: str) -> bool:
    mine, theirs = claude(model), claude(issuer)
    if family(model) == issuer or not (mine.preserves or theirs.preserves):
        return True
    return issuer in mine.reads


def _drop(path: str, reason: str) -> dict[str, Any]:
    return {"type": "thinking_dropped", "path": path, "reason": reason}


def _modified(path: str) -> Fault:
    return Fault(
        400,
        f"{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
        "These blocks must remain as they were in the original response.",
    )


def _invalid(path: str, block: dict[str, Any]) -> Fault:
    return Fault(400, f"{path}: Invalid `{_FIELD[block['type']]}` in `{block['type']}` block")


def _bound(path: str, block: dict[str, Any]) -> Fault:
    return Fault(
        400,
        f"{path}: Invalid `{_FIELD[block['type']]}` in `{block['type']}` block. The block is bound to a different "
        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
        '"drop_block".',
    )
