"""Sealed continuations: opened by the right key and context, and refused in the same words for every other reason."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux_like import ConfigurationError, Continuation, ContinuationError, ContinuationSealer, Environment, Input
from pollux_like.sync import interact
from pollux_like.testing.script import call, say, think
from pollux_like.testing.scripted import Scripted

KEY, OTHER = ContinuationSealer.new_key(), ContinuationSealer.new_key()
SEALER = ContinuationSealer([KEY])
WHO = {"tenant": "t1", "user": "u1"}
TOKEN = SEALER.seal_text("what is sealed", context=WHO)


@pytest.fixture(scope="module")
def state() -> Continuation:
    model = Scripted([think("CODEWORD"), say("CODEWORD \u2603\u0000"), call("f", {"a": 1}, id="c1")])
    made = interact(Environment(), Input("CODEWORD"), model.config).continuation
    assert made is not None
    return made


def refused(token: Any, sealer: ContinuationSealer = SEALER, **more: Any) -> str:
    with pytest.raises(ContinuationError) as caught:
        sealer.unseal(token, **more)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_what_is_sealed_comes_back(state: Continuation) -> None:
    token = SEALER.seal(state, context=WHO)
    assert set(token) <= set(string.ascii_letters + string.digits + "-_.")
    assert SEALER.unseal(token, context=dict(reversed(WHO.items()))) == state
    assert ContinuationSealer([OTHER, base64.urlsafe_b64decode(KEY)]).unseal(token, context=WHO) == state


def test_nothing_can_be_read_and_no_two_tokens_are_alike(state: Continuation) -> None:
    one, two = SEALER.seal(state), SEALER.seal(state)
    assert one.split(".")[2][:32] != two.split(".")[2][:32]
    raw = base64.urlsafe_b64decode(one.split(".")[2] + "==")
    for word in (b"CODEWORD", b"native", b"scripted"):
        assert word not in raw


def test_every_refusal_says_the_same(state: Continuation, monkeypatch: pytest.MonkeyPatch) -> None:
    token = SEALER.seal(state, context=WHO, ttl_s=60)
    mark, name, body = token.split(".")
    said = {
        refused(token),
        refused(token, context={**WHO, "user": "u2"}),
        refused(token, context={**WHO, "more": ""}),
        refused(token, ContinuationSealer([OTHER]), context=WHO),
        refused(token[:-1], context=WHO),
        refused(f"{mark}.{name}.{body[:40]}", context=WHO),
        refused(f"{mark}.{name}.", context=WHO),
        refused(f"plx2.{name}.{body}", context=WHO),
        refused(f"{mark}.{'0' * 8}.{body}", context=WHO),
        refused(token + "A", context=WHO),
        refused(f"{token}.x", context=WHO),
        refused("", context=WHO),
        refused("\u2603", context=WHO),
        refused(None, context=WHO),
        refused(SEALER.seal_text("no continuation", context=WHO), context=WHO),
        refused(SEALER.seal_text("[]", context=WHO), context=WHO),
        refused(SEALER.seal_text('{"expires": "x", "continuation": {}}', context=WHO), context=WHO),
    }
    import time

    now = time.time()
    monkeypatch.setattr("pollux_like.sealing.time.time", lambda: now + 61)
    said.add(refused(token, context=WHO))
    assert len(said) == 1


@given(st.data())
def test_no_changed_token_is_opened(data: st.DataObject) -> None:
    token = TOKEN
    at = data.draw(st.integers(0, len(token) - 1))
    changed = (
        token[:at] + data.draw(st.sampled_from([c for c in string.ascii_letters if c != token[at]])) + token[at + 1 :]
    )
    with pytest.raises(ContinuationError):
        SEALER.unseal_text(changed, context=WHO)


def test_a_token_lives_as_long_as_it_was_given(state: Continuation, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("pollux_like.sealing.time.time", lambda: now)
    token = SEALER.seal(state, ttl_s=10)
    now += 9.9
    assert SEALER.unseal(token) == state
    now += 0.1
    refused(token)


def test_rotation(state: Continuation) -> None:
    old = SEALER.seal(state)
    both, new = ContinuationSealer([OTHER, KEY]), ContinuationSealer([OTHER])
    assert not both.is_current(old)
    fresh = both.seal(both.unseal(old))
    assert both.is_current(fresh)
    assert new.unseal(fresh) == state
    refused(old, new)


@pytest.mark.parametrize(
    "keys", [[], "", KEY, b"x" * 32, [b"short"], ["?" * 44], ["A" * 44 + "A"], [KEY, KEY], [None], [b"x" * 33]]
)
def test_keys_that_are_none_are_refused(keys: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ContinuationSealer(keys)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "act",
    [
        lambda state: SEALER.seal("x"),
        lambda state: SEALER.seal(state, ttl_s=0),
        lambda state: SEALER.seal(state, ttl_s=True),
        lambda state: SEALER.seal(state, context={"user": 1}),
        lambda state: SEALER.unseal("x", context={"user": None}),
    ],
)
def test_bad_arguments_are_the_callers_mistake(act: Any, state: Continuation) -> None:
    with pytest.raises(ConfigurationError):
        act(state)


def test_a_foreign_provider_is_told_apart_only_by_who_can_open_it(state: Continuation) -> None:
    with pytest.raises(ContinuationError, match="openai"):
        SEALER.unseal(SEALER.seal(state), expected_provider="openai")


def test_the_sealer_shows_and_hands_on_no_key() -> None:
    shown = repr(SEALER) + str(SEALER)
    assert KEY not in shown
    assert not re.search(r"[0-9a-f]{8}", shown)
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="keys"):
            copying(SEALER)


def test_the_saved_form_inside_is_the_one_of_the_door(state: Continuation) -> None:
    inside = json.loads(SEALER.unseal_text(SEALER.seal(state)))
    assert inside == {"expires": None, "continuation": state.to_jsonable()}


@pytest.mark.parametrize(
    "context", [{1: "1"}, {1: "1", "a": "b"}, ["u"], "u", {"u": 1}, {"u": "\ud800"}, {"\ud800": "u"}]
)
def test_a_context_that_cannot_be_bound_is_said_first(state: Continuation, context: Any) -> None:
    """Before the token is looked at: it is the caller's mistake, not the token's."""
    for attempt in (
        lambda: SEALER.seal(state, context=context), lambda: SEALER.seal_text("x", context=context),
        lambda: SEALER.unseal("no token", context=context), lambda: SEALER.unseal_text("no token", context=context),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError):
            attempt()


def test_what_is_no_token_is_not_current() -> None:
    for value in (None, 5, b"plx1", "", "plx1."):
        given: Any = value
        assert SEALER.is_current(given) is False
    assert SEALER.is_current(TOKEN) is True


def test_a_text_that_is_none_is_refused() -> None:
    for value in (5, None, "\ud800"):
        given: Any = value
        with pytest.raises(ConfigurationError):
            SEALER.seal_text(given)


def test_a_sealed_text_of_any_depth_is_no_continuation() -> None:
    refused(SEALER.seal_text("[" * 100_000))
