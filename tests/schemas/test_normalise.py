"""What normalisation does, phenomenon by phenomenon (the numbers are those of the public bug reports)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from schemas.shorthand import anthropic, of, openai, optional, why

from pollux_like.schemas import normalise
from pollux_like.schemas.openai import FORMATS


def test_required_and_optional_of_a_strict_openai_tool() -> None:
    schema = {**of(location={"type": "string"}, unit={"type": "string"}), "required": ["location"]}
    assert openai(schema) == {
        "type": "object",
        "properties": {"location": {"type": "string"}, "unit": {"type": ["string", "null"]}},
        "required": ["location", "unit"],
        "additionalProperties": False,
    }


def test_every_object_node_is_closed_sch_01() -> None:
    inner = of(b={"type": "string"})
    result = openai(
        {
            **of(a=inner, l={"type": "array", "items": inner}, r={"$ref": "#/$defs/D"}, u={"anyOf": [inner]}),
            "$defs": {"D": inner},
            "required": ["a", "l", "r", "u"],
        }
    )
    closed = {
        "type": "object",
        "properties": {"b": {"type": ["string", "null"]}},
        "required": ["b"],
        "additionalProperties": False,
    }
    assert result["properties"] == {
        "a": closed,
        "l": {"type": "array", "items": closed},
        "r": {"$ref": "#/$defs/D"},
        "u": closed,
    }
    assert result["$defs"] == {"D": closed}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, {"type": ["integer", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"enum": ["a", "b"]}, {"type": ["string", "null"], "enum": ["a", "b", None]}),
        ({"type": "integer", "enum": [60, 1440]}, {"type": ["integer", "null"], "enum": [60, 1440, None]}),
        ({"enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": "x"}, {"type": ["string", "null"], "enum": ["x", None]}),
        ({"const": "x", "default": "x"}, {"type": "string", "const": "x"}),
        ({"$ref": "#/$defs/S"}, {"anyOf": [{"$ref": "#/$defs/S"}, {"type": "null"}]}),
        ({"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}),
        (
            {"$ref": "#/$defs/S", "description": "d"},
            {"anyOf": [{"$ref": "#/$defs/S"}, {"type": "null"}], "description": "d"},
        ),
        ({"anyOf": [{"type": "string"}]}, {"type": ["string", "null"]}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null", "description": "none"}]},
            {"anyOf": [{"type": "string"}, {"type": "null", "description": "none"}]},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "description": "d"},
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "description": "d"},
        ),
    ],
)
def test_an_optional_becomes_nullable_once(schema: Any, expected: Any) -> None:
    definitions = {"S": {"type": "string"}, "N": {"type": ["string", "null"]}}
    assert optional(schema, **{"$defs": definitions}) == expected


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "plain"])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "title": "Ping"}])
def test_a_tool_without_parameters_is_an_empty_closed_object_sch_19_20(schema: Any, strict: bool, dialect: str) -> None:
    result = normalise(schema, dialect, strict=strict, name="ping").schema
    assert (result["type"], result["properties"], result["additionalProperties"]) == ("object", {}, False)
    assert result.get("required", []) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "additionalProperties": True}, "open map"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "open map"),
        ({"type": "object"}, "open map"),
        ({}, "any value"),
        (True, "any value"),
        ({"description": "whatever"}, "any value"),
        ({"type": "array"}, "any value"),
        ({"type": "array", "items": {}}, "any value"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, "tuple"),
        ({"type": "object", "properties": {}, "patternProperties": {"^x": True}}, "'patternProperties'"),
        ({"type": "string", "not": {"const": "x"}}, "'not'"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1}, "'minProperties'"),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "x"}}, "'contains'"),
        ({"anyOf": [{"type": "object", "properties": {}}], "properties": {}}, "'anyOf' beside properties"),
        ({"allOf": [{"minLength": 1}, {"type": "string", "minLength": 2}]}, "different values"),
        ({"enum": [{"a": 1}]}, "objects or arrays"),
        ({"type": "string", "enum": [1]}, "no value"),
    ],
)
def test_what_strict_cannot_say_makes_the_tool_non_strict_with_its_original_schema_sch_03(
    schema: Any, reason: str
) -> None:
    whole = {**of(p=schema), "required": ["p"]}
    loss = why(whole)
    assert reason in loss
    assert "/properties/p" in loss
    loose = openai(whole, strict=False)
    if schema is not True and "array" not in str(schema):
        assert loose == whole


def test_keywords_as_property_names_and_as_data_stay() -> None:
    data = {"type": "object", "properties": {"$ref": "#/nowhere"}, "required": ["x"]}
    names = ["properties", "required", "title", "type", "$ref", "default", "enum", "items", "additionalProperties"]
    schema = {
        **of(**{name: {"type": "string"} for name in names}, data={"type": "string", "const": "properties"}),
        "required": names,
        "default": data,
        "examples": [data],
    }
    for dialect in ("openai", "anthropic"):
        result = normalise(schema, dialect, strict=True, name="f")
        assert result.strict
        assert list(result.schema["properties"]) == [*names, "data"]
        assert result.schema["required"][: len(names)] == names
        assert json.dumps(data, separators=(",", ":")) in json.dumps(result.schema, separators=(",", ":")).replace(
            "\\", ""
        )
    assert normalise(schema, "plain", strict=False, name="f").schema == schema


def test_annotations_move_into_the_description_and_are_reported() -> None:
    schema = of(n={"type": "integer", "default": 5, "description": "How many.", "examples": [1, 2], "x-ui": "slider"})
    result = normalise(schema, "openai", strict=True, name="search")
    assert result.schema["properties"]["n"] == {
        "type": ["integer", "null"],
        "description": "How many. (default: 5; examples: [1,2])",
    }
    assert [loss for loss in result.losses if loss.startswith("Schema of 'search' at /properties/n: 'default'")]
    assert [loss for loss in result.losses if "'x-ui' was left out" in loss]


@pytest.mark.parametrize("key", ["$schema", "$comment"])
def test_what_says_nothing_to_a_model_goes_silently(key: str) -> None:
    result = normalise(
        {**of(a={"type": ["string", "null"], "default": None}), key: "x"}, "openai", strict=True, name="f"
    )
    assert result.losses == ()
    assert key not in result.schema


def test_constraints_that_openai_enforces_stay_sch_21() -> None:
    text = {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^(a|b)$"}
    number = {"type": "number", "exclusiveMinimum": 0, "maximum": 9, "multipleOf": 0.5}
    array = {"type": "array", "items": number, "minItems": 1, "maxItems": 3}
    schema = {**of(t=text, a=array), "required": ["t", "a"]}
    assert openai(schema)["properties"] == schema["properties"]
    assert normalise(schema, "openai", strict=True, name="f").losses == ()


def test_constraints_that_anthropic_refuses_become_text() -> None:
    schema = {**of(n={"type": "integer", "minimum": 1, "maximum": 9}), "required": ["n"]}
    result = normalise(schema, "anthropic", strict=True, name="f")
    assert result.schema["properties"]["n"] == {"type": "integer", "description": "minimum: 1; maximum: 9"}
    assert len(result.losses) == 2


def test_a_format_outside_the_list_moves_into_the_description_sch_15() -> None:
    schema = {**of(u={"type": "array", "items": {"type": "string", "format": "uri"}}), "required": ["u"]}
    assert openai(schema)["properties"]["u"]["items"] == {"type": "string", "description": 'format: "uri"'}
    assert anthropic(schema)["properties"]["u"]["items"] == {"type": "string", "format": "uri"}
    for name in FORMATS:
        assert optional({"type": "string", "format": name})["format"] == name


def test_anthropic_keeps_optional_properties_optional() -> None:
    schema = {**of(a={"type": "string"}, b={"type": "string"}), "required": ["a"]}
    assert anthropic(schema) == {**schema, "additionalProperties": False}
