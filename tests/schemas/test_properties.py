"""Generated schemas, properties named like keywords included: legal, unchanged, and still meaning the same."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemas.instances import as_json_schema, as_reported, is_valid, said, same_meaning, samples, tags_of
from schemas.test_corpus import CHECKERS, MODES

from pollux_like.errors import ConfigurationError
from pollux_like.schemas import check_schema, clean_arguments, normalise

NAMES = st.sampled_from(
    [
        "a",
        "b",
        "properties",
        "required",
        "type",
        "title",
        "$ref",
        "enum",
        "default",
        "items",
        "anyOf",
        "not",
        "x/y",
        "é~",
    ]
)
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "title": st.just("properties"),
        "description": st.just("required"),
        "examples": st.just([{"type": "string"}]),
        "x-note": st.just({"$ref": "#/nowhere"}),
    },
)
SCALARS = st.one_of(
    st.just({"type": "string"}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "boolean"}),
    st.just({"type": "string", "nullable": True}),
    st.just({"type": ["integer", "string"]}),
    st.builds(lambda n: {"type": "integer", "minimum": n, "maximum": n + 5}, st.integers(-3, 3)),
    st.builds(lambda n: {"type": "string", "minLength": n, "format": "uri"}, st.integers(0, 2)),
    st.builds(lambda v: {"enum": v}, st.lists(st.sampled_from(["a", 1, None, True, 2.5]), min_size=1, unique_by=repr)),
    st.builds(lambda v: {"const": v}, st.sampled_from(["a", 1, False, None])),
    st.sampled_from([{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B", "description": "d"}, {"$ref": "#"}]),
    st.sampled_from([{}, True, False, {"type": "object"}, {"type": "array"}]),
)


def _objects(children: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    def build(properties: dict[str, Any], required: list[str], closed: Any, more: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in dict.fromkeys(required) if name in properties]
        schema = {"type": "object", "properties": properties, "required": names, **more}
        return schema if closed is None else {**schema, "additionalProperties": closed}

    closings = st.sampled_from([None, None, None, False, False, True, {"type": "string"}])
    return st.builds(build, st.dictionaries(NAMES, children, max_size=4), st.lists(NAMES, max_size=4), closings, TOLD)


def _extend(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        _objects(children),
        st.builds(lambda items, n: {"type": "array", "items": items, "minItems": n}, children, st.integers(0, 2)),
        st.builds(lambda items: {"type": "array", "items": items, "uniqueItems": True}, children),
        st.builds(
            lambda key, parts: {key: parts},
            st.sampled_from(["anyOf", "oneOf"]),
            st.lists(children, min_size=1, max_size=3),
        ),
        st.builds(lambda parts: {"allOf": parts}, st.lists(children, min_size=1, max_size=2)),
        st.builds(lambda parts: {"type": "array", "prefixItems": parts}, st.lists(children, min_size=1, max_size=2)),
    )


NODES = st.recursive(SCALARS, _extend, max_leaves=8)
SCHEMAS = st.builds(
    lambda root, a, b: {**root, "$defs": {"A": a, "B": b}}, _objects(NODES), _objects(SCALARS), NODES
)  # fmt: skip
SLOW_IS_FINE = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def usable(schema: dict[str, Any]) -> bool:
    """Generated definitions may refer to themselves only, or leave nothing valid; those are refused, not normalised."""
    try:
        check_schema(schema, name="t")
    except ConfigurationError:
        return False
    return True


@SLOW_IS_FINE
@given(SCHEMAS)
def test_legal_stable_and_without_side_effects(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    if not usable(schema):
        return
    for dialect, strict in MODES:
        once = normalise(schema, dialect, strict=strict, name="t")
        assert list(CHECKERS[dialect, once.strict](once.schema)) == []
        again = normalise(once.schema, dialect, strict=once.strict, name="t")
        assert (again.strict, json.dumps(again.schema)) == (once.strict, json.dumps(once.schema))
        assert strict or not once.strict
        assert not strict or once.strict or "strict mode was not used" in once.losses[0]
    assert schema == before


@SLOW_IS_FINE
@given(SCHEMAS, st.integers(0, 1000))
def test_what_the_original_accepts_can_be_said_and_comes_back(schema: dict[str, Any], seed: int) -> None:
    if not usable(schema):
        return
    for dialect in ("openai", "anthropic"):
        result = normalise(schema, dialect, strict=True, name="t")
        meant = as_reported(as_json_schema(schema), result.losses)
        target = as_json_schema(result.schema)
        tags = tags_of(schema)
        for value in samples(meant, Random(seed), 4):
            spoken = said(target, target, value, tags) if result.strict else value
            assert is_valid(target, spoken), (value, spoken)
            cleaned = clean_arguments(schema, spoken)
            assert is_valid(meant, cleaned), (value, spoken, cleaned)
            assert same_meaning(cleaned, value, tags)


@SLOW_IS_FINE
@given(SCHEMAS, st.integers(0, 1000))
def test_what_the_target_accepts_the_original_accepts_once_clean(schema: dict[str, Any], seed: int) -> None:
    if not usable(schema):
        return
    for dialect in ("openai", "anthropic"):
        result = normalise(schema, dialect, strict=True, name="t")
        meant = as_reported(as_json_schema(schema), result.losses)
        target = as_json_schema(result.schema)
        for value in samples(target, Random(seed), 4):
            cleaned = clean_arguments(schema, value)
            assert is_valid(meant, cleaned), (value, cleaned)
            assert clean_arguments(schema, cleaned) is cleaned


@SLOW_IS_FINE
@given(
    SCHEMAS,
    st.recursive(
        st.sampled_from([None, 1, "a", True]), lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES, v, max_size=3)
    ),
)
def test_cleaning_only_ever_drops_nulls(schema: dict[str, Any], value: Any) -> None:
    if not usable(schema):
        return
    arguments = {"a": value, "b": value, "properties": value}
    before = copy.deepcopy(arguments)
    cleaned = clean_arguments(schema, arguments)
    assert arguments == before
    _only_nulls_went(arguments, cleaned)


def _only_nulls_went(before: Any, after: Any) -> None:
    if isinstance(before, dict):
        assert all(name in after or child is None for name, child in before.items())
        assert list(after) == [name for name in before if name in after]
        for name, child in after.items():
            _only_nulls_went(before[name], child)
    elif isinstance(before, list):
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            _only_nulls_went(old, new)
    else:
        assert after is before
