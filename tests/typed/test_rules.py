"""Rules act in code: what each test means, and what each action leaves."""

from __future__ import annotations

from typing import Any

import anyio.lowlevel
import pytest

from pollux_like.typed import Calls, ScriptedEngine, rules, typed
from pollux_like.typed.rules import read_rules

HELLO = [{"role": "user", "content": "Hello"}]


def holds(when: dict[str, Any], value: Any, confidence: float | None = None) -> bool:
    (rule,) = read_rules([{"when": when, "do": "review"}], "on")
    return rules.holds(rule, value, confidence)


@pytest.mark.parametrize(
    ("when", "value", "confidence", "expected"),
    [
        ({"eq": True}, True, None, True), ({"eq": True}, 1, None, False), ({"eq": 1}, 1.0, None, True),
        ({"eq": None}, None, None, True), ({"ne": "a"}, "b", None, True), ({"ne": "a"}, None, None, True),
        ({"lt": 5}, 4, None, True), ({"lt": 5}, None, None, False), ({"lt": 5}, "4", None, False),
        ({"gt": "2026-01-01"}, "2026-03-01", None, True), ({"gt": 0}, True, None, False),
        ({"in": ["a", 1]}, 1, None, True), ({"in": [1]}, True, None, False), ({"eq": [True]}, [1], None, False), ({"eq": [1]}, [1], None, True),
        ({"matches": "(?i)app.*"}, "APProved", None, True), ({"matches": "app"}, "approved", None, False),
        ({"matches": "a"}, 1, None, False), ({"matches": "b"}, ["a", "b"], None, True),
        ({"confidence": {"lt": 0.8}}, 1, 0.5, True), ({"confidence": {"lt": 0.8}}, 1, None, True),
        ({"confidence": {"gt": 0.8}}, 1, None, False), ({"confidence": {"lt": 0.8}}, None, None, False),
        ({"confidence": {"lt": 0.8, "gt": 0.6}}, 1, 0.5, False),
        ({"eq": "a", "confidence": {"gt": 0.4}}, "a", 0.5, True), ({"eq": "b", "confidence": {"gt": 0.4}}, "a", 0.5, False),
    ],
)  # fmt: skip
def test_a_test_holds_for(when: dict[str, Any], value: Any, confidence: float | None, expected: bool) -> None:
    assert holds(when, value, confidence) is expected


def test_an_expression_that_does_not_finish_counts_as_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux_like.typed.patterns.TIMEOUT_S", 0.01)
    assert holds({"matches": "(.*a){25}b"}, "a" * 3000)


@pytest.mark.anyio
async def test_what_each_action_leaves() -> None:
    def on(do: str, **more: str) -> dict[str, Any]:
        return {"type": "int", "on": [{"when": {"eq": 7}, "do": do, **more}]}

    schema = {
        "review": on("review"), "reject": on("reject"), "null": on("null"), "call": on("call", call="record"),
        "broken": on("call", call="broken"), "other": {"type": "int", "on": [{"when": {"eq": 8}, "do": "reject"}]},
    }  # fmt: skip
    calls = Calls({"record": lambda values: values["call"] * 2, "broken": lambda values: float("nan")})
    answer = await typed(HELLO, schema, engine=ScriptedEngine(dict.fromkeys(schema, "7")), calls=calls)
    assert answer.values == {"review": 7, "reject": None, "null": None, "call": 14, "broken": None, "other": 7}
    decisions = {name: field.decision for name, field in answer.fields.items()}
    assert decisions == {
        "review": "review", "reject": "reject", "null": "accept", "call": "accept", "broken": "review", "other": "accept",
    }  # fmt: skip
    assert answer.fields["null"].status == "missing"
    assert answer.fields["call"].confidence is None
    assert answer.fields["reject"].rules[0].rule == "on[0]"
    assert answer.fields["broken"].error is not None
    assert answer.fields["other"].rules == ()


@pytest.mark.anyio
async def test_a_review_does_not_undo_a_rejection() -> None:
    match = [{"pattern": ".*bad.*", "do": "reject"}, {"pattern": ".*", "do": "review"}]
    schema = {"reply": {"type": "string", "free_form": True, "match": match}}
    answer = await typed(HELLO, schema, engine=ScriptedEngine({"reply": "so bad"}))
    assert (answer.values["reply"], answer.fields["reply"].decision) == (None, "reject")


@pytest.mark.anyio
async def test_known_values_are_those_a_field_depends_on() -> None:
    engine = ScriptedEngine({"a": "7", "c": "8"})
    schema = {"a": {"type": "int"}, "b": {"type": "int"}, "c": {"type": "int", "depends_on": ["a"]}}
    await typed(HELLO, schema, engine=engine)
    asked = [prompt.ask.text.splitlines()[0] for prompt in engine.prompts if prompt.ask]
    assert asked == ["Known values: none", "Known values: none", "Known values: a = 7"]
    assert len({prompt.shared for prompt in engine.prompts}) == 1


@pytest.mark.anyio
async def test_a_value_outside_of_its_bounds_is_an_error_of_its_field() -> None:
    schema = {"a": {"type": "int", "minimum": 5}, "b": {"type": "date", "maximum": "2026-01-01"}}
    engine = ScriptedEngine({"a": "4", "b": "2026-02-30"})
    answer = await typed(HELLO, schema, engine=engine)
    assert [field.error.code for field in answer.fields.values() if field.error] == ["out_of_bounds", "out_of_bounds"]


async def ruled(on: list[dict[str, Any]], calls: Calls | None = None) -> Any:
    schema = {"a": {"type": "int", "on": on}}
    answer = await typed(HELLO, schema, engine=ScriptedEngine({"a": "7"}), calls=calls)
    return answer.fields["a"]


@pytest.mark.anyio
async def test_a_call_undoes_no_rule_that_the_caller_wrote() -> None:
    calls = Calls({"record": lambda values: 9})
    asked = {"when": {"eq": 7}, "do": "call", "call": "record"}
    field = await ruled([{"when": {"eq": 7}, "do": "review"}, asked], calls)
    assert (field.value, field.decision) == (9, "review")
    field = await ruled([{"when": {"eq": 7}, "do": "reject"}, {**asked, "when": {"eq": None}}], calls)
    assert (field.value, field.decision) == (None, "reject")


@pytest.mark.anyio
async def test_the_loop_goes_on_while_an_expression_works() -> None:
    """The event loop takes turns until the rule's thread is through, so other requests are served meanwhile."""
    schema = {
        "a": {
            "type": "string",
            "free_form": True,
            "max_tokens": 1024,
            "match": {"pattern": "(.*a){25}b", "do": "review"},
        }
    }
    turns, decision = 0, ""

    async def ask() -> None:
        nonlocal decision
        answer = await typed(HELLO, schema, engine=ScriptedEngine({"a": "a" * 1000}))
        decision = answer.fields["a"].decision

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while not decision:
            turns += 1
            await anyio.lowlevel.checkpoint()
    assert decision == "review"
    assert turns > 4000, "one turn per token of the engine, and no more, where the loop stands still"
