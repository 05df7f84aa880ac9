"""Gemini's refusals: google.rpc.Status bodies as errors of our tree. Pure; imports no SDK.

Where Google differs (ai.google.dev/gemini-api/docs/troubleshooting, and recorded answers): a wrong key is a 400 with
the reason API_KEY_INVALID, `code` is the HTTP status, the kind of error is `status`, the wait is in
`details[].retryDelay` and in no header, and some gateways put the body into an array of one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from pollux_like import api_errors
from pollux_like.errors import APIError, AuthenticationError

_BAD_KEY = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"})
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def refusal(body: Any, *, status: int | None, headers: Mapping[str, str], secret: str | None) -> APIError:
    """The error for a body, as text or parsed. `status` None reads it from the body: an error inside a stream."""
    fields = _inner(body)
    details = api_errors.objects(fields, "details")
    reason = next((word for one in details if (word := api_errors.word(one, "reason"))), None)
    number = fields.get("code")
    if status is None:
        status = number if isinstance(number, int) and 400 <= number < 600 else 500
    said: Any = {"error": {"message": fields.get("message"), "code": reason, "type": fields.get("status")}}
    error = api_errors.api_error("gemini", said if fields else str(body), status=status, headers=headers, secret=secret)
    if reason in _BAD_KEY:
        return AuthenticationError(
            error.message, hint="Check the key, and what it is allowed to do", provider="gemini", status=status,
            code=reason, type=error.type,
        )  # fmt: skip
    wait = next((wait for one in details if (wait := _delay(one)) is not None), None)
    if wait is not None and error.retry_after_s is None:
        error.retry_after_s = wait
    return error


def holds_error(value: Any) -> bool:
    """Whether a parsed body, or the first element of an array, is a refusal."""
    return bool(_inner(value))


def _delay(detail: dict[str, Any]) -> float | None:
    """`retryDelay` of a google.rpc.RetryInfo, a duration such as "34.07s"."""
    found = _DELAY.fullmatch(api_errors.word(detail, "retryDelay") or "")
    seconds = float(found[1]) if found else math.inf
    return seconds if math.isfinite(seconds) else None


def _inner(body: Any) -> dict[str, Any]:
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return {}
    if isinstance(body, list) and body:
        body = cast("list[Any]", body)[0]
    return api_errors.member(cast("dict[str, Any]", body), "error") if isinstance(body, dict) else {}
