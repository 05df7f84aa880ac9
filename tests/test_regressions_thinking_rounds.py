"""Rounds of thinking models that are legal and were refused, or illegal and were sent."""

from __future__ import annotations

from typing import Any

import pytest
from wires import reloaded

from pollux_like import Config, ConfigurationError, Environment, Input, Output, ToolDeclaration, ToolResult
from pollux_like.simulator import Simulator
from pollux_like.sync import interact
from pollux_like.testing import Answer, answer, call, say, server_tool, think

ENV = Environment(tools=[ToolDeclaration("f")])
BUDGET: dict[str, Any] = {"reasoning_budget_tokens": 2048}


def call_f(number: int) -> Any:
    return call("f", id=f"toolu_{number}")


def play(model: str, answers: list[Answer], arguments: list[dict[str, Any]]) -> Output:
    """Each answer in a turn of its own, through saved state."""
    output: Output | None = None
    with Simulator() as sim:
        config = Config("anthropic", model, api_key="sim-key", base_url=sim.base_url("anthropic"), max_attempts=1)
        for said, given in zip(answers, arguments, strict=True):
            sim.reply(said)
            turn = Input("Go", history=[])
            if output is not None:
                state = reloaded(output.continuation)
                results = [ToolResult(one.id, "1") for one in state.pending_tool_calls]
                turn = Input(continuation=state, tool_results=results)
            output = interact(ENV, turn, config, **given)
    assert output is not None
    return output


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-opus-5-5"])
def test_a_model_that_thinks_unasked_finishes_its_tool_round(model: str) -> None:
    said = [answer(think("Hm"), call_f(1)), answer(say("Done"))]
    assert play(model, said, [{}, {}]).text == "Done"


def test_without_interleaved_thinking_only_the_first_step_of_a_round_thinks() -> None:
    said = [answer(think("Hm"), call_f(1)), answer(call_f(2)), answer(call_f(3)), answer(say("Done"))]
    assert play("claude-haiku-4-5", said, [BUDGET] * 4).text == "Done"


def test_a_call_after_a_pause_stands_in_the_round_that_the_thinking_opened() -> None:
    paused = answer(think("Hm"), server_tool("web_search", {"query": "x"}), finish="pause")
    said = [paused, answer(say("So"), call_f(1)), answer(say("Done"))]
    assert play("claude-haiku-4-5", said, [BUDGET] * 3).text == "Done"


@pytest.mark.parametrize(
    "first",
    [answer(think("Hm"), call_f(1)), answer(think("Hm"), server_tool("web_search", {}), finish="pause")],
    ids=["calls", "pause"],
)
def test_thinking_that_ends_inside_its_round_is_refused_here(first: Answer) -> None:
    with pytest.raises(ConfigurationError, match="began with thinking"):
        play("claude-haiku-4-5", [first, answer(say("Done"))], [BUDGET, {}])


def test_thinking_switched_off_inside_a_round_is_refused_for_models_that_think_unasked() -> None:
    with pytest.raises(ConfigurationError, match="began with thinking"):
        play("claude-sonnet-5", [answer(think("Hm"), call_f(1)), answer()], [{}, {"reasoning_effort": "none"}])
