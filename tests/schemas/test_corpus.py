"""Every schema of the corpus for every target: legal there, the caller's dict untouched, the meaning kept."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from schemas import legal
from schemas.case import Case
from schemas.corpus import CASES
from schemas.instances import as_json_schema, as_reported, is_valid, said, same_meaning, samples, tags_of, unconstrained

from pollux_like.schemas import clean_arguments, normalise
from pollux_like.schemas.anthropic import count_strict_costs

MODES = [("openai", True), ("openai", False), ("anthropic", True), ("anthropic", False), ("plain", False)]
CHECKERS: dict[tuple[str, bool], Callable[[dict[str, Any]], Iterator[str]]] = {
    ("openai", True): legal.openai_strict,
    ("openai", False): legal.openai_loose,
    ("anthropic", True): legal.anthropic_strict,
    ("anthropic", False): legal.anthropic_loose,
    ("plain", False): legal.plain,
}

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
every_mode = pytest.mark.parametrize(("dialect", "strict"), MODES)


def original(case: Case) -> dict[str, Any]:
    """What the author meant; a schema without any parameter means a call without arguments."""
    schema = as_json_schema(case.schema or {})
    return {**schema, "type": "object", "additionalProperties": False} if _asks_nothing(schema) else schema


def _asks_nothing(schema: dict[str, Any]) -> bool:
    return set(schema) <= {"type", "title", "description", "$schema"}


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@every_mode
@every_case
def test_legal_for_the_target(case: Case, dialect: str, strict: bool) -> None:
    result = normalise(case.schema, dialect, strict=strict, name=case.name)
    assert list(CHECKERS[dialect, result.strict](result.schema)) == []


@every_case
def test_strict_where_the_subset_can_say_it(case: Case) -> None:
    results = [normalise(case.schema, dialect, strict=True, name=case.name) for dialect in ("openai", "anthropic")]
    assert tuple(result.strict for result in results) == case.strict
    for result in results:
        why = [loss for loss in result.losses if "strict mode was not used" in loss]
        assert len(why) == (not result.strict)
        assert all(case.name in loss for loss in result.losses)


@every_case
def test_what_cannot_be_strict_comes_back_in_its_loose_form(case: Case) -> None:
    for dialect in ("openai", "anthropic"):
        asked = normalise(case.schema, dialect, strict=True, name=case.name)
        if not asked.strict:
            assert asked.schema == normalise(case.schema, dialect, strict=False, name=case.name).schema


@every_mode
@every_case
def test_the_callers_schema_is_untouched_and_not_shared(case: Case, dialect: str, strict: bool) -> None:
    before = copy.deepcopy(case.schema)
    result = normalise(case.schema, dialect, strict=strict, name=case.name)
    _spoil(result.schema)
    assert case.schema == before
    assert json.dumps(case.schema) == json.dumps(before)


def _spoil(value: Any) -> None:
    if isinstance(value, dict):
        for child in value.values():
            _spoil(child)
        value["spoiled"] = True
    elif isinstance(value, list):
        for child in value:
            _spoil(child)
        value.append("spoiled")


@every_mode
@every_case
def test_normalising_again_changes_nothing(case: Case, dialect: str, strict: bool) -> None:
    once = normalise(case.schema, dialect, strict=strict, name=case.name)
    again = normalise(once.schema, dialect, strict=once.strict, name=case.name)
    assert json.dumps(again.schema) == json.dumps(once.schema)
    assert again.strict == once.strict


@every_mode
@every_case
def test_what_the_original_accepts_can_be_said(case: Case, dialect: str, strict: bool) -> None:
    result = normalise(case.schema, dialect, strict=strict, name=case.name)
    schema = as_reported(original(case), result.losses)
    target = as_json_schema(result.schema)
    found = [*case.valid, *samples(schema, Random(1), 20)]
    assert found
    for value in found:
        assert is_valid(schema, value)
        spoken = said(target, target, value, tags_of(case.schema)) if result.strict else value
        assert is_valid(target, spoken), (value, spoken)
        cleaned = clean_arguments(case.schema, spoken)
        assert is_valid(schema, cleaned), (value, spoken, cleaned)
        assert same_meaning(cleaned, value, tags_of(case.schema))


@every_mode
@every_case
def test_what_the_target_accepts_the_original_accepts_once_clean(case: Case, dialect: str, strict: bool) -> None:
    result = normalise(case.schema, dialect, strict=strict, name=case.name)
    target = as_json_schema(result.schema)
    found = samples(target, Random(2), 20)
    assert found or case.valid
    if '"$ref": "#/anyOf' in json.dumps(case.schema) and not result.strict:
        pytest.skip("what is told only in the description is also referred to")
    meant = unconstrained(as_reported(original(case), result.losses), result.losses)
    for value in found:
        before = copy.deepcopy(value)
        assert is_valid(meant, clean_arguments(case.schema, value)), (value, clean_arguments(case.schema, value))
        assert value == before


@every_case
def test_keywords_that_go_away_are_reported(case: Case) -> None:
    for dialect in ("openai", "anthropic"):
        result = normalise(case.schema, dialect, strict=True, name=case.name)
        if not result.strict:
            continue
        kept = {key for _, node in legal.walk(result.schema) if isinstance(node, dict) for key in node}
        text = "\n".join(result.losses)
        for key in _meaningful(case.schema or {}) - kept:
            assert repr(key) in text, (key, result.losses)


_SAID_OTHERWISE = {
    "$schema",
    "$anchor",
    "$comment",
    "discriminator",
    "nullable",
    "definitions",
    "$defs",
    "allOf",
    "$ref",
}
_SAID_OTHERWISE |= {"prefixItems", "additionalItems", "unevaluatedProperties", "oneOf", "const", "anyOf", "required"}


def _meaningful(schema: dict[str, Any]) -> set[str]:
    reached = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    nodes = [node for _, node in legal.walk(reached) if isinstance(node, dict)]
    keys = {key for node in nodes for key in node if (key, node[key]) not in ((("default", None)), ("minItems", 0))}
    return keys - _SAID_OTHERWISE


@every_case
def test_the_costs_of_a_strict_schema_are_counted(case: Case) -> None:
    result = normalise(case.schema, "anthropic", strict=True, name=case.name)
    if result.strict:
        costs = count_strict_costs(result.schema)
        text = json.dumps(result.schema)
        assert costs.unions >= text.count('"anyOf": [')
        assert (costs.optional > 0) == any(
            set(node.get("properties", {})) - set(node.get("required", []))
            for _, node in legal.walk(result.schema)
            if isinstance(node, dict)
        )
