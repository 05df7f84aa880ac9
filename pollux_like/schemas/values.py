"""JSON values and the types that JSON Schema gives them."""

from __future__ import annotations

from typing import Any, Final

from pollux_like.schemas.walker import is_dict, is_list

TYPES: Final = ("boolean", "integer", "number", "string", "array", "object", "null")

_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def type_of(value: Any) -> str:
    """The type's name; a float is a "number" even where it is whole."""
    return _KINDS[type(value)]


def is_of(value: Any, name: str) -> bool:
    """Whether the value is of the type that is named so; 1.0 is an "integer" too (JSON Schema core, 4.2.3)."""
    kind = type_of(value)
    if kind == "number":
        return name == "number" or (name == "integer" and float(value).is_integer())
    return kind == name or (kind == "integer" and name == "number")


def same(one: Any, two: Any) -> bool:
    """JSON equality: true is not 1, and 1 is 1.0."""
    if is_list(one) and is_list(two):
        return len(one) == len(two) and all(map(same, one, two))
    if is_dict(one) and is_dict(two):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    return isinstance(one, bool) == isinstance(two, bool) and one == two
