"""handoff: what goes to another provider, and every loss by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import table
from pollux_like_gemini.render import STAND_IN

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


SAMPLE = ("parallel calls, results out of order", "thinking and a tool", "server tool", "history with foreign ids")
"""What goes to the further targets of a provider too; its first target takes the whole table."""
FIRST = {target.provider: target.name for target in reversed(table.TARGETS)}
SIGNATURE = re.compile(r'"thoughtSignature":"([^"]*)"')


def takers(first: table.Target, conversation: Conversation) -> list[table.Target]:
    """The targets of other dialects that the conversation is handed to."""
    others = [one for one in table.TARGETS if (one.provider, one.options) != (first.provider, first.options)]
    return [one for one in others if conversation.name in SAMPLE or one.name == FIRST[one.provider]]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # one loop for a target's whole table: clients live as long
@pytest.mark.parametrize("first", table.TARGETS, ids=lambda one: one.name)
async def test_every_conversation_goes_on_elsewhere(sim: Simulator, first: table.Target) -> None:
    """The strict stand-in of each other provider takes the history, with the first open calls and at the end."""
    for conversation in CONVERSATIONS:
        if conversation.needs & first.lacks:
            continue
        try:
            await goes_on_elsewhere(sim, first, conversation)
        except Exception as error:
            error.add_note(f"in the conversation {conversation.name!r}")
            raise
        sim.reset()


async def goes_on_elsewhere(sim: Simulator, first: table.Target, conversation: Conversation) -> None:
    """A conversation on the first target, handed to each taker."""
    continuation: Continuation | None = None
    opened = False
    for number, step in enumerate(conversation.steps):
        sim.reply(step.answer)
        output = await table.take(
            table.environment(conversation), table.given(conversation, number, continuation),
            table.config(table.url(sim, first), first), first.arguments(conversation), streamed=False,
        )  # fmt: skip
        continuation = output.continuation
        assert continuation is not None
        opens = bool(continuation.pending_tool_calls) and not opened
        opened = opened or opens
        for second in takers(first, conversation) if opens or number == len(conversation.steps) - 1 else ():
            await taken_over(sim, second, conversation, continuation)


async def taken_over(sim: Simulator, to: table.Target, conversation: Conversation, state: Continuation) -> None:
    """The other provider goes on from the portable history, and gets nothing that the first one signed."""
    results = [ToolResult(one.id, "done") for one in state.pending_tool_calls]
    given = handoff(state)
    assert all(isinstance(message, Message) for message in given.history)
    sim.reply(say("I take over."))
    other = await interact(
        Environment(instructions="Be brief.", tools=conversation.tools),
        Input("Go on, please.", history=given.history, tool_results=results),
        table.config(table.url(sim, to), to),
        provider_options={to.provider: dict(to.options)},
    )
    assert other.text == "I take over.", to.name
    assert sim.requests[-1].status == 200
    body = sim.requests[-1].raw.decode()
    marks = ('"signature"', 'encrypted_content":', "redacted_thinking", '"reasoning"')
    assert not [mark for mark in marks if mark in body], to.name
    assert set(SIGNATURE.findall(body)) <= {STAND_IN}, to.name


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
