"""Compacting portable history: at completed boundaries only, and never a call without its result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux_like import ConfigurationError, Environment, Input, Message, ToolCall, compact, interact
from pollux_like.pairing import pair
from pollux_like.testing.script import say
from pollux_like.testing.scripted import Scripted

CALLS = (ToolCall("c1", "f", "{}"), ToolCall("c2", "f", "{}"))


def round_of(name: str, *, tools: int = 0, questions: int = 1, answered: bool = True) -> list[Message]:
    """A round: questions, some tool steps of two calls each, an answer."""
    messages = [Message("user", f"{name} q{n}") for n in range(questions)]
    for _ in range(tools):
        messages += [Message("assistant", "", CALLS), *(Message("tool", "r", tool_call_id=c.id) for c in CALLS)]
    return messages + ([Message("assistant", f"{name} a")] if answered else [])


A, B, C = round_of("a", tools=2), round_of("b", questions=2), round_of("c", tools=1)


@pytest.mark.parametrize(("keep", "kept"), [(1, C), (2, B + C), (3, A + B + C), (9, A + B + C)])
def test_the_last_rounds_stay_whole(keep: int, kept: list[Message]) -> None:
    done = compact(A + B + C, keep_last=keep)
    assert list(done.history) == kept
    assert list(done.dropped + done.history) == A + B + C


def test_a_round_that_waits_for_the_model_counts() -> None:
    open_round = round_of("d", tools=1, answered=False)
    assert list(compact(A + open_round, keep_last=1).history) == open_round


def test_a_summary_stands_before_what_is_kept() -> None:
    done = compact(A + B + C, keep_last=1, summary="They talked.")
    assert list(done.history) == [Message("user", "They talked."), *C]
    assert list(done.dropped) == A + B


@pytest.mark.parametrize(
    ("history", "more", "message"),
    [
        ([*A, Message("user", "q"), Message("assistant", "", CALLS)], {}, "wait for their results"),
        ([*A, Message("user", "q"), Message("assistant", "", CALLS), Message("tool", "r", tool_call_id="c1")], {}, "unanswered"),
        ([Message("assistant", "hello")], {}, "role assistant"),
        (A, {"keep_last": 0}, "keep_last"),
        (A, {"keep_last": True}, "keep_last"),
        (A, {"summary": "s"}, "nothing of 1 rounds"),
        (A + B, {"summary": "  "}, "summary"),
        ("text", {}, "history"),
        ([{"role": "user"}], {}, "history"),
    ],
)  # fmt: skip
def test_what_cannot_be_cut_is_refused(history: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        compact(history, **{"keep_last": 1, **more})


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=8),
    st.booleans(),
    st.integers(1, 9),
)
def test_every_cut_is_a_history_again(rounds: list[tuple[int, int]], answered: bool, keep: int) -> None:
    history = [
        message
        for number, (tools, questions) in enumerate(rounds)
        for message in round_of(
            str(number), tools=tools, questions=questions, answered=answered or number + 1 < len(rounds)
        )
    ]
    done = compact(history, keep_last=keep)
    assert done.dropped + done.history == tuple(history)
    for part in (done.history, done.dropped):
        assert pair((), part) == (part, ())
        assert not part or part[0].role == "user"
    assert sum(m.role == "assistant" and not m.tool_calls for m in done.history) <= keep


def test_an_empty_history_stays_empty() -> None:
    assert compact([], keep_last=1).history == ()


@pytest.mark.anyio
async def test_a_conversation_goes_on_from_the_cut() -> None:
    model = Scripted([say("fine")])
    done = compact(A + B + C, keep_last=1, summary="They talked.")
    output = await interact(Environment(), Input("And now?", history=done.history), model.config)
    assert output.text == "fine"
    assert [message["role"] for message in model.requests[0].messages] == [
        "user",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
