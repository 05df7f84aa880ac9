"""Schemas that cannot be meant are refused with their path, before any token is spent."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from pollux_like.errors import SchemaError, StructuredOutputError
from pollux_like.typed import Calls, ScriptedEngine, read_schema, typed
from pollux_like.typed.models import schema_of

from .cases import SCHEMA

EXTRACT: dict[str, Any] = {"type": "string", "extract": True}


def on(kind: str, when: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A field with one rule."""
    return {"type": kind, "on": [{"when": when, "do": "review"}], **more}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({}, "schema"),
        ([], "schema"),
        ({"a b": {"type": "int"}}, "schema"),
        ({f"f{n}": {"type": "int"} for n in range(65)}, "schema"),
        ({"a": {"type": "integer"}}, "schema.a.type"),
        ({"a": {"type": ["int"]}}, "schema.a.type"),
        ({"a": "int"}, "schema.a"),
        ({"a": {"type": "int", "extra": 1}}, "schema.a.extra"),
        ({"a": {"type": "int", "free_form": True}}, "schema.a.free_form"),
        ({"a": {"type": "int", "minimum": 5, "maximum": 4}}, "schema.a"),
        ({"a": {"type": "int", "minimum": 0.5}}, "schema.a.minimum"),
        ({"a": {"type": "date", "minimum": "2026-02-30"}}, "schema.a.minimum"),
        ({"a": {"type": "enum"}}, "schema.a.options"),
        ({"a": {"type": "enum", "options": []}}, "schema.a.options"),
        ({"a": {"type": "enum", "options": ["x", "x"]}}, "schema.a.options"),
        ({"a": {"type": "enum", "options": ["null"]}}, "schema.a.options[0]"),
        ({"a": {"type": "enum", "options": ["a\nb"]}}, "schema.a.options[0]"),
        ({"a": {**EXTRACT, "free_form": True}}, "schema.a"),
        ({"a": {"type": "string", "pattern": "x"}}, "schema.a"),
        ({"a": {**EXTRACT, "pattern": "("}}, "schema.a.pattern"),
        ({"a": {**EXTRACT, "pattern": "x" * 1001}}, "schema.a.pattern"),
        ({"a": {**EXTRACT, "pattern": "x", "format": "email"}}, "schema.a"),
        ({"a": {**EXTRACT, "format": "passport"}}, "schema.a.format"),
        ({"a": {"type": "int", "depends_on": ["b"]}}, "schema.a"),
        ({"a": {"type": "int", "depends_on": ["a"]}}, "schema"),
        ({"a": {"type": "int", "depends_on": ["b"]}, "b": {"type": "int", "depends_on": ["a"]}}, "schema"),
        ({"a": {"type": "int", "depends_on": "b"}, "b": {"type": "int"}}, "schema.a.depends_on"),
        ({"a": {"type": "list"}}, "schema.a.items"),
        ({"a": {"type": "list", "items": {"type": "string"}}}, "schema.a.items"),
        ({"a": {"type": "list", "items": {"type": "list", "items": {"type": "int"}}}}, "schema.a.items"),
        ({"a": {"type": "list", "items": {"type": "int"}, "max_items": 33}}, "schema.a.max_items"),
        ({"a": {"type": "call"}}, "schema.a.call"),
        ({"a": {"type": "call", "call": "unlisted"}}, "schema.a.call"),
        ({"a": {"type": "bool", "on": [{"when": {"eq": True}, "do": "call", "call": "no"}]}}, "schema.a.on[0].call"),
        ({"a": {"type": "bool", "on": [{"when": {}, "do": "review"}]}}, "schema.a.on[0]"),
        ({"a": {"type": "bool", "on": [{"when": {"is": True}, "do": "review"}]}}, "schema.a.on[0]"),
        ({"a": {"type": "bool", "on": [{"when": {"eq": True}, "do": "explode"}]}}, "schema.a.on[0].do"),
        ({"a": {"type": "bool", "on": [{"when": {"matches": "("}, "do": "review"}]}}, "schema.a.on[0].when.matches"),
        ({"a": {"type": "bool", "on": [{"when": {"confidence": 0.5}, "do": "review"}]}}, "schema.a.on[0].when.confidence"),
        ({"a": {"type": "string", "match": {"pattern": "x"}}}, "schema.a.match[0]"),
        ({"a": {"type": "bool", "claims": "b"}, "b": {"type": "bool"}}, "schema.a.claims"),
        ({"a": {"type": "string", "free_form": True, "authority": "fact"}}, "schema.a.authority"),
        ({"a": {"type": "int", "description": "\ud800"}}, "schema"),
        ({"a": {"type": "int", "claims": ""}}, "schema.a"),
        ({"a": {"type": "int", "minimum": 10**18}}, "schema.a"),
        ({"a": {"type": "float", "maximum": -(10**15)}}, "schema.a"),
        ({"a": {"type": "date", "maximum": "0999-12-31"}}, "schema.a"),
        ({"a": {"type": "date", "minimum": "20260101"}}, "schema.a.minimum"),
        ({"a": {"type": "int", "extract": True, "format": "email"}}, "schema.a.format"),
        ({"a": {"type": "date", "extract": True, "format": "iban"}}, "schema.a.format"),
        ({"a": {"type": "enum", "options": ["a\rb"]}}, "schema.a.options[0]"),
        ({"a": {"type": "enum", "options": ["a\x00"]}}, "schema.a.options[0]"),
        ({"a": {"type": "enum", "options": ["a\u2028b"]}}, "schema.a.options[0]"),
        ({"a": on("enum", {"eq": "aproved"}, options=["approved"])}, "schema.a.on[0].when.eq"),
        ({"a": on("enum", {"in": ["approved", "aproved"]}, options=["approved"])}, "schema.a.on[0].when.in"),
        ({"a": on("bool", {"eq": "true"})}, "schema.a.on[0].when.eq"),
        ({"a": on("bool", {"lt": 1})}, "schema.a.on[0].when.lt"),
        ({"a": on("int", {"eq": True})}, "schema.a.on[0].when.eq"),
        ({"a": on("int", {"gt": "5"})}, "schema.a.on[0].when.gt"),
        ({"a": on("float", {"matches": "5"})}, "schema.a.on[0].when.matches"),
        ({"a": on("date", {"lt": "1.2.2026"})}, "schema.a.on[0].when.lt"),
        ({"a": on("date", {"ne": 2026})}, "schema.a.on[0].when.ne"),
        ({"a": on("string", {"eq": 5}, extract=True)}, "schema.a.on[0].when.eq"),
        ({"a": on("string", {"confidence": {"lt": 0.5}}, free_form=True)}, "schema.a.on[0].when.confidence"),
        ({"a": on("list", {"eq": 5}, items={"type": "int"})}, "schema.a.on[0].when.eq"),
        ({"a": on("list", {"matches": "5"}, items={"type": "int"})}, "schema.a.on[0].when.matches"),
        ({"a": on("int", {"in": None})}, "schema.a.on[0].when.in"),
        ({"a": on("int", {"in": []})}, "schema.a.on[0].when.in"),
        ({"a": {"type": "int", "on": [{"when": {"eq": 1}, "do": "review"}] * 17}}, "schema.a.on"),
        ({"a": EXTRACT, "f": {"type": "int", "authority": "fact", "depends_on": ["a"]}}, "schema.f.depends_on"),
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_a_malformed_schema_is_refused_with_its_path(schema: Any, path: str) -> None:
    engine = ScriptedEngine()
    with pytest.raises(SchemaError) as refused:
        await typed([{"role": "user", "content": "x"}], schema, engine=engine)
    assert refused.value.path == path
    assert engine.opened == 0


