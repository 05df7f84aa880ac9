"""Constraints on generated text, as the runtime takes them.

JSON schemas become llguidance grammars (https://github.com/guidance-ai/llguidance, docs/syntax.md and
docs/json_schema.md), the form that the runtime's own schema conversion makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pollux_like.canonical import dumps

_NAMED = {"properties", "$defs", "definitions"}
_NESTED = {"items", "prefixItems", "additionalProperties", "anyOf", "oneOf"}

ANSWER = r"root ::= [^{ \n] [^\x00]*"
"""Text that is no JSON object: keeps an answer from imitating the tool calls before it."""


def json_value(schema: dict[str, Any], *, strict: bool, eot_id: int) -> str:
    """JSON text that fits the schema, on one line, ended by the end-of-turn token.

    The explicit end matters: a value that may still grow, like a number, otherwise never stops. Where `strict` is
    false, keywords that the grammar cannot hold are ignored, as JSON Schema does with unknown ones.
    """
    layout = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": not strict}
    return f"%llguidance {{}}\nstart: value <[{eot_id}]>\nvalue: %json {dumps({**close(schema), 'x-guidance': layout})}"


def close(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `additionalProperties: false` in every object that lists properties and says nothing of others.

    A value of the closed schema fits the open one; without it a small model adds properties without end. A schema
    with `allOf` stays as it is, since each part must admit the other's properties.
    """
    if '"allOf":' in dumps(schema):
        return schema
    closed: dict[str, Any] = _close(schema)
    return closed


def _close(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_close(item) for item in cast("Sequence[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    closed: dict[str, Any] = {**schema}
    for key in _NAMED & closed.keys():
        closed[key] = {name: _close(child) for name, child in closed[key].items()}
    for key in _NESTED & closed.keys():
        closed[key] = _close(closed[key])
    if "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed
