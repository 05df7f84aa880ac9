"""Checks of caller input: each takes a value and the name the caller knows it by, and raises ConfigurationError."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from pollux_like import canonical
from pollux_like.errors import ConfigurationError

T = TypeVar("T")


def kind(value: object) -> str:
    """The type of a value as an error names it."""
    return "None" if value is None else type(value).__name__


def text(value: object, name: str) -> str:
    """A str without lone surrogates; may be empty."""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} is {kind(value)}, not str", hint=f"Give {name} as a str")
    try:
        canonical.check_text(value, path=name)
    except canonical.JSONPolicyError as error:
        raise ConfigurationError(
            str(error), hint='Repair the text first, for example value.encode("utf-8", "replace").decode()'
        ) from None
    return value


def filled(value: object, name: str) -> str:
    """A str that holds more than white space."""
    result = text(value, name)
    if not result or result.isspace():
        raise ConfigurationError(f"{name} is empty", hint=f"Give {name} at least one visible character")
    return result


def key(value: object, name: str) -> str:
    """A key as it can stand in a header: visible ASCII."""
    result = filled(value, name)
    if not result.isascii() or not result.isprintable() or " " in result:
        raise ConfigurationError(
            f"{name} holds characters that no key has", hint="Look for a line break, a blank or a typographic quote"
        )
    return result


def address(value: object, name: str) -> str:
    """An http(s) address without credentials."""
    result = filled(value, name)
    try:
        parts = urlsplit(result)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not result.isprintable() or " " in result:
        raise ConfigurationError(f"{name} is no http(s) address", hint="Write it as https://host or http://host:port")
    if "@" in urlsplit(result).netloc:
        raise ConfigurationError(f"{name} holds credentials", hint="Give the key as api_key")
    return result


def one_of(value: object, name: str, allowed: Iterable[str]) -> str:
    """A str out of a closed set."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        shown = repr(value) if isinstance(value, str) and len(value) < 40 else kind(value)
        raise ConfigurationError(f"{name} is {shown}", hint=f"Use one of: {', '.join(allowed)}")
    return value


def flag(value: object, name: str) -> bool:
    """A bool, and nothing that merely looks like one."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is {kind(value)}, not bool", hint="Use True or False")
    return value


def whole(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """An int (no bool) within bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"{name} is {kind(value)}, not int", hint=f"Give {name} as a whole number")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ConfigurationError(f"{name} is {value}", hint=f"Use a number {bounds}")
    return value


def number(value: object, name: str, *, least: float, most: float) -> float:
    """A finite int or float (no bool) within bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigurationError(f"{name} is {kind(value)}, not a number", hint=f"Give {name} as a number")
    if not math.isfinite(value) or not least <= value <= most:
        raise ConfigurationError(f"{name} is {value}", hint=f"Use a number between {least:g} and {most:g}")
    return value


def sequence(value: object, name: str, item: type[T]) -> tuple[T, ...]:
    """A list or tuple whose items are all of one type; the error names the index."""
    if not isinstance(value, (list, tuple)):
        raise ConfigurationError(f"{name} is {kind(value)}", hint=f"Give {name} as a list or tuple of {item.__name__}")
    for index, element in enumerate(cast("tuple[object, ...]", value)):
        if not isinstance(element, item):
            raise ConfigurationError(
                f"{name}[{index}] is {kind(element)}, not {item.__name__}",
                hint=f"Build it as {item.__name__}(...)",
            )
    return tuple(cast("tuple[T, ...]", value))


def json_object(value: object, name: str) -> dict[str, Any]:
    """A mapping of JSON values, copied deeply: later changes of the caller's own do not reach us."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} is {kind(value)}, not a dict", hint=f"Give {name} as a dict of JSON values")
    plain = dict(cast("Mapping[Any, Any]", value))
    try:
        canonical.check_value(plain, path=name)
    except canonical.JSONPolicyError as error:
        raise ConfigurationError(str(error), hint="Use only what JSON can carry exactly") from None
    return copied_object(plain)


def maybe_object(value: object, name: str) -> dict[str, Any]:
    """The same; `{}` where it is None."""
    return {} if value is None else json_object(value, name)


def json_objects(value: object, name: str) -> list[dict[str, Any]]:
    """A list of mappings of JSON values, copied deeply; `[]` where it is None."""
    given: tuple[object, ...] = () if value is None else sequence(value, name, object)
    return [json_object(item, f"{name}[{index}]") for index, item in enumerate(given)]


def copied_object(value: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of a JSON object that passed the policy."""
    return {key: copied(child) for key, child in value.items()}


def copied(value: Any) -> Any:
    """A deep copy of a JSON value that passed the policy; tuples become lists."""
    if isinstance(value, dict):
        return {key: copied(child) for key, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [copied(child) for child in cast("list[Any]", value)]
    return value
