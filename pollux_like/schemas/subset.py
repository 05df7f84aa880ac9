"""What a strict subset of JSON Schema keeps: keywords by what losing one would mean, and the rules of a dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pollux_like.schemas.walker import Schema, rewrite

APPLIES: Final[dict[str, frozenset[str]]] = {
    "string": frozenset(
        {"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"}
    ),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems", "prefixItems", "additionalItems", "contains"}),
    "object": frozenset({"properties", "required", "additionalProperties", "propertyNames", "patternProperties"}),
}
"""The keywords by the type whose values they look at; on other types JSON Schema says they do nothing."""

SHAPING: Final = frozenset(
    {
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties"),
        *("propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems"),
        *("contains", "minContains", "maxContains", "contentSchema", "$dynamicRef", "$recursiveRef"),
    }
)
"""Keywords that no strict mode has and that cannot be given up."""

_HARMLESS: Final[dict[str, tuple[Any, ...]]] = {
    "patternProperties": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "dependencies": ({},),
    "propertyNames": (True, {}),
    "minProperties": (0,),
    "unevaluatedProperties": (False,),  # the object gets closed anyway
    "unevaluatedItems": (True, {}),
    "minContains": (1,),
    "contentSchema": (True, {}),
}

SILENT: Final = frozenset(
    {
        *("$schema", "$comment", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "discriminator", "nullable"),
        *("$defs", "definitions"),
    }
)
"""Keywords that say nothing to a model, or are said in another way."""

NARROWING: Final[frozenset[str]] = (
    APPLIES["string"] | APPLIES["number"] | {"minItems", "maxItems", "uniqueItems"}
) - SHAPING
"""Keywords that only narrow a value whose shape stays."""

STRUCTURE: Final = frozenset(
    {
        *("type", "enum", "const", "$ref", "anyOf", "oneOf", "properties", "required", "additionalProperties"),
        *("items", "prefixItems", "additionalItems", "title", "description"),
    }
)
"""Keywords that the writer itself writes."""


class NotStrict(Exception):
    """The schema means something that the strict subset cannot say; `path` is a JSON pointer."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


@dataclass(frozen=True, slots=True)
class Rules:
    """What one strict mode takes.

    `all_required`: there are no optional properties, so they become nullable. `inline_refs`: a `$ref` with a
    description beside it is written out (only where nothing is recursive); otherwise it becomes a union of one branch.
    `keeps` tells for (keyword, value) whether a narrowing keyword may stay.
    """

    all_required: bool
    inline_refs: bool
    keeps_default: bool
    keeps: Callable[[str, Any], bool]


def shaping(schema: Schema) -> list[str]:
    """The keywords of the schema that make strict mode impossible."""
    return [key for key in sorted(SHAPING & set(schema)) if not _is_harmless(key, schema[key])]


def _is_harmless(key: str, value: Any) -> bool:
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in _HARMLESS.get(key, ()))


def foreign(keywords: set[str], *types: str) -> frozenset[str]:
    """Those of the keywords that look at values of other types only."""
    own = {"number" if name == "integer" else name for name in types}
    return frozenset(key for key in keywords for name in APPLIES if name not in own and key in APPLIES[name])


def with_types(root: Schema) -> tuple[Schema, frozenset[int]]:
    """A schema without a type, whose keywords look at one type only, gets it: so its author reads it.

    Not the parts of an `allOf` nor the branches of a union with a type beside it, which have theirs from there.
    Returns the new root and the ids of the schemas that got a type; both live as long as the root.
    """
    given: set[int] = set()

    def change(node: Schema) -> Schema:
        for key in ("allOf", *(("anyOf", "oneOf") if "type" in node else ())):
            for part in node.get(key, ()):
                if id(part) in given:
                    del part["type"]
                    given.discard(id(part))
        kinds = [name for name, keywords in APPLIES.items() if keywords & set(node)]
        if len(kinds) == 1 and not {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"} & set(node):
            node["type"] = kinds[0]
            given.add(id(node))
        return node

    result = rewrite(root, change)
    assert isinstance(result, dict)
    return result, frozenset(given)
