"""JSON text is cut without changing a byte: what is no JSON is refused, and long strings cost no memory of their own."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux_like import canonical

BLANK = st.text(" \t\n\r", max_size=3)
STRING = st.lists(
    st.sampled_from(["a", "é", "\\u00e9", '\\"', "\\\\", "\\/", "\\ud83d", "native", '":[', '\\"native\\":[', "]", "}", ","]),
    max_size=4,
).map(lambda parts: f'"{"".join(parts)}"')  # fmt: skip
SCALAR = STRING | st.sampled_from(["0", "-0", "1.50", "1E5", "12345678901234567890123", "true", "null", "1e999"])
KEY = STRING | st.sampled_from(['"native"', '"a"', '"\\\\"', '""'])


def _array(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(BLANK, st.lists(inner, max_size=3), BLANK).map(
        lambda made: f"[{made[0]}{f'{made[2]},{made[0]}'.join(made[1])}{made[2]}]"
    )


def _object(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(KEY, BLANK, inner, BLANK).map(lambda made: f"{made[0]}{made[1]}:{made[3]}{made[2]}{made[3]}")
    return st.tuples(BLANK, st.lists(member, max_size=3), BLANK).map(
        lambda made: f"{made[0]}{{{made[2]}{f',{made[0]}'.join(made[1])}}}{made[2]}"
    )


VALUE = st.recursive(SCALAR, lambda inner: _array(inner) | _object(inner), max_leaves=8)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """JSON as a provider may spell it, or that with one character more or less."""
    text = draw(_object(VALUE) | _array(VALUE) | VALUE)
    if draw(st.booleans()):
        return text
    at = draw(st.integers(0, len(text)))
    return draw(st.sampled_from([text[:at], text[at:], text[:at] + text[at + 1 :], f"{text[:at]}]{text[at:]}", f"{text},", f"{text}{{"]))  # fmt: skip


@given(texts())
def test_what_is_cut_is_what_a_parser_reads(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        parts = canonical.members(text)
        assert {key: json.loads(part) for key, part in parts.items()} == value
        assert {name: canonical.member(text, name) for name in ("native", "a") if name in parts} == {
            name: parts[name] for name in ("native", "a") if name in parts
        }
    else:
        with pytest.raises(canonical.JSONPolicyError):
            canonical.members(text)
    if isinstance(value, list):
        assert [json.loads(part) for part in canonical.elements(text)] == value
    else:
        with pytest.raises(canonical.JSONPolicyError):
            canonical.elements(text)


@given(texts())
def test_a_line_is_taken_only_where_it_is_json_that_ends_in_the_items(text: str) -> None:
    try:
        head, items = canonical.unspliced(text, "native")
    except canonical.JSONPolicyError:
        return
    assert json.loads(text) == {**head, "native": [json.loads(item) for item in items]}
    assert list(json.loads(text))[-1] == "native"


@pytest.mark.parametrize("piece", ["plain text ", 'quoted \\" text ', "\\\\"])
def test_a_long_string_costs_no_more_than_its_text(piece: str) -> None:
    text = f'["{piece * (2_000_000 // len(piece))}"]'
    tracemalloc.start()
    try:
        assert canonical.elements(text) == (text[1:-1],)
        canonical.check_depth(text + "[" * canonical.MAX_DEPTH)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(text)
