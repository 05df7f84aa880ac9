"""The simulator's vLLM refuses what vLLM refuses, and keeps the constraint whatever was scripted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing import say

ASKED: dict[str, Any] = {"model": "Qwen/Qwen3-8B", "messages": [{"role": "user", "content": "Which? " * 40}]}


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


def ask(sim: Simulator, **more: Any) -> httpx2.Response:
    url = f"{sim.base_url('vllm')}/chat/completions"
    return httpx2.post(url, json={**ASKED, **more}, headers={"authorization": "Bearer sim-key"})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"continue_final_message": True}, "add_generation_prompt"),
        ({"logprobs": True, "top_logprobs": 21}, "max allowed: 20"),
        ({"top_logprobs": 2}, "must be set to true"),
        ({"structured_outputs": {"choice": ["a"], "regex": "a"}}, "one kind of constraint"),
    ],
)
def test_refusals(sim: Simulator, more: dict[str, Any], says: str) -> None:
    answer = ask(sim, **more)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("wanted", "scripted", "said"),
    [
        ({"choice": [" a", " b"]}, "b", " b"), ({"choice": [" a", " b"]}, "c", " a"), ({"regex": " [0-9]+"}, "7", " 7"),
        ({"regex": " [0-9]+| null"}, "x", " null"), ({}, "free", "free"),
    ],
)  # fmt: skip
def test_a_reply_keeps_its_constraint(sim: Simulator, wanted: dict[str, Any], scripted: str, said: str) -> None:
    sim.reset()
    sim.reply(say(scripted))
    more = {"structured_outputs": wanted} if wanted else {}
    assert ask(sim, **more).json()["choices"][0]["message"]["content"] == said


def test_choices_share_their_probability_and_prompts_their_blocks(sim: Simulator) -> None:
    sim.reset()
    sim.reply(say("a"), times=2)
    more = {"structured_outputs": {"choice": [" a", " b"]}, "logprobs": True, "top_logprobs": 20}
    first, second = ask(sim, **more).json(), ask(sim, **more).json()
    blank, letter = first["choices"][0]["logprobs"]["content"]
    assert blank["logprob"] == 0.0
    assert {one["token"] for one in letter["top_logprobs"]} == {"a", "b"}
    cached = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in (first, second)]
    assert cached[0] == 0
    assert cached[1] > 0
    assert cached[1] % 16 == 0
