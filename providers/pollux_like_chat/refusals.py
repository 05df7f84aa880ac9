"""Refusals that a router passes on: its own words give way to those of the provider behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pollux_like import api_errors, canonical

_EMPTY_WORDS = "Provider returned error"
"""OpenRouter's message for every refusal of a provider behind it; what that one said is in `metadata.raw`."""


def told(body: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """An error envelope whose message says what was wrong; any other body as it is. Nothing else of `raw` is taken."""
    envelope = _decoded(body) if isinstance(body, str) else body
    if not isinstance(envelope, Mapping):
        return body
    fields = cast("Mapping[str, Any]", envelope)
    error = api_errors.member(fields, "error")
    if error.get("message") != _EMPTY_WORDS:
        return body
    said = _message(api_errors.member(error, "metadata").get("raw"))
    return {**fields, "error": {**error, "message": said}} if said else body


def _message(raw: object) -> str | None:
    """Plain text, or the message of an envelope: `{"error": {"message"}}`, `{"message"}`, or a list of one of them."""
    value = _decoded(raw) if isinstance(raw, str) else raw
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return api_errors.word(api_errors.member(fields, "error") or fields, "message")
    return raw if isinstance(raw, str) and raw.strip() and value is None else None


def _decoded(text: str) -> object:
    """The JSON value of a text; None where it is none."""
    try:
        return cast("object", canonical.loads(text))
    except canonical.JSONPolicyError:
        return None
