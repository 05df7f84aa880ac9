"""The way back: nulls that only strict mode asked for are dropped, all others stay."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pollux_like.schemas import clean_arguments

STRING: dict[str, Any] = {"type": "string"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}


def of(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


NODE = of("v", v={"type": "integer"}, next={"$ref": "#/$defs/N"}, note=STRING)
UNION = {"anyOf": [of("k", k={"const": "a"}, x=STRING), of("k", k={"const": "b"}, x=MAYBE)]}

CASES: list[tuple[str, Any, Any, Any]] = [
    ("optional", of("a", a=STRING, b=STRING), {"a": "1", "b": None}, {"a": "1"}),
    ("nullable stays", of("a", a=STRING, b=MAYBE), {"a": "1", "b": None}, {"a": "1", "b": None}),
    ("openapi nullable stays", of(b={"type": "string", "nullable": True}), {"b": None}, {"b": None}),
    ("null in an enum stays", of(b={"enum": ["x", None]}), {"b": None}, {"b": None}),
    ("null outside an enum", of(b={"enum": ["x"]}), {"b": None}, {}),
    ("const", of(b={"const": 1}), {"b": None}, {}),
    ("any value stays", of(b={}), {"b": None}, {"b": None}),
    ("described only stays", of(b={"description": "x"}), {"b": None}, {"b": None}),
    ("required stays", of("b", b=STRING), {"b": None}, {"b": None}),
    ("undeclared stays", of(a=STRING), {"zzz": None}, {"zzz": None}),
    ("nested", of(o=of(p=STRING, q=of(r=STRING))), {"o": {"p": None, "q": {"r": None}}}, {"o": {"q": {}}}),
    (
        "items",
        of(l={"type": "array", "items": of(p=STRING)}),
        {"l": [{"p": None}, {"p": "x"}]},
        {"l": [{}, {"p": "x"}]},
    ),
    ("null elements stay", of(l={"type": "array", "items": STRING}), {"l": [None, "a"]}, {"l": [None, "a"]}),
    (
        "tuple places",
        of(l={"type": "array", "prefixItems": [of(p=STRING)], "items": of(q=STRING)}),
        {"l": [{"p": None, "q": None}, {"p": None, "q": None}]},
        {"l": [{"q": None}, {"p": None}]},
    ),
    (
        "draft-07 tuple places",
        of(l={"type": "array", "items": [of(p=STRING)], "additionalItems": of(q=STRING)}),
        {"l": [{"p": None}, {"q": None}]},
        {"l": [{}, {}]},
    ),
    ("map values", of(m={"additionalProperties": of(p=STRING)}), {"m": {"k": {"p": None}}}, {"m": {"k": {}}}),
    ("map entries stay", of(m={"additionalProperties": STRING}), {"m": {"k": None}}, {"m": {"k": None}}),
    ("free data stays", of(m={"type": "object"}), {"m": {"p": None, "q": [None]}}, {"m": {"p": None, "q": [None]}}),
    (
        "recursive",
        {**of(n={"$ref": "#/$defs/N"}), "$defs": {"N": NODE}},
        {"n": {"v": 1, "note": None, "next": {"v": 2, "note": "x", "next": None}}},
        {"n": {"v": 1, "next": {"v": 2, "note": "x"}}},
    ),
    (
        "to the root",
        of("v", v=STRING, n={"$ref": "#"}),
        {"v": "1", "n": {"v": "2", "n": None}},
        {"v": "1", "n": {"v": "2"}},
    ),
    ("first branch", of(u=UNION), {"u": {"k": "a", "x": None}}, {"u": {"k": "a"}}),
    ("second branch", of(u=UNION), {"u": {"k": "b", "x": None}}, {"u": {"k": "b", "x": None}}),
    ("one of", of(u={"oneOf": UNION["anyOf"]}), {"u": {"k": "a", "x": None}}, {"u": {"k": "a"}}),
    ("optional union", of(u={"anyOf": [STRING, of(x=STRING)]}), {"u": None}, {}),
    ("no branch fits", of(u=UNION), {"u": {"k": "c", "x": None}}, {"u": {"k": "c", "x": None}}),
    (
        "a branch fits as it is",
        of(u={"anyOf": [of(x=STRING), {"type": "object"}]}),
        {"u": {"x": None}},
        {"u": {"x": None}},
    ),
    ("all of", of(o={"allOf": [of(p=STRING), of("q", q=STRING)]}), {"o": {"p": None, "q": "1"}}, {"o": {"q": "1"}}),
    (
        "required elsewhere",
        of(o={"allOf": [of(p=STRING), {"required": ["p"]}]}),
        {"o": {"p": None}},
        {"o": {"p": None}},
    ),
    ("one part rejects", of(o={"allOf": [of(p=MAYBE), of(p=STRING)]}), {"o": {"p": None}}, {"o": {}}),
    ("one of twice null", of(p={"oneOf": [MAYBE, {"type": "null"}]}), {"p": None}, {}),
    ("not null", of(p={"not": {"type": "null"}}), {"p": None}, {}),
    (
        "then",
        of(o={"if": of("k", k={"const": 1}), "then": of(p=STRING), "else": of(q=STRING)}),
        {"o": {"k": 1, "p": None, "q": None}},
        {"o": {"k": 1, "q": None}},
    ),
    (
        "else",
        of(o={"if": of("k", k={"const": 1}), "then": of(p=STRING), "else": of(q=STRING)}),
        {"o": {"k": 2, "p": None, "q": None}},
        {"o": {"k": 2, "p": None}},
    ),
    (
        "named like keywords",
        of(properties=STRING, required=of(items=STRING)),
        {"properties": None, "required": {"items": None}},
        {"required": {}},
    ),
    ("no schema", None, {"a": None}, {"a": None}),
]


@pytest.mark.parametrize(("schema", "arguments", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_nulls(schema: Any, arguments: Any, expected: Any) -> None:
    before = copy.deepcopy((schema, arguments))
    result = clean_arguments(schema, arguments)
    assert result == expected
    assert (schema, arguments) == before
    assert (result is arguments) == (arguments == expected)


def test_only_what_changed_is_new() -> None:
    schema = of(kept=of(p=MAYBE), changed=of(p=STRING))
    arguments = {"kept": {"p": None}, "changed": {"p": None}}
    result = clean_arguments(schema, arguments)
    assert result == {"kept": {"p": None}, "changed": {}}
    assert result["kept"] is arguments["kept"]


def test_key_order_stays() -> None:
    result = clean_arguments(of(z=STRING, a=STRING, m=STRING), {"z": "1", "a": None, "m": "2"})
    assert list(result) == ["z", "m"]


def test_unions_inside_unions_stay_linear() -> None:
    """Fifty levels with two branches each are 2**50 ways where nothing is remembered: this would never end."""
    branch = [of("t", t={"const": tag}, child={"$ref": "#/$defs/U"}, x=STRING) for tag in ("a", "b")]
    schema = {**of(u={"$ref": "#/$defs/U"}), "$defs": {"U": {"anyOf": branch}}}
    value: Any = {"t": "b", "x": None}
    expected: Any = {"t": "b"}
    for _ in range(40):
        value, expected = {"t": "b", "x": None, "child": value}, {"t": "b", "child": expected}
    assert clean_arguments(schema, {"u": value}) == {"u": expected}


@pytest.mark.parametrize(
    "definition",
    [
        {"anyOf": [{"$ref": "#/$defs/A"}, STRING]},
        {"allOf": [{"$ref": "#/$defs/A"}]},
        {"$ref": "#/$defs/A", "title": "A"},
    ],
)
def test_schemas_that_consist_of_themselves_end(definition: Any) -> None:
    schema = {**of("b", a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/A"}), "$defs": {"A": definition}}
    assert clean_arguments(schema, {"b": {"x": None}}) == {"b": {"x": None}}
