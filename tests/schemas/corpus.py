"""The corpus: schemas as users and MCP servers send them, and the oddities of public bug reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schemas import models

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


@dataclass(frozen=True)
class Case:
    """`strict` says for (openai, anthropic) whether strict mode can hold the schema; `valid` are extra instances."""

    name: str
    schema: Any
    strict: tuple[bool, bool]
    valid: tuple[dict[str, Any], ...] = ()


def _object(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


_NOT_STRICT = {"OpenMap", "AnyMap", "MapOfModels", "ExtraAllowed", "AnyField", "MixedTuple"}
_ONLY_OPENAI = {"Node", "Tree", "Ping", "Pong", "Pairs"}

PYDANTIC = [
    Case(
        f"pydantic-{model.__name__}",
        model.model_json_schema(),
        (model.__name__ not in _NOT_STRICT, model.__name__ not in _NOT_STRICT | _ONLY_OPENAI),
        {
            "Constrained": ({"code": "abc", "size": 5, "tags": ["x"]}, {"code": "ab", "size": 1, "tags": ["x", "y"]}),
            "Special": ({"id": "00000000-0000-0000-0000-000000000000", "price": 1.5, "raw": "eA=="},),
        }.get(model.__name__, ()),
    )
    for model in models.ALL
]

MCP = [
    Case(
        "mcp-read-file",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **_object({"path": STRING, "head": {"type": "number"}, "tail": {"type": "number"}}, "path"),
            "additionalProperties": False,
        },
        (True, True),
    ),
    Case(
        "mcp-edit-file",
        _object(
            {
                "path": STRING,
                "edits": {
                    "type": "array",
                    "items": _object({"oldText": {**STRING, "description": "Text to search for"}, "newText": STRING}),
                },
                "dryRun": {"type": "boolean", "default": False, "description": "Preview changes"},
            },
            "path",
            "edits",
        ),
        (True, True),
    ),
    Case("mcp-no-arguments", {"type": "object"}, (True, True), ({},)),
    Case(
        "mcp-no-arguments-draft", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, (True,) * 2
    ),
    Case("mcp-empty-properties", {"type": "object", "properties": {}}, (True, True), ({},)),
    Case(
        "mcp-url",
        _object(
            {"url": {"type": "string", "format": "uri"}, "tags": {"type": "array", "items": {**STRING, "format": "x"}}}
        ),
        (True, True),
    ),
    Case(
        "mcp-github-issue",
        _object(
            {
                "owner": STRING,
                "issue_number": {"type": "number", "minimum": 1},
                "labels": {"type": "array", "items": STRING, "uniqueItems": True},
                "state": {"enum": ["open", "closed"], "type": "string", "default": "open"},
            },
            "owner",
            "issue_number",
        ),
        (True, True),
    ),
    Case(
        "mcp-env-map",
        _object({"command": STRING, "env": {"type": "object", "additionalProperties": STRING}}, "command"),
        (False, False),
        ({"command": "ls", "env": {"A": "b"}},),
    ),
    Case("mcp-free-form", _object({"fields": {"type": "object", "additionalProperties": True}}), (False, False)),
    Case("mcp-bare-object-property", _object({"meta": {"type": "object"}}), (False, False), ({"meta": {"x": 1}},)),
    Case("mcp-bare-array", _object({"values": {"type": "array"}}, "values"), (False, False), ({"values": [1, "a"]},)),
    Case("mcp-bare-items", _object({"values": {"type": "array", "items": {}}}), (False, False), ({"values": [None]},)),
    Case(
        "mcp-either-field",
        {**_object({"a": STRING, "b": INTEGER}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        (False, False),
        ({"a": "x"}, {"b": 1}),
    ),
    Case(
        "mcp-root-union",
        {
            "anyOf": [
                _object({"op": {"const": "get"}, "key": STRING}, "op", "key"),
                _object({"op": {"const": "set"}, "key": STRING, "value": INTEGER}, "op", "key", "value"),
            ]
        },
        (False, False),
        ({"op": "get", "key": "k"}, {"op": "set", "key": "k", "value": 1}),
    ),
    Case(
        "mcp-root-one-of-refs",
        {
            "type": "object",
            "oneOf": [{"$ref": "#/definitions/A"}, {"$ref": "#/definitions/B"}],
            "definitions": {"A": _object({"a": STRING}, "a"), "B": _object({"b": STRING}, "b")},
        },
        (False, False),
        ({"a": "x"}, {"b": "y"}),
    ),
    Case(
        "mcp-nested-either",
        _object(
            {"filter": {**_object({"a": STRING, "b": STRING}), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}
        ),
        (False, False),
        ({"filter": {"a": "x"}},),
    ),
    Case(
        "mcp-zod-repeated-ref",
        _object({"from": _object({"x": INTEGER, "y": INTEGER}, "x"), "to": {"$ref": "#/properties/from"}}, "to"),
        (True, True),
    ),
    Case(
        "mcp-zod-ref-into-tuple",
        _object(
            {
                "box": {"type": "array", "items": [STRING, INTEGER], "minItems": 2, "maxItems": 2},
                "first": {"$ref": "#/properties/box/items/0"},
            }
        ),
        (False, False),
        ({"box": ["a", 1], "first": "b"},),
    ),
    Case(
        "mcp-draft7-pair",
        _object({"range": {"type": "array", "items": [INTEGER, INTEGER], "minItems": 2, "maxItems": 2}}, "range"),
        (True, False),
        ({"range": [1, 2]},),
    ),
    Case(
        "mcp-dependent",
        _object({"a": STRING, "b": STRING}, dependentRequired={"a": ["b"]}),
        (False, False),
        ({"a": "x", "b": "y"}, {}),
    ),
    Case(
        "mcp-if-then",
        _object({"kind": STRING, "size": INTEGER}, **{"if": {"required": ["size"]}, "then": {"required": ["kind"]}}),
        (False, False),
        ({"kind": "a", "size": 1},),
    ),
    Case("mcp-pattern-properties", {"type": "object", "patternProperties": {"^x-": STRING}}, (False, False)),
    Case("mcp-min-properties", _object({"a": STRING, "b": STRING}, minProperties=1), (False, False), ({"a": "x"},)),
    Case(
        "mcp-query-language",
        {
            **_object({"where": {"$ref": "#/$defs/Expr"}}, "where"),
            "$defs": {
                "Expr": {
                    "oneOf": [
                        _object({"and": {"type": "array", "items": {"$ref": "#/$defs/Expr"}}}, "and"),
                        _object({"field": STRING, "equals": {"type": ["string", "number", "null"]}}, "field"),
                    ]
                }
            },
        },
        (True, False),
        ({"where": {"and": [{"field": "a", "equals": 1}, {"field": "b"}]}},),
    ),
    Case("mcp-lookahead", _object({"p": {"type": "string", "pattern": "^(?!x).*$"}}), (True, True), ({"p": "abc"},)),
    Case(
        "mcp-vendor-keywords",
        _object({"a": {**STRING, "x-ui": {"type": "object"}, "markdownDescription": "**a**", "readOnly": True}}),
        (True, True),
    ),
]

ODD = [
    Case("odd-none", None, (True, True), ({},)),
    Case("odd-empty", {}, (True, True), ({},)),
    Case("odd-only-title", {"title": "Ping", "description": "No arguments."}, (True, True), ({},)),
    Case("odd-root-without-type", {"properties": {"a": STRING}, "required": ["a"]}, (True, True)),
    Case("odd-root-type-list", {**_object({"a": STRING}), "type": ["object", "null"]}, (True, True)),
    Case("odd-root-ref", {"$ref": "#/$defs/R", "$defs": {"R": _object({"a": STRING}, "a")}}, (True, True)),
    Case(
        "odd-root-ref-recursive",
        {"$ref": "#/$defs/N", "$defs": {"N": _object({"v": INTEGER, "n": {"$ref": "#/$defs/N"}}, "v")}},
        (True, False),
        ({"v": 1}, {"v": 1, "n": {"v": 2}}),
    ),
    Case(
        "odd-ref-to-root", _object({"v": INTEGER, "n": {"$ref": "#"}}, "v"), (True, False), ({"v": 1, "n": {"v": 2}},)
    ),
    Case(
        "odd-nested-everywhere",  # SCH-01
        {
            **_object({"a": _object({"b": STRING}), "l": {"type": "array", "items": _object({"c": INTEGER})}}),
            "$defs": {"D": _object({"d": STRING})},
        },
        (True, True),
    ),
    Case(
        "odd-names-are-keywords",
        _object(
            {
                "properties": _object({"type": STRING, "$ref": STRING}, "$ref"),
                "required": {"type": "array", "items": STRING},
                "enum": {"type": "string", "enum": ["type", "enum"]},
                "$defs": _object({"items": INTEGER}),
                "anyOf": {"anyOf": [STRING, INTEGER]},
                "nullable": {"type": "boolean"},
                "title": STRING,
                "default": {**STRING, "default": "default"},
                "const": {"const": "const"},
                "not": INTEGER,
            },
            "properties",
            "title",
        ),
        (True, True),
    ),
    Case(
        "odd-schema-like-data",
        _object(
            {
                "a": {**STRING, "default": "properties", "examples": ["type"]},
                "b": {"type": "string", "enum": ["object", "properties", "$ref"]},
                "c": _object({"x": STRING}, default={"type": "object", "properties": {"x": {"type": "integer"}}}),
            }
        ),
        (True, True),
    ),
    Case("odd-phantom-required", _object({"a": _object({"b": STRING}, "b", "toString")}), (True, True)),
    Case(
        "odd-phantom-free",
        {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "object"}}}},
        (False,) * 2,
    ),
    Case(
        "odd-type-list",
        _object({"a": {"type": ["string", "null"], "description": "d"}, "b": {"type": ["string", "integer"]}}),
        (True, True),
    ),
    Case(
        "odd-type-list-object",
        _object({"a": {"type": ["object", "string", "null"], "properties": {"x": STRING}, "minLength": 1}}),
        (True, True),
    ),
    Case(
        "odd-annotated-null", _object({"a": {"anyOf": [STRING, {"type": "null", "description": "none"}]}}), (True, True)
    ),
    Case(
        "odd-nullable",
        _object(
            {"a": {"type": "string", "nullable": True}, "b": {"type": "string", "nullable": True, "enum": ["x"]}}, "a"
        ),
        (True, True),
    ),
    Case(
        "odd-nullable-ref",
        {**_object({"a": {"$ref": "#/$defs/A", "nullable": True}}, "a"), "$defs": {"A": _object({"x": STRING})}},
        (True, True),
    ),
    Case("odd-integer-enum", _object({"n": {"type": "integer", "enum": [60, 1440]}}), (True, True)),
    Case("odd-enum-without-type", _object({"n": {"enum": ["a", 1, True, None, 1.5]}}), (True, True)),
    Case("odd-empty-enum", _object({"s": {"type": "string", "enum": []}, "t": STRING}), (True, True)),
    Case("odd-enum-of-objects", _object({"s": {"enum": [{"type": "string"}, "x"]}}), (False, False)),
    Case("odd-const-optional", _object({"c": {"const": "v"}, "d": {"const": 3, "type": "integer"}}), (True, True)),
    Case("odd-const-null", _object({"c": {"const": None}}), (True, True)),
    Case("odd-true-property", _object({"a": True}), (False, False), ({"a": 1},)),
    Case("odd-false-property", _object({"a": False, "b": STRING}, "b"), (True, True), ({"b": "x"},)),
    Case("odd-false-branch", _object({"a": {"anyOf": [False, STRING]}}, "a"), (True, True)),
    Case(
        "odd-all-of-one",
        {
            **_object({"a": {"allOf": [{"$ref": "#/$defs/A"}], "description": "d", "default": {}}}),
            "$defs": {"A": _object({"x": STRING})},
        },
        (True, True),
    ),
    Case(
        "odd-all-of-merge",
        {
            **_object(
                {"a": {"allOf": [{"$ref": "#/$defs/A"}, _object({"y": INTEGER}, "y"), {"required": ["x"]}]}}, "a"
            ),
            "$defs": {"A": _object({"x": STRING, "y": {"type": "number"}})},
        },
        (True, True),
        ({"a": {"x": "s", "y": 1}},),
    ),
    Case(
        "odd-all-of-clash",
        _object({"a": {"allOf": [{"type": "string", "minLength": 1}, {"minLength": 2}]}}),
        (False, False),
        ({"a": "xy"},),
    ),
    Case("odd-root-all-of", {"allOf": [_object({"a": STRING}, "a"), _object({"b": INTEGER})]}, (True, True)),
    Case(
        "odd-root-all-of-clash",
        {**_object({"a": STRING}), "allOf": [{"not": {"required": ["a"]}}, {"not": {"required": ["b"]}}]},
        (False,) * 2,
        ({},),
    ),
    Case("odd-one-of-plain", _object({"a": {"oneOf": [STRING, INTEGER]}}), (True, True)),
    Case(
        "odd-one-of-overlap", _object({"a": {"oneOf": [INTEGER, {"type": "number"}]}}, "a"), (True, True), ({"a": 1.5},)
    ),
    Case(
        "odd-union-with-type",
        _object(
            {
                "a": {
                    "type": "object",
                    "anyOf": [{"properties": {"x": STRING}}, {"properties": {"y": STRING}, "required": ["y"]}],
                }
            }
        ),
        (True, True),
    ),
    Case(
        "odd-ref-siblings",
        {
            **_object(
                {"a": {"$ref": "#/$defs/S", "description": "d"}, "b": {"$ref": "#/$defs/S", "minLength": 2}}, "a"
            ),
            "$defs": {"S": STRING},
        },
        (True, True),
    ),
    Case(
        "odd-escaped-pointer",
        {**_object({"a": {"$ref": "#/$defs/a~1b%20c"}}), "$defs": {"a/b c": _object({"x": STRING})}},
        (True, True),
    ),
    Case(
        "odd-anchor",
        {**_object({"a": {"$ref": "#here"}}), "$defs": {"A": {"$anchor": "here", **_object({"x": STRING})}}},
        (True, True),
    ),
    Case(
        "odd-ref-chain",
        {**_object({"a": {"$ref": "#/$defs/A"}}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": STRING}},
        (True, True),
    ),
    Case(
        "odd-definitions-clash",
        {
            **_object({"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/definitions/A"}}),
            "$defs": {"A": STRING},
            "definitions": {"A": INTEGER},
        },
        (True, True),
    ),
    Case(
        "odd-unused-definition",
        {**_object({"a": STRING}), "$defs": {"Map": {"type": "object", "additionalProperties": STRING}}},
        (True, True),
    ),
    Case(
        "odd-nested-definitions",
        _object({"a": {**_object({"x": {"$ref": "#/properties/a/$defs/X"}}), "$defs": {"X": STRING}}}),
        (True, True),
    ),
    Case(
        "odd-ref-into-root-union",
        {
            **_object({"a": {"$ref": "#/anyOf/0/properties/b"}}),
            "anyOf": [_object({"b": STRING}), _object({"c": STRING})],
        },
        (False,) * 2,
        ({"a": "x"},),
    ),
    Case(
        "odd-foreign-keywords",
        _object({"a": {"type": "string", "minimum": 3, "items": STRING}, "b": {"type": "integer", "pattern": "x"}}),
        (True, True),
    ),
    Case("odd-typeless-object", _object({"a": {"properties": {"x": STRING}, "required": ["x"]}}), (True, True)),
    Case(
        "odd-many-constraints",
        _object(
            {
                "a": {
                    "type": "array",
                    "items": {"type": "number", "exclusiveMinimum": 0},
                    "minItems": 2,
                    "maxItems": 4,
                    "uniqueItems": True,
                }
            }
        ),
        (True, True),
        ({"a": [1, 2]},),
    ),
    Case("odd-unevaluated", _object({"a": STRING}, unevaluatedProperties=False), (True, True)),
    Case("odd-not", _object({"a": {"type": "string", "not": {"const": "x"}}}), (False, False), ({"a": "y"},)),
    Case(
        "odd-contains",
        _object({"a": {"type": "array", "items": INTEGER, "contains": {"const": 1}}}),
        (False, False),
        ({"a": [1]},),
    ),
    Case(
        "odd-mutual-recursion",
        {
            **_object({"a": {"$ref": "#/$defs/A"}}),
            "$defs": {"A": _object({"b": {"$ref": "#/$defs/B"}}), "B": _object({"a": {"$ref": "#/$defs/A"}})},
        },
        (True, False),
    ),
    Case(
        "odd-recursive-with-description",
        {
            **_object({"n": {"$ref": "#/$defs/N"}}),
            "$defs": {"N": _object({"n": {"$ref": "#/$defs/N", "description": "next"}})},
        },
        (True, False),
    ),
    Case(
        "odd-deep",
        _object({"a": _object({"b": _object({"c": _object({"d": _object({"e": _object({"f": STRING})})})})})}),
        (True, True),
    ),
    Case(
        "odd-unicode-names",
        _object({"naïve/key": STRING, "a~b": INTEGER, "": STRING, "日本": {"type": "boolean"}}, ""),
        (True, True),
    ),
]

CASES = PYDANTIC + MCP + ODD
