"""Roots, references, unions, tuples and limits (the numbers are those of the public bug reports)."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from schemas.shorthand import anthropic, of, openai, optional, why

from pollux_like.errors import ConfigurationError
from pollux_like.schemas import normalise
from pollux_like.schemas.anthropic import MAX_OPTIONAL_PARAMS, MAX_UNION_PARAMS, StrictCosts, count_strict_costs
from pollux_like.schemas.openai import MAX_ENUM_VALUES, MAX_LEVELS, MAX_PROPERTIES


def test_a_root_union_becomes_text_and_the_properties_stay_sch_10() -> None:
    schema = {**of(a={"type": "string"}, b={"type": "string"}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    for dialect in ("openai", "anthropic"):
        result = normalise(schema, dialect, strict=False, name="f")
        assert result.schema["properties"] == schema["properties"]
        assert not {"anyOf", "oneOf", "allOf"} & set(result.schema)
        assert '"anyOf":[{"required":["a"]},{"required":["b"]}]' in result.schema["description"]
        assert any("'anyOf' at the root" in loss for loss in result.losses)
    assert normalise(schema, "plain", strict=False, name="f").schema == schema


def test_the_properties_of_root_branches_are_lifted() -> None:
    get = {**of(op={"const": "get"}, key={"type": "string"}), "required": ["op", "key"]}
    put = {**of(op={"const": "put"}, key={"type": "string"}, to={"type": "string"}), "required": ["op", "key", "to"]}
    result = anthropic({"oneOf": [get, put]}, strict=False)
    assert result["properties"] == {
        "op": {"anyOf": [{"const": "get"}, {"const": "put"}]},
        "key": {"type": "string"},
        "to": {"type": "string"},
    }
    assert result["required"] == ["op", "key"]


def test_a_root_constraint_too_long_to_tell_is_only_reported() -> None:
    branches = [{"required": ["a"]}, {"properties": {"a": {"enum": ["x" * 30 + str(i) for i in range(200)]}}}]
    result = normalise({**of(a={"type": "string"}), "anyOf": branches}, "anthropic", strict=False, name="f")
    assert "description" not in result.schema
    assert "too long for the description" in result.losses[0]


def test_recursion_stays_a_reference_for_openai_and_is_not_strict_for_anthropic_sch_09() -> None:
    node = {**of(v={"type": "integer"}, next={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}), "required": ["v"]}
    schema = {**of(n={"$ref": "#/$defs/N"}), "required": ["n"], "$defs": {"N": node}}
    result = openai(schema)
    assert result["$defs"]["N"]["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}
    assert "recursive" in why(schema, "anthropic")
    assert anthropic(schema, strict=False) == schema


def test_a_definition_used_twice_without_recursion_is_strict_for_anthropic() -> None:
    schema = {
        **of(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/B"}, c={"$ref": "#/$defs/B", "description": "the third"}),
        "$defs": {"A": of(b={"$ref": "#/$defs/B"}), "B": of(x={"type": "string"})},
    }
    result = anthropic(schema)
    assert result["properties"]["c"] == {**result["$defs"]["B"], "description": "the third"}


def test_phantom_required_names_are_pruned_per_node_sch_14() -> None:
    schema = of(a={**of(b={"type": "string"}), "required": ["b", "toString"]})
    for dialect in ("openai", "anthropic"):
        result = normalise(schema, dialect, strict=True, name="f")
        assert "toString" not in json.dumps(result.schema)
        assert any("'toString'" in loss and "/properties/a" in loss for loss in result.losses)


def test_an_empty_enum_is_left_out_sch_16() -> None:
    schema = of(s={"type": "string", "enum": []})
    assert openai(schema, strict=False)["properties"]["s"] == {"type": "string"}
    assert optional({"type": "string", "enum": []}) == {"type": ["string", "null"]}


def test_draft_7_tuples_are_written_anew_and_references_follow() -> None:
    schema = of(
        box={"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},
        one={"$ref": "#/properties/box/items/0"},
    )
    assert anthropic(schema, strict=False)["properties"] == {
        "box": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        "one": {"$ref": "#/properties/box/prefixItems/0"},
    }


def test_a_tuple_that_repeats_one_schema_is_an_array_of_fixed_length_for_openai() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}] * 2, "minItems": 2, "maxItems": 2}
    schema = {**of(p=pair), "required": ["p"]}
    assert openai(schema)["properties"]["p"] == {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
    }
    assert "tuple" in why(schema, "anthropic")


def test_arrays_get_items_where_openai_asks_for_them() -> None:
    schema = of(a={"type": "array"}, b={"type": ["array", "null"]}, c={"type": "string"})
    result = openai(schema, strict=False)["properties"]
    assert (result["a"]["items"], result["b"]["items"]) == ({}, {})
    assert result["c"] == {"type": "string"}
    assert "items" not in anthropic(schema, strict=False)["properties"]["a"]


def test_one_of_becomes_any_of_and_says_so_unless_it_is_discriminated() -> None:
    branches = [{"type": "string"}, {"type": "integer"}]
    result = normalise(of(a={"oneOf": branches}), "openai", strict=True, name="f")
    assert result.schema["properties"]["a"] == {"anyOf": [*branches, {"type": "null"}]}
    assert "'oneOf' became 'anyOf'" in result.losses[0]
    tagged = [{**of(k={"const": k}), "required": ["k"]} for k in "ab"]
    tagged_schema = of(a={"oneOf": tagged, "discriminator": {"propertyName": "k"}})
    assert normalise(tagged_schema, "openai", strict=True, name="f").losses == ()


def test_all_of_is_merged_where_that_is_plain() -> None:
    base = {**of(id={"type": "integer"}), "required": ["id"]}
    schema = {
        **of(a={"allOf": [{"$ref": "#/$defs/Base"}, of(name={"type": "string"}), True]}),
        "required": ["a"],
        "$defs": {"Base": base},
    }
    assert openai(schema)["properties"]["a"] == {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": ["string", "null"]}},
        "required": ["id", "name"],
        "additionalProperties": False,
    }
    closed = {**base, "additionalProperties": False}
    assert "closed" in why({**schema, "$defs": {"Base": closed}})


def test_type_lists_with_objects_become_unions() -> None:
    schema = {
        "type": ["object", "string", "null"],
        "properties": {"x": {"type": "string"}},
        "minLength": 1,
        "title": "T",
    }
    assert optional(schema) == {
        "anyOf": [
            {
                "type": "object",
                "properties": {"x": {"type": ["string", "null"]}},
                "required": ["x"],
                "additionalProperties": False,
            },
            {"type": "string", "minLength": 1},
            {"type": "null"},
        ],
        "title": "T",
    }


def test_references_of_every_form_end_in_definitions() -> None:
    schema = {
        **of(
            a=of(x={"type": "integer"}),
            b={"$ref": "#/properties/a"},
            c={"$ref": "#/definitions/a~1b%20c"},
            d={"$ref": "#here"},
            e={"$ref": "#/$defs/a"},
        ),
        "definitions": {"a/b c": {"type": "string"}},
        "$defs": {"E": {"$anchor": "here", "type": "boolean"}, "a": {"type": "number"}, "unused": {"type": "object"}},
        "required": ["b", "c", "d", "e"],
    }
    result = openai(schema)
    refs = {name: child["$ref"] for name, child in result["properties"].items() if "$ref" in child}
    kinds = {name: result["$defs"][ref.removeprefix("#/$defs/")]["type"] for name, ref in refs.items()}
    assert kinds == {"b": "object", "c": "string", "d": "boolean", "e": "number"}
    assert len(result["$defs"]) == 4


def test_a_reference_to_an_optional_property_does_not_become_nullable_itself() -> None:
    schema = {**of(a={"type": "string"}, b={"$ref": "#/properties/a"}), "required": ["b"]}
    result = openai(schema)
    assert result["properties"]["a"] == {"type": ["string", "null"]}
    assert result["$defs"] == {"a": {"type": "string"}}


def test_the_limits_of_openai_strict() -> None:
    nested: dict[str, Any] = of(x={"type": "string"})
    for _ in range(MAX_LEVELS - 1):
        nested = of(x=nested)
    assert normalise(nested, "openai", strict=True, name="f").strict
    assert f"deeper than {MAX_LEVELS}" in why(of(x=nested))
    many = {f"p{i}": {"type": "string"} for i in range(MAX_PROPERTIES)}
    assert normalise(of(**many), "openai", strict=True, name="f").strict
    assert "properties" in why(of(**many, one={"type": "string"}))
    values = {"type": "integer", "enum": list(range(MAX_ENUM_VALUES))}
    assert normalise({**of(e=values), "required": ["e"]}, "openai", strict=True, name="f").strict
    assert "enum values" in why(of(e=values, g={"type": "integer", "enum": [1]}))
    long = {"type": "string", "enum": [f"{i:060}" for i in range(251)]}
    assert "15,000" in why({**of(e=long), "required": ["e"]})
    assert "120,000" in why(of(**{"n" * 60_001: {"type": "string"}, "m" * 60_000: {"type": "string"}}))


def test_references_that_multiply_when_written_out_stay_bounded() -> None:
    definitions: dict[str, Any] = {"D0": of(x={"type": "string"})}
    for i in range(1, 30):
        ref = {"$ref": f"#/$defs/D{i - 1}", "description": "one of two"}
        definitions[f"D{i}"] = of(l=ref, r=ref)
    assert "too large" in why({**of(a={"$ref": "#/$defs/D29"}), "$defs": definitions}, "anthropic")


def test_the_costs_of_strict_tools_for_anthropic() -> None:
    schema = of(
        a={"type": "string"},
        b={"anyOf": [{"type": "string"}, {"type": "integer"}]},
        c={"type": ["string", "null"]},
        d={**of(e={"type": "string"}, f={"type": "string"}), "required": ["e"]},
    )
    assert count_strict_costs(anthropic({**schema, "required": ["a"]})) == StrictCosts(optional=4, unions=2)
    assert (MAX_OPTIONAL_PARAMS, MAX_UNION_PARAMS) == (24, 16)


def test_frozen_mappings_and_tuples_are_schemas_too() -> None:
    frozen = MappingProxyType(
        {"type": "object", "properties": MappingProxyType({"a": {"enum": ("x", "y")}}), "required": ("a",)}
    )
    assert openai(frozen)["properties"]["a"] == {"type": "string", "enum": ["x", "y"]}


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no schema dialect 'nobody'"):
        normalise({}, "nobody", strict=True, name="f")


def test_the_same_schema_gives_the_same_bytes_each_time() -> None:
    schema = of(b={"type": "string"}, a={"$ref": "#/$defs/Z"}) | {"$defs": {"Z": {"type": "string"}, "A": {}}}
    texts = {json.dumps(normalise(schema, "openai", strict=True, name="f").schema) for _ in range(3)}
    assert len(texts) == 1
    assert list(openai(schema)["properties"]) == ["b", "a"]
