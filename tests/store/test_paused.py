"""A turn that the model paused goes on in the store, durable like any other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pollux_like import ConfigurationError, Environment, Input
from pollux_like.store import Conversation, ConversationStore
from pollux_like.testing import Scripted, answer, say

pytestmark = pytest.mark.anyio
ENV = Environment()


async def paused(store: ConversationStore) -> Conversation:
    conversation = await store.create("a", scope="t")
    output = await conversation.interact(ENV, Input("Search"), Scripted(answer(say("So far"), finish="pause")).config)
    assert output.finish.status == "pause"
    return conversation


async def test_it_goes_on_by_resume_and_by_its_own_state(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        await paused(store)
        conversation = await store.load("a", scope="t")
        with pytest.raises(ConfigurationError, match="paused"):
            await conversation.interact(ENV, Input("Something else"), Scripted().config)
        model = Scripted(answer(say("more"), finish="pause"), [say("Done")], [say("Yes")])
        assert (await conversation.resume(ENV, model.config)).finish.status == "pause"
        own = Input(continuation=conversation.continuation)
        async with conversation.stream(ENV, own, model.config, key="k") as events:
            kinds = [event.type async for event in events]
        assert kinds[-1] == "done"
        assert (await conversation.interact(ENV, own, model.config, key="k")).text == "Done"
        with pytest.raises(ConfigurationError, match="complete"):
            await conversation.resume(ENV, model.config)
        await conversation.interact(ENV, Input("Next"), model.config)
        loaded = await store.load("a", scope="t")
        said = [[message.content for message in shown.messages] for shown in await loaded.transcript()]
        assert said == [["Search", "So far"], ["more"], ["Done"], ["Next", "Yes"]]
        assert (await store.verify(scope="t")).problems == ()


async def test_a_crash_while_it_goes_on_is_taken_up(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        conversation = await paused(store)
        with pytest.raises(OSError, match="down"):
            await conversation.resume(ENV, Scripted(OSError("down")).config)
        other = await store.load("a", scope="t")
        assert other.pending is not None
        assert other.pending.content is None
        assert (await other.resume(ENV, Scripted([say("Done")]).config)).text == "Done"
        assert (await store.load("a", scope="t")).pending is None


async def test_no_other_state_is_taken(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        conversation = await paused(store)
        stale = conversation.continuation
        model = Scripted(answer(say("more"), finish="pause"))
        await conversation.resume(ENV, model.config)
        with pytest.raises(ConfigurationError, match="continuation is given"):
            await conversation.interact(ENV, Input(continuation=stale), model.config)
        assert conversation.turns == 2
