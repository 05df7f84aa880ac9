"""Every schema of the corpus in both of Gemini's forms: legal there, and never narrower than its author meant."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from schemas.case import Case
from schemas.corpus import CASES
from schemas.instances import as_json_schema, is_valid, samples

from pollux_like.schemas import normalise
from pollux_like.schemas.walker import nodes

FIELDS = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
    "default", "items", "minimum", "maximum",
}  # fmt: skip
"""The fields of `Schema` in google-genai 3.6.1, but for those that older endpoints do not know."""

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
every_form = pytest.mark.parametrize("form", ["gemini", "gemini-openapi"])


def illegal(schema: dict[str, Any], path: str = "") -> list[str]:
    """What the reduced form does not have."""
    found = [f"{path}: {key}" for key in schema if key not in FIELDS]
    if not isinstance(schema.get("type", ""), str):
        found.append(f"{path}: type is a list")
    if "enum" in schema and (schema.get("type") != "string" or not all(isinstance(one, str) for one in schema["enum"])):
        found.append(f"{path}: an enum of no strings")
    found += [
        f"{path}: {name} is no property" for name in schema.get("required", ()) if name not in schema["properties"]
    ]
    children = {**schema.get("properties", {}), **dict(enumerate(schema.get("anyOf", ())))}
    if "items" in schema:
        children["items"] = schema["items"]
    return found + [one for name, child in children.items() for one in illegal(child, f"{path}/{name}")]


@every_case
def test_the_reduced_form_has_nothing_that_is_refused(case: Case) -> None:
    normal = normalise(case.schema, "gemini-openapi", strict=True, name=case.name)
    assert illegal(normal.schema) == []
    assert normal.schema["type"] == "object"


@every_case
def test_the_json_form_is_without_what_is_refused(case: Case) -> None:
    for _, node in nodes(normalise(case.schema, "gemini", strict=True, name=case.name).schema):
        assert not {"$schema", "additionalProperties", "const"} & node.keys()
        assert "$ref" not in node or len(node) == 1


@every_form
@every_case
def test_the_callers_schema_stays_and_the_form_is_stable(case: Case, form: str) -> None:
    before = copy.deepcopy(case.schema)
    once = normalise(case.schema, form, strict=True, name=case.name)
    assert case.schema == before
    assert normalise(case.schema, form, strict=False, name=case.name).schema == once.schema


@every_form
@every_case
def test_what_the_author_accepts_is_accepted(case: Case, form: str) -> None:
    meant = as_json_schema(case.schema or {})
    sent = as_json_schema(normalise(case.schema, form, strict=True, name=case.name).schema)
    given = [one for one in [*case.valid, *samples(meant, Random(1), 20)] if is_valid(meant, one)]
    assert [one for one in given if not is_valid(sent, one)] == []
