"""Schemas that no target can take are refused where they are declared, naming tool and place."""

from __future__ import annotations

from typing import Any

import pytest
from schemas.corpus import CASES

from pollux_like.canonical import MAX_DEPTH
from pollux_like.errors import ConfigurationError
from pollux_like.schemas import check_schema, clean_arguments, normalise


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return of(a=schema)


def cyclic() -> dict[str, Any]:
    schema = of()
    schema["properties"]["self"] = schema
    return schema


REFUSED: list[tuple[Any, str]] = [
    ("{}", "type str, not a mapping"),
    ([], "type list, not a mapping"),
    (True, "type bool, not a mapping"),
    ({"type": "string"}, "object at its root"),
    ({"type": ["string", "null"]}, "object at its root"),
    ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "object at its root"),
    ({"allOf": [{"type": "object"}, {"type": "string"}]}, "object at its root"),
    ({"$ref": "#/$defs/S", "$defs": {"S": {"type": "string"}}}, "object at its root"),
    ({"enum": ["a"]}, "object at its root"),
    ({"const": 1}, "object at its root"),
    ({"type": "any"}, "/type"),
    (of(a={"type": []}), "/properties/a/type"),
    (of(a={"type": None}), "/properties/a/type"),
    (of(a="string"), "/properties"),
    (of(a=None), "/properties"),
    ({"type": "object", "properties": []}, "/properties"),
    ({"type": "object", "required": True}, "/required"),
    ({"type": "object", "required": [1]}, "/required"),
    (of(a={"enum": "abc"}), "/properties/a/enum"),
    (of(a={"anyOf": []}), "/properties/a/anyOf"),
    (of(a={"anyOf": {"type": "string"}}), "/properties/a/anyOf"),
    (of(a={"items": "string"}), "/properties/a/items"),
    (of(a={"description": 1}), "/properties/a/description"),
    (of(a={"minimum": "1"}), "/properties/a/minimum"),
    (of(a={"exclusiveMinimum": True}), "/properties/a/exclusiveMinimum"),
    (of(a={"minLength": -1}), "/properties/a/minLength"),
    (of(a={"maxItems": 1.5}), "/properties/a/maxItems"),
    (of(a={"additionalProperties": "no"}), "/properties/a/additionalProperties"),
    (of(a={"dependentRequired": {"x": "y"}}), "/properties/a/dependentRequired"),
    (of(a={"$ref": "#/$defs/None"}), "leads nowhere"),
    (of(a={"$ref": "#/type"}), "not a schema"),
    (of(a={"$ref": "#anchor"}), "no schema has this anchor"),
    (of(a={"$ref": "https://example.com/schema.json"}), "outside the schema"),
    (of(a={"$ref": "other.json#/x"}), "outside the schema"),
    (of(a={"$ref": 1}), "/properties/a/$ref"),
    (
        of(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        "only to itself",
    ),
    ({"$ref": "#"}, "only to itself"),
    (of(a={"default": {1, 2}}), "type set"),
    (of(a={"default": float("nan")}), "nan"),
    (of(a={"default": "\ud800"}), "surrogate"),
    (of(a={1: "x"}), "key of type int"),
    ({1: "x"}, "key of type int"),
    (nested(MAX_DEPTH), "nested deeper"),
    (cyclic(), "nested deeper"),
]


@pytest.mark.parametrize(("schema", "text"), REFUSED, ids=range(len(REFUSED)))
def test_refused(schema: Any, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_schema(schema, name="my_tool")
    assert "'my_tool'" in str(caught.value)
    assert text in str(caught.value)
    for dialect in ("openai", "anthropic", "plain"):
        with pytest.raises(ConfigurationError):
            normalise(schema, dialect, strict=True, name="my_tool")
    with pytest.raises(ConfigurationError):
        clean_arguments(schema, {})


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_corpus_passes(case: Any) -> None:
    assert check_schema(case.schema, name=case.name) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    "schema",
    [
        of(a={"default": {"type": "nonsense", "$ref": "#/nowhere"}, "enum": [{"$ref": 5}], "const": {"properties": 3}}),
        of(**{"$ref": {"type": "string"}, "type": {"type": "integer"}, "enum": True}),
        of(a={"$ref": "#/properties/b"}, b={"type": "string"}),
        of(a={"minLength": 3.0}),
        nested(40),
    ],
)
def test_data_and_names_are_no_keywords(schema: Any) -> None:
    check_schema(schema, name="t")
    assert normalise(schema, "plain", strict=False, name="t").schema == schema


def test_chains_of_references_without_end_are_refused_not_a_crash() -> None:
    definitions: dict[str, Any] = {f"D{i}": {"anyOf": [{"$ref": f"#/$defs/D{i + 1}"}]} for i in range(5000)}
    definitions["D5000"] = {"type": "string"}
    schema = {**of(a={"$ref": "#/$defs/D0"}), "$defs": definitions}
    with pytest.raises(ConfigurationError, match="chain of references"):
        normalise(schema, "openai", strict=True, name="t")
    with pytest.raises(ConfigurationError, match="chain of references"):
        clean_arguments(schema, {"a": None})
