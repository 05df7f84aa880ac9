"""The table of conversations on every provider, down every road: the next request is the same on all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import table

from pollux_like import Continuation, Output
from pollux_like.simulator import Simulator
from pollux_like.testing import CONVERSATIONS, Conversation

CASES = [
    pytest.param(target, conversation, id=f"{target.name}: {conversation.name}")
    for target in table.TARGETS
    for conversation in CONVERSATIONS
    if not conversation.needs & target.lacks
]


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    """One seeded simulator: after each reset it gives the same ids and signatures."""
    with Simulator(seed=7) as running:
        yield running


@pytest.fixture(scope="module")
def worker() -> Iterator[subprocess.Popen[str]]:
    """A second process, which knows of a conversation only what it is handed."""
    command = [sys.executable, str(Path(__file__).parent / "worker.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


async def play(
    sim: Simulator, target: table.Target, conversation: Conversation, *, streamed: bool, saved: bool
) -> tuple[list[bytes], list[Output]]:
    """Each request as it was sent, and each output."""
    outputs: list[Output] = []
    continuation: Continuation | None = None
    sim.reset()
    for number, step in enumerate(conversation.steps):
        sim.reply(step.answer)
        output = await table.take(
            table.environment(conversation),
            table.given(conversation, number, continuation),
            table.config(table.url(sim, target), target),
            target.arguments(conversation),
            streamed=streamed,
        )
        outputs.append(output)
        continuation = table.through_json(output.continuation) if saved else output.continuation
    assert len(sim.requests) == len(conversation.steps)
    return [table.sent(request.raw) for request in sim.requests], outputs


def hand_over(
    sim: Simulator, target: table.Target, conversation: Conversation, pipe: tuple[IO[str], IO[str]]
) -> list[bytes]:
    """Every turn in the other process, from saved state alone."""
    continuation: Any = None
    sim.reset()
    for number, step in enumerate(conversation.steps):
        sim.reply(step.answer)
        order = {"conversation": conversation.name, "target": target.name, "step": number,
                 "continuation": continuation, "url": table.url(sim, target)}  # fmt: skip
        pipe[0].write(json.dumps(order) + "\n")
        pipe[0].flush()
        continuation = json.loads(pipe[1].readline())
    return [table.sent(request.raw) for request in sim.requests]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("target", "conversation"), CASES)
async def test_every_road_sends_the_same(
    sim: Simulator, worker: subprocess.Popen[str], target: table.Target, conversation: Conversation
) -> None:
    direct, outputs = await play(sim, target, conversation, streamed=False, saved=False)
    for step, output in zip(conversation.steps, outputs, strict=True):
        assert output.finish.status == step.status
        assert output.continuation is not None
        assert output.usage.input_tokens + output.usage.output_tokens == output.usage.total_tokens
    for streamed, saved in ((False, True), (True, False), (True, True)):
        requests, others = await play(sim, target, conversation, streamed=streamed, saved=saved)
        assert requests == direct
        assert [one.text for one in others] == [one.text for one in outputs]
        assert [one.reasoning for one in others] == [one.reasoning for one in outputs]
        assert [shown(one) for one in others] == [shown(one) for one in outputs]
        assert [one.structured for one in others] == [one.structured for one in outputs]
        assert [one.usage.output_tokens for one in others] == [one.usage.output_tokens for one in outputs]
        assert [one.finish for one in others] == [one.finish for one in outputs]
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert hand_over(sim, target, conversation, (worker.stdin, worker.stdout)) == direct


def shown(output: Output) -> list[object]:
    """Calls and messages; the text of a cut call is Anthropic's to show, and its unstreamed body does not."""
    calls = [(call.id, call.name, call.arguments, call.arguments and call.arguments_text) for call in output.tool_calls]
    return [calls, [(message.role, message.content, len(message.tool_calls)) for message in output.messages]]


def test_the_table_has_at_least_thirty_conversations() -> None:
    assert len({conversation.name for conversation in CONVERSATIONS}) == len(CONVERSATIONS) >= 30