def test_fields_come_after_what_they_depend_on() -> None:
    schema = {
        "c": {"type": "int", "depends_on": ["b"]},
        "b": {"type": "int", "depends_on": ["a"]},
        "a": {"type": "int"},
    }
    assert [one.name for one in read_schema(schema)] == ["a", "b", "c"]
    assert [one.name for one in read_schema(SCHEMA)] == ["policy_number", "reply"]


def test_every_test_that_can_hold_is_taken() -> None:
    fits: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("string", ["a"], {"extract": True}), ("int", [1, 1.5], {}), ("float", [1, 1.5], {}), ("bool", [True], {}),
        ("enum", ["a"], {"options": ["a"]}), ("date", ["2026-01-01"], {}), ("list", [["a"]], {"items": EXTRACT}),
        ("call", ["a", 1, True, [1]], {"call": "x"}),
    ]  # fmt: skip
    for kind, operands, more in fits:
        for operand in (*operands, None):
            read_schema({"a": on(kind, {"eq": operand, "ne": operand, "in": [operand]}, **more)})
            if kind not in ("bool", "list") and not isinstance(operand, (bool, list)) and operand is not None:
                read_schema({"a": on(kind, {"lt": operand, "gt": operand}, **more)})
        if kind in ("string", "enum", "date", "list", "call"):
            read_schema({"a": on(kind, {"matches": "a"}, **more)})
        if kind != "call":
            read_schema({"a": on(kind, {"confidence": {"lt": 0.5}}, **more)})


