"""Your own agent, with whichever SDK, under test against a strict stand-in of the vendor's API.

Problem: an agent is green with mocks and fails in production, because a mock takes what the real API refuses.
Run: python -m cookbook run agent_under_test
Needs `pip install pytest`. Or as tests: `pytest cookbook/agent_under_test.py`. The agent is plain code over the OpenAI
SDK. It knows nothing of this library, and is pointed at the simulator by `base_url` alone.
Success check: four lines end in "passed": the loop answers, a busy server is asked again, a stream that breaks is not
taken for an answer, and the bug - a call that is left without its output - is found in the API's own words.
Real model: none; that is the point. In CI unset the vendor's key, so that no test can reach it by accident.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from openai import APIConnectionError, BadRequestError, OpenAI

from pollux_like.simulator import Simulator
from pollux_like.testing import call, say

TOOLS: list[Any] = [{"type": "function", "name": "get_weather", "strict": False, "parameters": {"type": "object"}}]


def agent(client: OpenAI, question: str, *, forgetful: bool = False) -> str:
    """The code under test: a tool loop, written by hand. `forgetful` is a bug to be found."""
    items: list[Any] = [{"role": "user", "content": question}]
    for _ in range(8):
        response = client.responses.create(model="gpt-5-nano", input=items, tools=TOOLS, store=False)
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        for wanted in calls[1:] if forgetful else calls:
            result = json.dumps({"temp_f": 62, **json.loads(wanted.arguments)})
            items.append({"type": "function_call_output", "call_id": wanted.call_id, "output": result})
    raise RuntimeError("no answer after 8 turns")


def streamed(client: OpenAI, question: str) -> str:
    """The code under test: only a response that completed is an answer."""
    with client.responses.stream(model="gpt-5-nano", input=question, store=False) as events:
        done = [event.response.output_text for event in events if event.type == "response.completed"]
    return done[0]


def test_the_loop_answers() -> None:
    with Simulator() as sim, OpenAI(base_url=sim.base_url("openai"), api_key="sim-key") as client:
        sim.reply(call("get_weather", {"city": "Oslo"}, id="call_1"), call("get_weather", {"city": "Bergen"}))
        sim.reply(say("Both are cold."))
        assert agent(client, "Oslo or Bergen?") == "Both are cold."
        outputs = [item for item in sim.requests[-1].body["input"] if item.get("type") == "function_call_output"]
        assert json.loads(outputs[0]["output"]) == {"temp_f": 62, "city": "Oslo"}
        assert (len(outputs), sim.left) == (2, 0)


def test_a_busy_server_is_asked_again() -> None:
    with Simulator() as sim, OpenAI(base_url=sim.base_url("openai"), api_key="sim-key") as client:
        sim.fail(429, retry_after=0.01)
        sim.reply(say("Hello"))
        assert agent(client, "Hi") == "Hello"
        assert [request.status for request in sim.requests] == [429, 200]


def test_a_stream_that_breaks_is_no_answer() -> None:
    with Simulator() as sim, OpenAI(base_url=sim.base_url("openai"), api_key="sim-key") as client:
        sim.fault(say("This will not come whole."), cut_after=6)
        with pytest.raises(APIConnectionError):
            streamed(client, "Hi")
        assert [request.status for request in sim.requests] == [200]  # nothing was asked twice


def test_a_call_without_its_output_is_found() -> None:
    with Simulator() as sim, OpenAI(base_url=sim.base_url("openai"), api_key="sim-key") as client:
        sim.reply(call("get_weather", {"city": "Oslo"}, id="call_1"))
        with pytest.raises(BadRequestError, match="No tool output found for function call call_1"):
            agent(client, "How is Oslo?", forgetful=True)


def main() -> None:
    """Run the tests without a test runner."""
    tests: dict[str, Callable[[], None]] = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name, test in tests.items():
        test()
        print(f"{name}: passed")


if __name__ == "__main__":
    main()
