"""The OpenAI dialect: strict mode (structured outputs) and the form that every function declaration needs.

Sources: developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas"; the same rules in openai-node
`lib/transform` (6.x/7.x); `minLength` and `maxLength` were tried live in pydantic-ai #7315 and #7400.
"""

from __future__ import annotations

from typing import Any, Final

from pollux_like.schemas.modern import modern
from pollux_like.schemas.root import merged_root, object_root, without
from pollux_like.schemas.strict import StrictWriter
from pollux_like.schemas.subset import NotStrict, Rules
from pollux_like.schemas.walker import Schema, nodes

MAX_PROPERTIES: Final = 5_000
MAX_LEVELS: Final = 10
"""Levels of objects and arrays inside each other, the root included; references are not followed."""
MAX_NAME_CHARACTERS: Final = 120_000
"""Property names, definition names, enum values and const values together."""
MAX_ENUM_VALUES: Final = 1_000
MAX_LONG_ENUM: Final = 250
MAX_LONG_ENUM_CHARACTERS: Final = 15_000
"""All values of one string enum that has more than MAX_LONG_ENUM values."""

FORMATS: Final = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])

ROOT_REFUSES: Final = ("anyOf", "oneOf", "allOf", "enum", "const", "not")
"""400 "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level"."""

_KEPT: Final = frozenset(
    {
        *("pattern", "minLength", "maxLength", "minItems", "maxItems"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)


def _keeps(keyword: str, value: Any) -> bool:
    return keyword in _KEPT or (keyword == "format" and value in FORMATS)


RULES: Final = Rules(all_required=True, inline_refs=False, keeps_default=False, keeps=_keeps)


def strict(root: Schema) -> tuple[Schema, list[tuple[str, str]]]:
    """The schema for `strict: true`, with losses as (JSON pointer, clause). Raises NotStrict."""
    root, spelled = modern(root)
    shaped, losses = object_root(root)
    shaped = merged_root(shaped)
    for key in ROOT_REFUSES:
        if key in shaped:
            raise NotStrict(f"/{key}", f"is a {key!r} at the root")
    writer = StrictWriter(shaped, RULES)
    schema = writer.write()
    _check_limits(schema)
    return schema, spelled + losses + writer.losses


def loose(root: Schema) -> tuple[Schema, list[tuple[str, str]]]:
    """The schema for `strict: false`: as it is, save what the API refuses in every function declaration.

    That is: a union at the root; arrays without `items` (400 "array schema missing items"); draft-07 tuples, which
    the API's check against draft 2020-12 refuses; an empty `enum`.
    """
    shaped, losses = object_root(root)
    shaped, more = without(merged_root(shaped), ROOT_REFUSES)
    schema, spelled = modern(shaped, array_items=True)
    return schema, losses + more + spelled


def _check_limits(schema: Schema) -> None:
    properties = characters = values = 0
    for path, node in nodes(schema):
        properties += len(node.get("properties", ()))
        listed = node.get("enum", ())
        values += len(listed)
        texts = [value for value in listed if isinstance(value, str)]
        const = node.get("const")
        characters += sum(map(len, node.get("properties", ()))) + sum(map(len, node.get("$defs", ())))
        characters += sum(map(len, texts)) + (len(const) if isinstance(const, str) else 0)
        if len(listed) > MAX_LONG_ENUM and sum(map(len, texts)) > MAX_LONG_ENUM_CHARACTERS:
            raise NotStrict(path, f"is an enum of more than {MAX_LONG_ENUM_CHARACTERS:,} characters")
    if properties > MAX_PROPERTIES:
        raise NotStrict("", f"has more than {MAX_PROPERTIES:,} properties")
    if values > MAX_ENUM_VALUES:
        raise NotStrict("", f"has more than {MAX_ENUM_VALUES:,} enum values")
    if characters > MAX_NAME_CHARACTERS:
        raise NotStrict("", f"has more than {MAX_NAME_CHARACTERS:,} characters of names and values")
    for path, node in nodes(schema):
        if node.get("type") in ("object", "array") and _levels(path) > MAX_LEVELS:
            raise NotStrict(path, f"is nested deeper than {MAX_LEVELS} levels")


def _levels(path: str) -> int:
    """Objects and arrays on the way to a node: each is left through `properties` + name, or `items`."""
    tokens, levels, at = path.split("/")[1:], 1, 0
    while at < len(tokens):
        if tokens[at] == "items":
            levels, at = levels + 1, at + 1
        else:  # properties + name, anyOf + index, $defs + name
            levels, at = levels + (tokens[at] == "properties"), at + 2
        if tokens[at - 2 : at - 1] == ["$defs"]:
            levels = 1
    return levels
