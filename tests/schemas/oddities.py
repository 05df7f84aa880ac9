"""The oddities of public bug reports, and the corners of JSON Schema beside them."""

from __future__ import annotations

from schemas.case import INTEGER, STRING, Case, object_of

ODD = [
    Case("odd-none", None, (True, True), ({},)),
    Case("odd-empty", {}, (True, True), ({},)),
    Case("odd-only-title", {"title": "Ping", "description": "No arguments."}, (True, True), ({},)),
    Case("odd-root-without-type", {"properties": {"a": STRING}, "required": ["a"]}, (True, True)),
    Case("odd-root-type-list", {**object_of({"a": STRING}), "type": ["object", "null"]}, (True, True)),
    Case("odd-root-ref", {"$ref": "#/$defs/R", "$defs": {"R": object_of({"a": STRING}, "a")}}, (True, True)),
    Case(
        "odd-root-ref-recursive",
        {"$ref": "#/$defs/N", "$defs": {"N": object_of({"v": INTEGER, "n": {"$ref": "#/$defs/N"}}, "v")}},
        (True, False),
        ({"v": 1}, {"v": 1, "n": {"v": 2}}),
    ),
    Case(
        "odd-ref-to-root", object_of({"v": INTEGER, "n": {"$ref": "#"}}, "v"), (True, False), ({"v": 1, "n": {"v": 2}},)
    ),
    Case(
        "odd-nested-everywhere",  # SCH-01
        {
            **object_of({"a": object_of({"b": STRING}), "l": {"type": "array", "items": object_of({"c": INTEGER})}}),
            "$defs": {"D": object_of({"d": STRING})},
        },
        (True, True),
    ),
    Case(
        "odd-names-are-keywords",
        object_of(
            {
                "properties": object_of({"type": STRING, "$ref": STRING}, "$ref"),
                "required": {"type": "array", "items": STRING},
                "enum": {"type": "string", "enum": ["type", "enum"]},
                "$defs": object_of({"items": INTEGER}),
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
        object_of(
            {
                "a": {**STRING, "default": "properties", "examples": ["type"]},
                "b": {"type": "string", "enum": ["object", "properties", "$ref"]},
                "c": object_of({"x": STRING}, default={"type": "object", "properties": {"x": {"type": "integer"}}}),
            }
        ),
        (True, True),
    ),
    Case("odd-phantom-required", object_of({"a": object_of({"b": STRING}, "b", "toString")}), (True, True)),
    Case(
        "odd-phantom-free",
        {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "object"}}}},
        (False,) * 2,
    ),
    Case(
        "odd-type-list",
        object_of({"a": {"type": ["string", "null"], "description": "d"}, "b": {"type": ["string", "integer"]}}),
        (True, True),
    ),
    Case(
        "odd-type-list-object",
        object_of({"a": {"type": ["object", "string", "null"], "properties": {"x": STRING}, "minLength": 1}}),
        (True, True),
    ),
    Case(
        "odd-annotated-null",
        object_of({"a": {"anyOf": [STRING, {"type": "null", "description": "none"}]}}),
        (True, True),
    ),
    Case(
        "odd-nullable",
        object_of(
            {"a": {"type": "string", "nullable": True}, "b": {"type": "string", "nullable": True, "enum": ["x"]}}, "a"
        ),
        (True, True),
    ),
    Case(
        "odd-nullable-ref",
        {**object_of({"a": {"$ref": "#/$defs/A", "nullable": True}}, "a"), "$defs": {"A": object_of({"x": STRING})}},
        (True, True),
    ),
    Case("odd-integer-enum", object_of({"n": {"type": "integer", "enum": [60, 1440]}}), (True, True)),
    Case("odd-enum-without-type", object_of({"n": {"enum": ["a", 1, True, None, 1.5]}}), (True, True)),
    Case("odd-empty-enum", object_of({"s": {"type": "string", "enum": []}, "t": STRING}), (True, True)),
    Case("odd-enum-of-objects", object_of({"s": {"enum": [{"type": "string"}, "x"]}}), (False, False)),
    Case("odd-const-optional", object_of({"c": {"const": "v"}, "d": {"const": 3, "type": "integer"}}), (True, True)),
    Case("odd-const-null", object_of({"c": {"const": None}}), (True, True)),
    Case("odd-true-property", object_of({"a": True}), (False, False), ({"a": 1},)),
    Case("odd-false-property", object_of({"a": False, "b": STRING}, "b"), (True, True), ({"b": "x"},)),
    Case("odd-false-branch", object_of({"a": {"anyOf": [False, STRING]}}, "a"), (True, True)),
    Case(
        "odd-all-of-one",
        {
            **object_of({"a": {"allOf": [{"$ref": "#/$defs/A"}], "description": "d", "default": {}}}),
            "$defs": {"A": object_of({"x": STRING})},
        },
        (True, True),
    ),
    Case(
        "odd-all-of-merge",
        {
            **object_of(
                {"a": {"allOf": [{"$ref": "#/$defs/A"}, object_of({"y": INTEGER}, "y"), {"required": ["x"]}]}}, "a"
            ),
            "$defs": {"A": object_of({"x": STRING, "y": {"type": "number"}})},
        },
        (True, True),
        ({"a": {"x": "s", "y": 1}},),
    ),
    Case(
        "odd-all-of-clash",
        object_of({"a": {"allOf": [{"type": "string", "minLength": 1}, {"minLength": 2}]}}),
        (False, False),
        ({"a": "xy"},),
    ),
    Case("odd-root-all-of", {"allOf": [object_of({"a": STRING}, "a"), object_of({"b": INTEGER})]}, (True, True)),
    Case(
        "odd-root-all-of-clash",
        {**object_of({"a": STRING}), "allOf": [{"not": {"required": ["a"]}}, {"not": {"required": ["b"]}}]},
        (False,) * 2,
        ({},),
    ),
    Case("odd-one-of-plain", object_of({"a": {"oneOf": [STRING, INTEGER]}}), (True, True)),
    Case(
        "odd-one-of-overlap",
        object_of({"a": {"oneOf": [INTEGER, {"type": "number"}]}}, "a"),
        (True, True),
        ({"a": 1.5},),
    ),
    Case(
        "odd-union-with-type",
        object_of(
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
            **object_of(
                {"a": {"$ref": "#/$defs/S", "description": "d"}, "b": {"$ref": "#/$defs/S", "minLength": 2}}, "a"
            ),
            "$defs": {"S": STRING},
        },
        (True, True),
    ),
    Case(
        "odd-escaped-pointer",
        {**object_of({"a": {"$ref": "#/$defs/a~1b%20c"}}), "$defs": {"a/b c": object_of({"x": STRING})}},
        (True, True),
    ),
    Case(
        "odd-anchor",
        {**object_of({"a": {"$ref": "#here"}}), "$defs": {"A": {"$anchor": "here", **object_of({"x": STRING})}}},
        (True, True),
    ),
    Case(
        "odd-ref-chain",
        {**object_of({"a": {"$ref": "#/$defs/A"}}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": STRING}},
        (True, True),
    ),
    Case(
        "odd-definitions-clash",
        {
            **object_of({"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/definitions/A"}}),
            "$defs": {"A": STRING},
            "definitions": {"A": INTEGER},
        },
        (True, True),
    ),
    Case(
        "odd-unused-definition",
        {**object_of({"a": STRING}), "$defs": {"Map": {"type": "object", "additionalProperties": STRING}}},
        (True, True),
    ),
    Case(
        "odd-nested-definitions",
        object_of({"a": {**object_of({"x": {"$ref": "#/properties/a/$defs/X"}}), "$defs": {"X": STRING}}}),
        (True, True),
    ),
    Case(
        "odd-ref-into-root-union",
        {
            **object_of({"a": {"$ref": "#/anyOf/0/properties/b"}}),
            "anyOf": [object_of({"b": STRING}), object_of({"c": STRING})],
        },
        (False,) * 2,
        ({"a": "x"},),
    ),
    Case(
        "odd-foreign-keywords",
        object_of({"a": {"type": "string", "minimum": 3, "items": STRING}, "b": {"type": "integer", "pattern": "x"}}),
        (True, True),
    ),
    Case("odd-typeless-object", object_of({"a": {"properties": {"x": STRING}, "required": ["x"]}}), (True, True)),
    Case(
        "odd-many-constraints",
        object_of(
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
    Case("odd-unevaluated", object_of({"a": STRING}, unevaluatedProperties=False), (True, True)),
    Case("odd-not", object_of({"a": {"type": "string", "not": {"const": "x"}}}), (False, False), ({"a": "y"},)),
    Case(
        "odd-contains",
        object_of({"a": {"type": "array", "items": INTEGER, "contains": {"const": 1}}}),
        (False, False),
        ({"a": [1]},),
    ),
    Case(
        "odd-mutual-recursion",
        {
            **object_of({"a": {"$ref": "#/$defs/A"}}),
            "$defs": {"A": object_of({"b": {"$ref": "#/$defs/B"}}), "B": object_of({"a": {"$ref": "#/$defs/A"}})},
        },
        (True, False),
    ),
    Case(
        "odd-recursive-with-description",
        {
            **object_of({"n": {"$ref": "#/$defs/N"}}),
            "$defs": {"N": object_of({"n": {"$ref": "#/$defs/N", "description": "next"}})},
        },
        (True, False),
    ),
    Case(
        "odd-deep",
        object_of(
            {"a": object_of({"b": object_of({"c": object_of({"d": object_of({"e": object_of({"f": STRING})})})})})}
        ),
        (True, True),
    ),
    Case(
        "odd-unicode-names",
        object_of({"naïve/key": STRING, "a~b": INTEGER, "": STRING, "日本": {"type": "boolean"}}, ""),
        (True, True),
    ),
]
