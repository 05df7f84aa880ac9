"""JSON Schema as it is, for servers that take all of it: only the root is made an object with properties."""

from __future__ import annotations

from pollux_like.schemas.root import object_root
from pollux_like.schemas.walker import Schema


def loose(root: Schema) -> tuple[Schema, list[tuple[str, str]]]:
    """The schema with `type: object` and `properties` at its root; losses are (JSON pointer, clause)."""
    return object_root(root)
