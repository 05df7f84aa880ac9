"""The Anthropic dialect: `input_schema` with and without `strict`, and what strict tools cost a request.

Sources: platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations", and the SDK's own
`lib/_parse/_transform.py` (anthropic 2.14.0); the limits over a request are the texts of the API's 400 answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pollux_like.schemas.modern import modern
from pollux_like.schemas.root import merged_root, object_root, without
from pollux_like.schemas.strict import StrictWriter
from pollux_like.schemas.subset import NotStrict, Rules
from pollux_like.schemas.walker import Schema, find_cycle, nodes

MAX_STRICT_TOOLS: Final = 20
MAX_OPTIONAL_PARAMS: Final = 24
MAX_UNION_PARAMS: Final = 16
"""The API's caps over all strict tools of one request together: "Too many strict tools (21)", "too many optional
parameters (25) … (limit: 24)", "(limit: 16 parameters with unions)"."""

FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

ROOT_REFUSES: Final = ("anyOf", "oneOf", "allOf")
"""400 "input_schema does not support oneOf, allOf, or anyOf at the top level"."""

_NO_PATTERN: Final = re.compile(r"\(\?|\\[bB1-9pPkK]")
"""Look-around, named groups, word boundaries, back-references, Unicode classes: patterns strict mode does not take."""


def _keeps(keyword: str, value: Any) -> bool:
    if keyword == "format":
        return value in FORMATS
    if keyword == "minItems":
        return value in (0, 1)
    return keyword == "pattern" and not _NO_PATTERN.search(value)


RULES: Final = Rules(all_required=False, inline_refs=True, keeps_default=True, keeps=_keeps)


@dataclass(frozen=True, slots=True)
class StrictCosts:
    """What one strict tool takes of the limits over a request, in parameters."""

    optional: int
    unions: int


def strict(root: Schema) -> tuple[Schema, list[tuple[str, str]]]:
    """The schema for `strict: true`, with losses as (JSON pointer, clause). Raises NotStrict."""
    root, spelled = modern(root)
    shaped, losses = object_root(root)
    shaped = merged_root(shaped)
    for key in (*ROOT_REFUSES, "enum", "const", "not"):
        if key in shaped:
            raise NotStrict(f"/{key}", f"is a {key!r} at the root")
    cycle = find_cycle(shaped)
    if cycle:
        raise NotStrict(cycle[0], "is recursive")
    writer = StrictWriter(shaped, RULES)
    schema = writer.write()
    return schema, spelled + losses + writer.losses


def loose(root: Schema) -> tuple[Schema, list[tuple[str, str]]]:
    """The schema without `strict`: as it is, with an object root without unions, and in draft 2020-12."""
    shaped, losses = object_root(root)
    shaped, more = without(merged_root(shaped), ROOT_REFUSES)
    schema, spelled = modern(shaped)
    return schema, losses + more + spelled


def count_strict_costs(schema: Mapping[str, Any]) -> StrictCosts:
    """What a strict schema (`Normalised.schema` with `strict` True) takes of MAX_OPTIONAL_PARAMS and MAX_UNION_PARAMS.

    Counts every property that is not required, at every depth and in definitions, each once; and every schema with
    `anyOf` or a list of types. An upper bound: the API's own way of counting nested ones is not documented.
    """
    optional = unions = 0
    for _, node in nodes(dict(schema)):
        optional += len(set(node.get("properties", ())) - set(node.get("required", ())))
        unions += "anyOf" in node or isinstance(node.get("type"), list)
    return StrictCosts(optional=optional, unions=unions)
