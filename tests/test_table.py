"""The table of conversations on every provider, down every road: the next request is the same on all of them."""

from __future__ import annotations

from collections.abc import Iterator

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
    """One seeded simulator: each road meets the same ids and signatures."""
    with Simulator(seed=7) as running:
        yield running


async def play(
    sim: Simulator, target: table.Target, conversation: Conversation, *, streamed: bool, saved: bool
) -> tuple[list[bytes], list[Output]]:
    """Each request as it was sent, and each output."""
    outputs: list[Output] = []
    continuation: Continuation | None = None
    with Simulator(seed=7) as sim:
        for number, step in enumerate(conversation.steps):
            sim.reply(step.answer)
            output = await table.take(
                table.environment(conversation), table.given(conversation, number, continuation),
                table.config(sim, target), target.arguments(conversation), streamed=streamed,
            )  # fmt: skip
            outputs.append(output)
            continuation = table.through_json(output.continuation) if saved else output.continuation
        assert len(sim.requests) == len(conversation.steps)
        return [table.sent(request.raw) for request in sim.requests], outputs


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("target", "conversation"), CASES)
async def test_every_road_sends_the_same(sim: Simulator, target: table.Target, conversation: Conversation) -> None:
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


def shown(output: Output) -> list[object]:
    """Calls and messages; the text of a cut call is Anthropic's to show, and its unstreamed body does not."""
    calls = [(call.id, call.name, call.arguments, call.arguments and call.arguments_text) for call in output.tool_calls]
    return [calls, [(message.role, message.content, len(message.tool_calls)) for message in output.messages]]


def test_the_table_has_at_least_thirty_conversations() -> None:
    assert len({conversation.name for conversation in CONVERSATIONS}) == len(CONVERSATIONS) >= 30
