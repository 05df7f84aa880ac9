"""From a provider's refusal to our error tree: by status and the provider's own codes, never by guessing at prose."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any, cast

from pollux_like import canonical
from pollux_like.errors import APIError, AuthenticationError, ContextOverflowError, ProviderTimeoutError, RateLimitError
from pollux_like.provider import ServerStateLost

MIN_SECRET_CHARS = 7
"""Keys from this length on are masked in errors."""
MAX_MESSAGE_CHARS = 300
"""How much of a provider's message is passed on; longer ones begin to quote the request."""
MAX_WORD_CHARS = 80
"""Longest code or type of a provider."""

_RETRYABLE = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_NO_QUOTA = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_error", "billing_hard_limit_reached"})
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_OVERFLOW_TEXT = (
    r"^prompt is too long|maximum context length|input token count .* exceeds the maximum|exceeds? the context window"
    r"|exceeded model token limit|Range of input length should be \["  # Moonshot; Model Studio (Qwen)
)
_LOST_CODES = frozenset({"previous_response_not_found"})
_STATUS_OF = {
    "overloaded_error": 529, "rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
    "api_error": 500, "server_error": 500, "timeout_error": 504, "authentication_error": 401, "permission_error": 403,
    "not_found_error": 404, "invalid_request_error": 400, "request_too_large": 413, "billing_error": 402,
}  # fmt: skip
"""Statuses for errors that arrive inside a 200 (mid-stream events), by the provider's type or code."""


def api_error(
    provider: str, body: str | Mapping[str, Any], *, status: int | None, headers: Mapping[str, str], secret: str | None
) -> APIError:
    """The error for a refusal. `body` is the JSON envelope `{"error": {...}}`, its inner object, or any text.

    `status` 200 stands for an error inside a successful response: its real status is read from the error's type.
    `secret` is cut out of the message.
    """
    fields = _inner(body)
    message = _message(fields, body)
    code, kind = _word(fields.get("code")), _word(fields.get("type"))
    if status is None or status < 400:
        status = _STATUS_OF.get(code or "", _STATUS_OF.get(kind or "", _number(fields.get("code"))))
    overflows = code in _OVERFLOW_CODES or kind in _OVERFLOW_CODES or re.search(_OVERFLOW_TEXT, message)
    no_quota = code in _NO_QUOTA or kind in _NO_QUOTA
    lost = code in _LOST_CODES
    message, code, kind = masked(message, secret), code and masked(code, secret), kind and masked(kind, secret)
    details: dict[str, Any] = {
        "provider": provider,
        "status": status,
        "code": code,
        "type": kind,
        "request_id": headers.get("x-request-id") or headers.get("request-id"),
    }
    said = f"{provider} answered {status}" + (f" ({code or kind})" if code or kind else "") + f": {message}"
    if lost:
        return ServerStateLost(said, hint="Raise max_attempts, so that the whole conversation can be sent", **details)
    if status in (401, 403):
        return AuthenticationError(said, hint="Check the key, and what it is allowed to do", **details)
    if status in (400, 413) and overflows:
        return ContextOverflowError(said, hint="Shorten the history, or choose a model with a larger window", **details)
    details["retry_after_s"] = retry_after(headers)
    details["retryable"] = _retryable(status, headers) and not no_quota
    if status == 429:
        hint = "Add quota or credit" if no_quota else "Wait, then try again"
        return RateLimitError(said, hint=hint, **details)
    if status in (408, 504):
        return ProviderTimeoutError(said, hint="Try again", **details)
    if details["retryable"]:
        return APIError(said, hint="Try again later", **details)
    return APIError(said, hint="Mend the request; the same one will be refused again", **details)


def decoded(provider: str, text: str) -> dict[str, Any]:
    """The JSON object that a provider sent. Raises APIError where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise unreadable(provider)
    return cast("dict[str, Any]", value)


def member(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A member that is an object; `{}` where it is absent, null or something else."""
    value = fields.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects(fields: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A member that is a list of objects; `[]` where it is absent or null, other elements left out."""
    value = fields.get(key)
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]


def word(fields: Mapping[str, Any], key: str) -> str | None:
    """A member that is text with something in it, fit to be saved; None where it is anything else."""
    value = fields.get(key)
    return canonical.repair_text(value) if isinstance(value, str) and value.strip() else None


def unreadable(provider: str) -> APIError:
    """What came is not in the form that the provider documents."""
    return APIError(
        f"{provider} sent something that cannot be read", hint="Try again", provider=provider, retryable=True
    )


def _inner(body: str | Mapping[str, Any]) -> Mapping[str, Any]:
    value: Any = body
    if isinstance(body, str):
        try:
            value = canonical.loads(body)
        except canonical.JSONPolicyError:
            return {}
    for key in ("response", "error"):
        if isinstance(value, Mapping) and isinstance(cast("Mapping[str, Any]", value).get(key), Mapping):
            value = cast("Mapping[str, Any]", value)[key]
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def masked(text: str, secret: str | None) -> str:
    """The text without the key, and without the beginning of it that a cut left at the end. A key shorter than
    MIN_SECRET_CHARS is a placeholder ("local", "EMPTY"): cutting it out would maim the message."""
    if secret is None or len(secret) < MIN_SECRET_CHARS:
        return text
    text = text.replace(secret, "***")
    said = text.removesuffix("…")
    half = next((n for n in range(len(secret) - 1, MIN_SECRET_CHARS - 1, -1) if said.endswith(secret[:n])), 0)
    return f"{said[:-half]}***{text[len(said) :]}" if half else text


def _word(value: object) -> str | None:
    """A code or type. What is longer is prose."""
    return canonical.repair_text(value) if isinstance(value, str) and 0 < len(value) <= MAX_WORD_CHARS else None


def _number(code: object) -> int:
    """A status that stands where a code would: as a number or its digits. 500 for everything else."""
    text = str(code) if isinstance(code, (int, str)) and not isinstance(code, bool) else ""
    return int(text) if re.fullmatch(r"[45]\d\d", text) else 500


def _message(fields: Mapping[str, Any], body: str | Mapping[str, Any]) -> str:
    message = fields.get("message")
    if not isinstance(message, str) or not message:
        message = (
            "an error without a message" if not isinstance(body, str) or not body.strip() else "an unreadable error"
        )
    message = canonical.repair_text(" ".join(message.split()))
    return message if len(message) <= MAX_MESSAGE_CHARS else message[:MAX_MESSAGE_CHARS] + "…"


def _retryable(status: int, headers: Mapping[str, str]) -> bool:
    asked = headers.get("x-should-retry")  # OpenAI and Anthropic say it themselves at times
    if asked in ("true", "false"):
        return asked == "true"
    return status in _RETRYABLE


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (seconds or HTTP date, RFC 9110 section 10.2.3)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        import email.utils  # brings sockets, calendars and charsets, and hardly a provider answers with a date

        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(date.timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None
