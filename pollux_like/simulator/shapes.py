"""Shapes: JSON of unknown shape, taken as what it should be."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def as_object(value: Any) -> dict[str, Any]:
    """The object, or an empty one where there is none."""
    return value if is_object(value) else {}


def as_array(value: Any) -> list[Any]:
    """The array, or an empty one where there is none."""
    return value if is_array(value) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of an array."""
    return [child for child in as_array(value) if is_object(child)]