class Claim(BaseModel):
    policy_number: str | None = Field(None, pattern="[0-9]{16}")
    kind: Literal["inpatient", "outpatient"]
    people: int = Field(ge=1, le=9, description="How many people?")
    day: date
    tags: list[Literal["a", "b"]] = []
    note: str = Field("", json_schema_extra={"typed": {"free_form": True}})


def test_a_model_is_a_schema() -> None:
    made = schema_of(Claim)
    assert made["policy_number"] == {"nullable": True, "type": "string", "extract": True, "pattern": "[0-9]{16}"}
    assert made["people"]["minimum"] == 1
    assert made["people"]["description"] == "How many people?"
    assert made["day"] == {"type": "date"}
    assert made["tags"] == {"type": "list", "items": {"type": "enum", "options": ["a", "b"]}}
    assert made["note"] == {"type": "string", "free_form": True}
    read_schema(made)


@pytest.mark.anyio
async def test_a_model_in_and_its_instance_out() -> None:
    engine = ScriptedEngine({"people": "3", "day": "2026-03-14", "tags": ["b"], "kind": "inpatient"})
    answer = await typed([{"role": "user", "content": "Number 3201456789012345, please"}], Claim, engine=engine)
    claim = answer.instance()
    assert isinstance(claim, Claim)
    assert (claim.people, claim.day, claim.policy_number, claim.tags) == (
        3,
        date(2026, 3, 14),
        "3201456789012345",
        ["b"],
    )


@pytest.mark.anyio
async def test_an_instance_is_refused_where_a_field_failed() -> None:
    class Needs(BaseModel):
        number: str = Field(pattern="[0-9]{16}")

    answer = await typed([{"role": "user", "content": "none here"}], Needs, engine=ScriptedEngine())
    with pytest.raises(StructuredOutputError, match="number"):
        answer.instance()


def test_a_type_without_a_typed_form_is_refused() -> None:
    class Bad(BaseModel):
        bytes_: dict[str, int]

    with pytest.raises(SchemaError) as refused:
        schema_of(Bad)
    assert refused.value.path == "schema.bytes_"


@pytest.mark.anyio
async def test_a_call_gives_the_value_of_the_record_and_asks_no_model() -> None:
    engine = ScriptedEngine({"number": "7"})
    asked: list[dict[str, Any]] = []

    def status(values: dict[str, Any]) -> str:
        asked.append(values)
        return "pending"

    async def broken(values: dict[str, Any]) -> str:
        raise RuntimeError("secret of the record")

    schema = {
        "number": {"type": "int"},
        "status": {"type": "call", "call": "status", "depends_on": ["number"]},
        "gone": {"type": "call", "call": "broken"},
    }
    calls = Calls({"status": status, "broken": broken})
    answer = await typed([{"role": "user", "content": "It is approved."}], schema, engine=engine, calls=calls)
    assert answer.values == {"number": 7, "status": "pending", "gone": None}
    assert asked == [{"number": 7}]
    assert len(engine.prompts) == 1
    error = answer.fields["gone"].error
    assert error is not None
    assert error.code == "call_failed"
    assert "secret" not in str(answer.to_jsonable())


@pytest.mark.anyio
async def test_a_url_is_asked_as_listed_and_its_answer_is_bounded(served: Any) -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route

    asked: list[Any] = []

    async def good(request: Request) -> Response:
        asked.append(await request.json())
        return JSONResponse({"value": {"status": "pending"}})

    answers = {
        "/moved": RedirectResponse("/good"), "/large": PlainTextResponse("x" * 70_000), "/text": PlainTextResponse("pending"),
        "/other": JSONResponse({"status": 1}), "/broken": JSONResponse({"value": 1}, status_code=500),
    }  # fmt: skip

    async def bad(request: Request) -> Response:
        return answers[request.url.path]

    routes = [Route("/good", good, methods=["POST"]), *(Route(path, bad, methods=["POST"]) for path in answers)]
    address = served(Starlette(routes=routes))
    names = ["good", *(path[1:] for path in answers)]
    calls = Calls(urls=[f"{address}/{name}" for name in names])
    schema: dict[str, Any] = {"n": {"type": "int"}}
    schema |= {name: {"type": "call", "call": f"{address}/{name}", "depends_on": ["n"]} for name in names}
    engine = ScriptedEngine({"n": "7"})
    answer = await typed([{"role": "user", "content": "x"}], schema, engine=engine, calls=calls)
    assert answer.values["good"] == {"status": "pending"}
    assert asked == [{"field": "good", "values": {"n": 7}}]
    for path in answers:
        error = answer.fields[path[1:]].error
        assert error is not None, path
        assert error.code == "call_failed"
    with pytest.raises(SchemaError):
        await typed(
            context="x", schema={"a": {"type": "call", "call": f"{address}/good?x=1"}}, engine=engine, calls=calls
        )
