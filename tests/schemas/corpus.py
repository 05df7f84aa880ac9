"""The corpus: schemas as users and MCP servers send them."""

from __future__ import annotations

from schemas import models
from schemas.case import INTEGER, STRING, Case, object_of
from schemas.oddities import ODD

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
            **object_of({"path": STRING, "head": {"type": "number"}, "tail": {"type": "number"}}, "path"),
            "additionalProperties": False,
        },
        (True, True),
    ),
    Case(
        "mcp-edit-file",
        object_of(
            {
                "path": STRING,
                "edits": {
                    "type": "array",
                    "items": object_of({"oldText": {**STRING, "description": "Text to search for"}, "newText": STRING}),
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
        object_of(
            {"url": {"type": "string", "format": "uri"}, "tags": {"type": "array", "items": {**STRING, "format": "x"}}}
        ),
        (True, True),
    ),
    Case(
        "mcp-github-issue",
        object_of(
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
        object_of({"command": STRING, "env": {"type": "object", "additionalProperties": STRING}}, "command"),
        (False, False),
        ({"command": "ls", "env": {"A": "b"}},),
    ),
    Case("mcp-free-form", object_of({"fields": {"type": "object", "additionalProperties": True}}), (False, False)),
    Case("mcp-bare-object-property", object_of({"meta": {"type": "object"}}), (False, False), ({"meta": {"x": 1}},)),
    Case("mcp-bare-array", object_of({"values": {"type": "array"}}, "values"), (False, False), ({"values": [1, "a"]},)),
    Case(
        "mcp-bare-items", object_of({"values": {"type": "array", "items": {}}}), (False, False), ({"values": [None]},)
    ),
    Case(
        "mcp-either-field",
        {**object_of({"a": STRING, "b": INTEGER}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        (False, False),
        ({"a": "x"}, {"b": 1}),
    ),
    Case(
        "mcp-root-union",
        {
            "anyOf": [
                object_of({"op": {"const": "get"}, "key": STRING}, "op", "key"),
                object_of({"op": {"const": "set"}, "key": STRING, "value": INTEGER}, "op", "key", "value"),
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
            "definitions": {"A": object_of({"a": STRING}, "a"), "B": object_of({"b": STRING}, "b")},
        },
        (False, False),
        ({"a": "x"}, {"b": "y"}),
    ),
    Case(
        "mcp-nested-either",
        object_of(
            {"filter": {**object_of({"a": STRING, "b": STRING}), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}
        ),
        (False, False),
        ({"filter": {"a": "x"}},),
    ),
    Case(
        "mcp-zod-repeated-ref",
        object_of({"from": object_of({"x": INTEGER, "y": INTEGER}, "x"), "to": {"$ref": "#/properties/from"}}, "to"),
        (True, True),
    ),
    Case(
        "mcp-zod-ref-into-tuple",
        object_of(
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
        object_of({"range": {"type": "array", "items": [INTEGER, INTEGER], "minItems": 2, "maxItems": 2}}, "range"),
        (True, False),
        ({"range": [1, 2]},),
    ),
    Case(
        "mcp-dependent",
        object_of({"a": STRING, "b": STRING}, dependentRequired={"a": ["b"]}),
        (False, False),
        ({"a": "x", "b": "y"}, {}),
    ),
    Case(
        "mcp-if-then",
        object_of({"kind": STRING, "size": INTEGER}, **{"if": {"required": ["size"]}, "then": {"required": ["kind"]}}),
        (False, False),
        ({"kind": "a", "size": 1},),
    ),
    Case("mcp-pattern-properties", {"type": "object", "patternProperties": {"^x-": STRING}}, (False, False)),
    Case("mcp-min-properties", object_of({"a": STRING, "b": STRING}, minProperties=1), (False, False), ({"a": "x"},)),
    Case(
        "mcp-query-language",
        {
            **object_of({"where": {"$ref": "#/$defs/Expr"}}, "where"),
            "$defs": {
                "Expr": {
                    "oneOf": [
                        object_of({"and": {"type": "array", "items": {"$ref": "#/$defs/Expr"}}}, "and"),
                        object_of({"field": STRING, "equals": {"type": ["string", "number", "null"]}}, "field"),
                    ]
                }
            },
        },
        (True, False),
        ({"where": {"and": [{"field": "a", "equals": 1}, {"field": "b"}]}},),
    ),
    Case("mcp-lookahead", object_of({"p": {"type": "string", "pattern": "^(?!x).*$"}}), (True, True), ({"p": "abc"},)),
    Case(
        "mcp-vendor-keywords",
        object_of({"a": {**STRING, "x-ui": {"type": "object"}, "markdownDescription": "**a**", "readOnly": True}}),
        (True, True),
    ),
]

CASES = PYDANTIC + MCP + ODD
