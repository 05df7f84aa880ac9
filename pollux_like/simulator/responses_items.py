"""Input items of OpenAI Responses: shape, pairing of calls and outputs, and the state that items are bound to."""

from __future__ import annotations

from collections.abc import Sequence
from mimetypes import guess_type
from typing import Any

from pollux_like.simulator import accepts
from pollux_like.simulator.ledger import Ledger, digest, family
from pollux_like.simulator.models import gpt
from pollux_like.simulator.shapes import as_array, as_object, as_objects, is_array
from pollux_like.simulator.wire import Exchange, Fault

BLOB = b"\x80\x00\x00\x00\x00"
_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_OUTPUTS = {output: call for call, output in _CALLS.items()}
_ROLES = ("assistant", "system", "developer", "user")
_USER_PARTS = ("input_text", "input_image", "input_file", "input_audio")


def bad(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Fault:
    """A fault in the words of OpenAI's APIs."""
    return Fault(status, message, code=code, param=param)


def kind_of(item: dict[str, Any]) -> str:
    """An item's type; a message may leave it out, and so may a reference that is nothing but an id."""
    given = item.get("type")
    if given is None:
        return "message" if "role" in item else "item_reference" if set(item) <= {"id", "type"} else ""
    return str(given)


def as_items(given: Any) -> list[dict[str, Any]]:
    """The `input` as items; a plain string is one user message."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return as_objects(given)


def check_shape(n: int, item: dict[str, Any], *, last: bool) -> Fault | None:
    """One item by itself: known keys, id prefix and length, texts where texts belong (rules O7, O8, O10, O11)."""
    kind, path = kind_of(item), f"input[{n}]"
    known = accepts.RESPONSES_ITEMS.get(kind)
    if known is None and kind not in accepts.RESPONSES_OTHER_ITEMS:
        return bad(f"Invalid value: '{kind}'. It is not an item type.", path, "invalid_value")
    for key in item if known is not None else ():
        if key not in (known or ()):
            return bad(f"Unknown parameter: '{path}.{key}'.", f"{path}.{key}", "unknown_parameter")
    made, prefix = item.get("id"), accepts.ITEM_IDS.get(kind)
    if prefix and isinstance(made, str) and not made.startswith(prefix):
        text = f"Invalid '{path}.id': '{made}'. Expected an ID that begins with '{prefix}'."
        return bad(text, f"{path}.id", "invalid_value")
    for key in ("id", "call_id"):
        value = item.get(key)
        if isinstance(value, str) and len(value) > 64:
            return bad(
                f"Invalid '{path}.{key}': string too long. Expected a string with maximum length 64, but got a string "
                f"with length {len(value)} instead.",
                f"{path}.{key}",
                "string_above_max_length",
            )
    if kind == "compaction_trigger" and not last:
        return bad("A compaction_trigger must be the last input item.", path, "invalid_value")
    if kind == "message":
        return _message(path, item)
    if kind == "reasoning":
        return _reasoning(path, item)
    wanted: tuple[str, ...] = ()
    if kind in _CALLS:
        wanted = ("call_id", "name", "arguments" if kind == "function_call" else "input")
    elif kind in _OUTPUTS:
        wanted = ("call_id", "output")
    for key in wanted:
        if item.get(key) is None:
            text = f"Missing required parameter: '{path}.{key}'."
            return bad(text, f"{path}.{key}", "missing_required_parameter")
        if not isinstance(item[key], str) and key != "output":
            text = f"Invalid type for '{path}.{key}': expected a string, but got an object instead."
            return bad(text, f"{path}.{key}", "invalid_type")
    return _output(path, item) if kind in _OUTPUTS else None


def _message(path: str, item: dict[str, Any]) -> Fault | None:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        text = f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        return bad(text, f"{path}.role", "invalid_value")
    if content is None:
        return bad(f"Missing required parameter: '{path}.content'.", f"{path}.content", "missing_required_parameter")
    if isinstance(content, str):
        return None
    allowed = ("output_text", "refusal") if role == "assistant" else _USER_PARTS
    for m, part in enumerate(content):
        if part.get("type") not in allowed:
            names = ", ".join(f"'{name}'" for name in allowed[:-1])
            return bad(
                f"Invalid value: '{part.get('type')}'. Supported values are: {names} and '{allowed[-1]}'.",
                f"{path}.content[{m}]",
                "invalid_value",
            )
        if _unreadable(part):
            return _unsupported()
    return None


def _reasoning(path: str, item: dict[str, Any]) -> Fault | None:
    if not isinstance(item.get("summary"), list):
        return bad(f"Missing required parameter: '{path}.summary'.", f"{path}.summary", "missing_required_parameter")
    content = as_array(item.get("content"))
    if content:
        return bad(
            f"Invalid '{path}.content': array too long. Expected an array with maximum length 0, but got an array with "
            f"length {len(content)} instead.",
            f"{path}.content",
            "array_above_max_length",
        )
    return None


def _output(path: str, item: dict[str, Any]) -> Fault | None:
    for part in item["output"] if is_array(item["output"]) else ():
        if part.get("type") not in ("input_text", "input_image", "input_file"):
            text = f"Invalid value: '{part.get('type')}'."
            return bad(f"{text} Supported values are: 'input_text', 'input_image', and 'input_file'.", f"{path}.output")
        if _unreadable(part):
            return _unsupported()
    return None


def _unreadable(part: dict[str, Any]) -> bool:
    """A file of sound or film, by its data URI or the ending of its URL."""
    data = str(part.get("file_data") or "")
    kind = data[5:] if data.startswith("data:") else guess_type(str(part.get("file_url") or ""))[0] or ""
    return part.get("type") == "input_file" and kind.startswith(("audio/", "video/"))


def _unsupported() -> Fault:
    text = "The file type you uploaded is not supported. Please try again with a pdf"
    return bad(text, "input", "unsupported_file")


def check_pairs(before: Sequence[dict[str, Any]], given: Sequence[dict[str, Any]]) -> Fault | None:
    """Every output has its call before it, every call its output (O1, O2); `before` is what the server holds."""
    calls: dict[str, str] = {}
    answered: set[str] = set()
    for item in (*before, *given):
        kind, made = kind_of(item), item.get("call_id")
        if kind in _CALLS and made is not None:
            calls[made] = kind
        elif kind in _OUTPUTS and made is not None:
            if made not in calls:
                return bad(f"No tool call found for function call output with call_id {made}.", "input")
            answered.add(made)
    missing = next((made for made in calls if made not in answered), None)
    return None if missing is None else bad(f"No tool output found for function call {missing}.", "input")


def check_state(ledger: Ledger, exchange: Exchange, given: list[dict[str, Any]]) -> Fault | None:
    """What items are bound to: blobs (O9), stored items (O4), followers and partners (O5, O6), prefixes (O12)."""
    for n, item in enumerate(given):
        kind, made = kind_of(item), item.get("id")
        issued = ledger.items.get(made) if isinstance(made, str) else None
        blob = item.get("encrypted_content")
        if kind in ("reasoning", "compaction") and blob is not None:
            fault = _blob(ledger, kind, made, blob)
            if fault is not None:
                return fault
        bare = kind == "item_reference" or (kind == "reasoning" and made is not None and blob is None)
        if bare and (issued is None or not issued.stored):
            return bad(
                f"Item with id '{made}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                "input",
                status=404,
            )
        if issued is None or not issued.stored:
            continue
        if kind == "reasoning" and not _follows(given[n + 1] if n + 1 < len(given) else None, issued.follower):
            return bad(f"Item '{made}' of type 'reasoning' was provided without its required following item.", "input")
        partner = issued.reasoning
        if kind in ("function_call", "custom_tool_call", "message") and partner is not None:
            held = (*exchange.context[: len(exchange.context) - len(given)], *given[:n])
            if all(other.get("id") != partner for other in held):
                return bad(
                    f"Item '{made}' of type '{kind}' was provided without its required 'reasoning' item: '{partner}'.",
                    "input",
                )
    return None


def _blob(ledger: Ledger, kind: str, made: Any, blob: Any) -> Fault | None:
    claims = ledger.open_text(blob, prefix=BLOB, urlsafe=True)
    if claims is None or claims["k"] != kind:
        reason = "Encrypted content could not be decrypted or parsed."
    elif made is not None and made != claims.get("i", made):
        reason = "Encrypted content item_id did not match the target item id."
    else:
        return None
    text = f"The encrypted content for item {made or 'without id'} could not be verified. Reason: {reason}"
    return bad(text, code="invalid_encrypted_content")


def _follows(item: dict[str, Any] | None, original: dict[str, Any] | None) -> bool:
    """Whether the item is the one that followed: by its id, or without an id by what it says."""
    if item is None or original is None:
        return False
    if item.get("id") is not None or kind_of(item) == "item_reference":
        return bool(item.get("id") == original["id"])
    return normal(item) == normal(original)


def normal(item: dict[str, Any]) -> dict[str, Any]:
    """An item by what it says: no ids, status or nulls, and a text alone the same as a list of one text."""
    kept = {key: value for key, value in item.items() if key not in ("id", "status") and value is not None}
    kept["type"] = kind_of(item)
    if kept["type"] == "message":
        content = kept.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or []
        kept["content"] = [
            {key: value for key, value in part.items() if key not in ("type", "annotations", "logprobs")}
            for part in parts
        ]
        kept.pop("phase", None)
    return kept


def prefix_before(exchange: Exchange, context: Sequence[dict[str, Any]], more: Sequence[dict[str, Any]]) -> str:
    """Identity of all that stands before a reasoning item: tools, text format, instructions, earlier items.

    Reasoning items do not count, and a compaction item starts the input anew (guide: keep-prefix-unchanged).
    """
    items = [*context, *more]
    start = max((n for n, item in enumerate(items) if kind_of(item) == "compaction"), default=0)
    said = [normal(item) for item in items[start:] if kind_of(item) != "reasoning"]
    body = exchange.body
    head: list[Any] = [as_objects(body.get("tools")), as_object(body.get("text")).get("format")]
    if gpt(exchange.model).binds_instructions:
        head.append(body.get("instructions"))
    return digest([head, said])


def drop_unbound(ledger: Ledger, exchange: Exchange) -> None:
    """Note the replayed reasoning that the API takes out of the context, without an error (O12)."""
    if not gpt(exchange.model).binds:
        return
    for n, item in enumerate(exchange.context):
        claims = ledger.open_text(item.get("encrypted_content"), prefix=BLOB, urlsafe=True)
        if kind_of(item) != "reasoning" or claims is None or "x" not in claims:
            continue
        if claims["m"] != family(exchange.model):
            reason = "model_mismatch"
        elif claims["x"] != prefix_before(exchange, exchange.context[:n], ()):
            reason = "prefix_mismatch"
        else:
            continue
        removed = {"id": item.get("id") or claims["i"], "type": "reasoning", "action": "removed", "reason": reason}
        exchange.dropped.append(removed)
