"""handoff: what goes to another provider, and every loss by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import table

from pollux_like import Config, Continuation, Environment, Input, Message, Source, ToolResult, handoff, interact
from pollux_like.simulator import Simulator
from pollux_like.testing import CONVERSATIONS, Conversation, Scripted, call, redacted, say, think
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio
ENV = Environment(instructions="Be brief.", tools=TOOLS)


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


PAIRS = [
    (a, b) for a in table.TARGETS for b in table.TARGETS if a.provider != b.provider and "-" not in a.name + b.name
]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].name} to {pair[1].name}")
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.name)
async def test_every_conversation_goes_on_elsewhere(
    sim: Simulator, pair: tuple[table.Target, table.Target], conversation: Conversation
) -> None:
    """The strict stand-in of the other provider takes the history, with and without open calls."""
    first, second = pair
    if conversation.needs & first.lacks:
        pytest.skip(f"{first.name} lacks {', '.join(conversation.needs & first.lacks)}")
    continuation: Continuation | None = None
    for number, step in enumerate(conversation.steps):
        sim.reply(step.answer)
        output = await table.take(
            table.environment(conversation), table.given(conversation, number, continuation),
            table.config(table.url(sim, first), first), first.arguments(conversation), streamed=False,
        )  # fmt: skip
        continuation = output.continuation
        assert continuation is not None
        results = [ToolResult(one.id, "done") for one in continuation.pending_tool_calls]
        given = handoff(continuation)
        assert all(isinstance(message, Message) for message in given.history)
        sim.reply(say("I take over."))
        other = await interact(
            Environment(instructions="Be brief.", tools=conversation.tools),
            Input("Go on, please.", history=given.history, tool_results=results),
            table.config(table.url(sim, second), second),
        )
        assert other.text == "I take over."
        assert sim.requests[-1].status == 200
        body = sim.requests[-1].raw.decode()
        assert not any(
            word in body for word in ('"signature"', 'encrypted_content":', "redacted_thinking", '"reasoning"')
        )
    sim.reset()


async def test_losses_are_named_and_nothing_is_invented() -> None:
    model = Scripted([think("Hm"), redacted(), say("Hello"), call("get_time", id="c1")], [think("only")], [say("Bye")])
    picture = Source.from_bytes(b"\x89PNG", mime_type="image/png")
    one = await interact(ENV, Input("Hi", sources=[picture]), model.config)
    open_round = handoff(one.continuation) if one.continuation else None
    assert open_round is not None
    assert open_round.history[-1].tool_calls[0].id == "c1"
    results = [ToolResult("c1", "12")]
    two = await interact(
        ENV, Input(continuation=one.continuation, tool_results=results, sources=[picture]), model.config
    )
    three = await interact(ENV, Input("And?", continuation=two.continuation), model.config)
    assert three.continuation is not None
    given = handoff(three.continuation)
    assert [message.role for message in given.history] == ["user", "assistant", "tool", "user", "assistant"]
    assert "Hm" not in [message.content for message in given.history]
    said = "\n".join(given.losses)
    assert "turn 1: 1 sources" in said
    assert "turn 1: an item of type reasoning" in said
    assert "turn 1: an item of type redacted" in said
    assert "turn 2: the answer held no text and no tool call" in said
    assert handoff(three.continuation) == given


async def test_the_continuation_of_one_provider_is_refused_by_another_until_it_is_handed_over(sim: Simulator) -> None:
    from pollux_like import ConfigurationError

    sim.reset()
    to = Config("openai", "gpt-5.2", api_key="sim-key", base_url=sim.base_url("openai"))
    other = Config("anthropic", "claude-opus-4-6", api_key="sim-key", base_url=sim.base_url("anthropic"))
    first = await interact(ENV, Input("Hi", history=[]), to)
    with pytest.raises(ConfigurationError, match="handoff"):
        await interact(ENV, Input("x", continuation=first.continuation), other)
    assert len(sim.requests) == 1
