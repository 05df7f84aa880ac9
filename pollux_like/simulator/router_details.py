"""Structured reasoning of OpenRouter: how each author's models sign or seal it, and what is refused when it comes back.

`reasoning_details` go back whole, in order and unaltered (openrouter.ai/docs, guides/best-practices/reasoning-tokens).
What counts are type, text, summary and seal: recorded requests without `index`, `format` and `id` were accepted. A seal
is over its place and the texts of the whole list. Text that nobody signed is not checked, and neither are entries of
another author's model, of which no answer is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pollux_like.simulator.ledger import Ledger, digest
from pollux_like.simulator.shapes import as_array, as_objects
from pollux_like.testing.script import Redacted, Think

PREFIX = b"\x12\x8b"
_TEXT, _SUMMARY, _SEALED = "reasoning.text", "reasoning.summary", "reasoning.encrypted"


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a model: the provider behind the router, the format of its details, and its own finish reasons.

    `signs`: how reasoning is sealed: by a signature on the text, by an entry beside the text, or not at all.
    """

    provider: str
    format: str = "unknown"
    signs: str = "no"
    stops: Mapping[str, str] = field(default_factory=dict[str, str])


AUTHORS = {
    "anthropic": Author(
        "Anthropic", "anthropic-claude-v1", "text",
        {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"},
    ),
    "openai": Author(
        "OpenAI", "openai-responses-v1", "summary",
        {"stop": "completed", "tool_calls": "completed", "length": "max_output_tokens"},
    ),
    "google": Author(
        "Google", "google-gemini-v1", "beside", {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}
    ),
    "x-ai": Author("xAI", "xai-responses-v1", "summary", {"stop": "completed", "tool_calls": "completed"}),
}  # fmt: skip


def author_of(model: str) -> Author:
    """By the first half of `author/model`; an unknown one signs nothing."""
    name = model.partition("/")[0]
    return AUTHORS.get(name, Author(name.title()))


def issued(
    ledger: Ledger, author: Author, thoughts: Sequence[Think | Redacted], call_id: str | None
) -> list[dict[str, Any]]:
    """The details of one message. `call_id` is its first call: Google's seal names it."""
    entries: list[dict[str, Any]] = []
    for part in thoughts:
        text = part.text if isinstance(part, Think) else None
        if author.signs == "text":
            entries.append({"type": _SEALED} if text is None else {"type": _TEXT, "text": text})
            continue
        if text:
            kind = {"type": _SUMMARY, "summary": text} if author.signs == "summary" else {"type": _TEXT, "text": text}
            entries.append(kind)
        if author.signs == "summary":
            entries.append({"type": _SEALED, "id": f"rs_{ledger.hex(48)}"})
    if author.signs == "beside" and thoughts:
        entries.append({"type": _SEALED, **({"id": call_id} if call_id else {})})
    for index, entry in enumerate(entries):
        entry |= {"format": author.format, "index": index}
    whole = _whole(entries)
    for index, entry in enumerate(entries):
        claims = {"k": "details", "a": author.format, "d": whole, "n": index}
        if entry["type"] == _SEALED:
            entry["data"] = ledger.seal_text(claims, prefix=PREFIX, pad=40)
        elif author.signs == "text":
            entry["signature"] = ledger.seal_text(claims, prefix=PREFIX, pad=40)
    return entries


def adopt_details(ledger: Ledger, model: str, entries: list[dict[str, Any]]) -> None:
    """Take the seals of a message that another server sent as issued here."""
    whole = _whole(entries)
    for index, entry in enumerate(entries):
        seal = _seal(entry)
        if seal is not None:
            ledger.adopt(seal, {"k": "details", "a": author_of(model).format, "d": whole, "n": index})


def check_details(ledger: Ledger, model: str, messages: list[dict[str, Any]], *, reasons: bool) -> str | None:
    """What the provider behind would say of the reasoning that comes back, or None.

    Of the messages since the last one of the user, those with calls that were issued with reasoning must have it.
    """
    author = author_of(model)
    talk = [one for one in messages if one.get("role") not in ("system", "developer")]
    opened = max((n for n, one in enumerate(talk) if one.get("role") == "user"), default=-1)
    for n, message in enumerate(talk):
        if message.get("role") != "assistant":
            continue
        details = as_objects(message.get("reasoning_details"))
        wrong = _altered(ledger, author, n, details)
        if wrong is not None:
            return wrong
        calls = as_objects(message.get("tool_calls"))
        if n > opened and not details and any(call.get("id") in ledger.reasoned for call in calls):
            wrong = _missing(author, n, calls, reasons=reasons)
            if wrong is not None:
                return wrong
    return None


def _seal(entry: dict[str, Any]) -> str | None:
    seal = entry.get("signature") or entry.get("data")
    return seal if isinstance(seal, str) else None


def _whole(entries: list[dict[str, Any]]) -> str:
    return digest([[entry.get("type"), entry.get("text") or entry.get("summary") or ""] for entry in entries])


def _altered(ledger: Ledger, author: Author, n: int, entries: list[dict[str, Any]]) -> str | None:
    whole = _whole(entries)
    for index, entry in enumerate(entries):
        seal = _seal(entry)
        if seal is None:
            if author.signs == "text":
                return f"messages.{n}.content.{index}.thinking.signature: Field required"
            continue
        claims = ledger.open_text(seal, prefix=PREFIX)
        if claims is None or claims.get("k") != "details":
            return _forged(author, n, index, entry)
        if claims["a"] != author.format:
            return None
        if (claims["d"], claims["n"]) != (whole, index):
            return _changed(author, n, index)
    return None


def _forged(author: Author, n: int, index: int, entry: dict[str, Any]) -> str:
    if author.signs == "text":
        place = "`data` in `redacted_thinking`" if entry.get("type") == _SEALED else "`signature` in `thinking`"
        return f"messages.{n}.content.{index}: Invalid {place} block"
    if author.signs == "beside":
        return "Corrupted thought signature."
    return (
        f"The encrypted content for item {entry.get('id')} could not be verified. Reason: Encrypted content could not "
        "be decrypted or parsed."
    )


def _changed(author: Author, n: int, index: int) -> str:
    if author.signs == "text":
        return (
            f"messages.{n}.content.{index}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
            "cannot be modified. These blocks must remain as they were in the original response."
        )
    return f"messages.{n}: reasoning_details must come back whole, in order and unaltered."


def _missing(author: Author, n: int, calls: list[dict[str, Any]], *, reasons: bool) -> str | None:
    if author.signs == "text" and reasons:
        return (
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks)."
        )
    if author.signs == "beside":
        name = calls[0].get("function", {}).get("name")
        return (
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
            f"function call `default_api:{name}` , position {n + 1}. Please refer to "
            "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
        )
    return None


def remember_calls(ledger: Ledger, message: dict[str, Any]) -> None:
    """Which calls came with reasoning, to ask for it while their round is open."""
    ids = {str(call.get("id")) for call in as_array(message.get("tool_calls"))}
    if message.get("reasoning_details"):
        ledger.reasoned |= ids
    else:
        ledger.reasoned -= ids
