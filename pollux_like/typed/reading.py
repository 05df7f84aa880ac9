"""Readers of a schema's values: each takes a value and its path, and raises SchemaError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, cast

from pollux_like import canonical
from pollux_like.errors import ConfigurationError, SchemaError
from pollux_like.typed import patterns

MAX_TEXT_CHARS = 500
"""Of an option or a description."""


def mapping(value: object, path: str) -> dict[str, Any]:
    """A JSON object, copied."""
    if not isinstance(value, Mapping):
        raise bad(path, "is no object", "Give an object")
    given = dict(cast("Mapping[Any, Any]", value))
    try:
        canonical.check_value(given, path=path)
    except canonical.JSONPolicyError:
        raise bad(path, "holds what JSON cannot carry", "Use plain JSON values") from None
    return given


def pattern(value: object, path: str) -> str | None:
    """A regular expression that compiles, or None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise bad(path, "is no text", "Give a regular expression")
    try:
        patterns.compiled(value)
    except ConfigurationError as error:
        raise bad(path, error.message, error.hint) from None
    return value


def items(value: object, path: str) -> list[Any]:
    """A list; empty for None."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise bad(path, "is no list", "Give a list")
    return list(cast("Iterable[Any]", value))


def text(given: Mapping[str, Any], key: str, path: str) -> str:
    """Short text; empty where absent."""
    value = given.get(key, "")
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise bad(f"{path}.{key}", "is no short text", f"Give at most {MAX_TEXT_CHARS} characters")
    return value


def flag(given: Mapping[str, Any], key: str, path: str) -> bool:
    """A bool; false where absent."""
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise bad(f"{path}.{key}", "is no bool", "Use true or false")
    return value


def whole(given: Mapping[str, Any], key: str, path: str, default: int, most: int) -> int:
    """A whole number from 1 to `most`."""
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise bad(f"{path}.{key}", "is out of bounds", f"Use a whole number from 1 to {most}")
    return value


def is_day(value: str) -> bool:
    """Whether it is a date as YYYY-MM-DD, the form in which dates are compared as text."""
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def one_of(value: object, path: str, allowed: Iterable[str]) -> str | None:
    """A word out of a closed set, or None."""
    if value is None:
        return None
    if not isinstance(value, str) or value not in allowed:
        raise bad(path, "is unknown", f"Use one of: {', '.join(allowed)}")
    return value


def bad(path: str, what: str, hint: str) -> SchemaError:
    """The error of a place."""
    return SchemaError(f"{path} {what}", hint=hint, path=path)


def call_name(value: object, path: str) -> str:
    """The name or URL of an entry of the allow-list."""
    if not isinstance(value, str) or not value or len(value) > 2000 or not value.isprintable():
        raise bad(path, "names no function and no URL", "Give the name or URL of an entry of the allow-list")
    return value
