"""One schema of the corpus and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


@dataclass(frozen=True)
class Case:
    """`strict` says for (openai, anthropic) whether strict mode can hold the schema; `valid` are extra instances."""

    name: str
    schema: Any
    strict: tuple[bool, bool]
    valid: tuple[dict[str, Any], ...] = ()


def object_of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}
