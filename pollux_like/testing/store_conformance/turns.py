"""Turns: one writer, durable input, keys, what is stored of them."""

from __future__ import annotations

from datetime import timedelta

import anyio

from pollux_like.errors import (
    APIError,
    ConfigurationError,
    ConflictError,
    IdempotencyError,
    PendingInputError,
    StoreError,
    StructuredOutputError,
    UnknownConversationError,
)
from pollux_like.input import Input
from pollux_like.messages import Message, ToolResult
from pollux_like.output import Output
from pollux_like.store import Conversation
from pollux_like.testing.script import answer, call, refuse, say, think
from pollux_like.testing.scripted import Scripted
from pollux_like.testing.store_conformance.support import ENV, Factory, refused, scope, searched, talked, texts
from pollux_like.turn import interact


async def a_conversation_goes_on_from_the_store(factory: Factory) -> None:
    """The next request is the one that the continuation in memory would give, to the letter."""
    async with factory() as store:
        tenant, model = scope(), Scripted([think("Hm"), say("Hello")], [say("Fine")], [say("Fine")])
        conversation = await store.create("talk", scope=tenant)
        first = await conversation.interact(ENV, Input("Hi"), model.config)
        loaded = await store.load("talk", scope=tenant)
        assert loaded.continuation == first.continuation
        assert (loaded.turns, loaded.revision) == (1, conversation.revision)
        await loaded.interact(ENV, Input("How are you?"), model.config)
        await interact(ENV, Input("How are you?", continuation=first.continuation), model.config)
        assert model.requests[1].body == model.requests[2].body


async def ids_are_unique_and_unknown_ones_are_an_error(factory: Factory) -> None:
    """Create, load, fork, delete, each with an id that is taken or missing."""
    async with factory() as store:
        tenant = scope()
        await talked(store, tenant, "one", id="a")
        taken = await refused(ConflictError, store.create("a", scope=tenant))
        assert (taken.expected, taken.actual) == (0, 2)
        await refused(ConflictError, store.fork("a", "a", scope=tenant))
        await refused(UnknownConversationError, store.load("b", scope=tenant))
        await refused(UnknownConversationError, store.fork("b", scope=tenant))
        await refused(UnknownConversationError, store.delete("b", scope=tenant))
        assert (await store.load("a", scope=tenant)).turns == 1


async def names_are_held_to_one_rule(factory: Factory) -> None:
    """What one database could not store is refused on all."""
    async with factory() as store:
        for name in ("", "  ", "a\0b", "a\nb", "\ud800", "x" * 256):
            await refused(ConfigurationError, store.create(name, scope="t"))
            await refused(ConfigurationError, store.create(scope=name))
            await refused(ConfigurationError, store.create(scope="t", title=name))
            for made in (store.load(name, scope="t"), store.delete(name, scope="t"), store.fork(name, scope="t")):
                await refused(ConfigurationError, made)
            one, model = await store.create(scope=scope()), Scripted()
            await refused(ConfigurationError, one.interact(ENV, Input("x"), model.config, key=name))
        longest = "é" * 255
        assert (await store.create(longest, scope=scope(), title=longest)).title == longest


async def a_scope_sees_only_its_own(factory: Factory) -> None:
    """A conversation of another tenant looks unknown, in every method."""
    async with factory() as store:
        mine, other = scope(), scope()
        conversation = await talked(store, mine, "secret", id="a")
        output = await interact(ENV, Input("x", history=[]), Scripted([say("y")]).config)
        for made in (
            store.load("a", scope=other), store.fork("a", scope=other), store.rewind("a", 0, scope=other),
            store.delete("a", scope=other), store.export("a", scope=other), store.verify("a", scope=other),
            store.append("a", output, scope=other, expected=conversation.revision),
        ):  # fmt: skip
            await refused(UnknownConversationError, made)
        assert not await store.list(scope=other)
        assert not await searched(store, other, "secret")
        assert not await store.prune(scope=other, older_than=timedelta(0))
        assert (await store.verify(scope=other)).conversations == 0
        await talked(store, other, "mine", id="a")
        assert await texts(await store.load("a", scope=mine)) == ["secret", "You said secret"]


async def of_two_writers_one_wins(factory: Factory) -> None:
    """The loser gets both revisions, its model is not called, and nothing is written."""
    async with factory() as store:
        tenant = scope()
        await talked(store, tenant, "one", id="a")
        first, second = await store.load("a", scope=tenant), await store.load("a", scope=tenant)
        model, idle = Scripted([say("won")]), Scripted([say("lost")])
        await first.interact(ENV, Input("first"), model.config)
        lost = await refused(ConflictError, second.interact(ENV, Input("second"), idle.config))
        assert (lost.expected, lost.actual) == (2, 4)
        assert idle.requests == []
        assert await texts(await store.load("a", scope=tenant)) == ["one", "You said one", "first", "won"]
        await second.refresh()
        await second.interact(ENV, Input("second"), idle.config)
        assert second.turns == 3


async def many_writers_take_one_turn_each(factory: Factory) -> None:
    """Eight writers at one revision: one winner, seven conflicts."""
    async with factory() as store:
        tenant = scope()
        conversation = await talked(store, tenant, "one", id="a")
        outcomes: list[object] = []

        async def write(number: int, handle: Conversation) -> None:
            try:
                outcomes.append(await handle.interact(ENV, Input(f"by {number}"), Scripted([say("ok")]).config))
            except (ConflictError, PendingInputError) as error:
                outcomes.append(error)

        handles = [await store.load("a", scope=tenant) for _ in range(8)]
        async with anyio.create_task_group() as group:
            for number, handle in enumerate(handles):
                group.start_soon(write, number, handle)
        assert sum(isinstance(outcome, Output) for outcome in outcomes) == 1
        await conversation.refresh()
        assert (conversation.turns, conversation.revision) == (2, 4)


async def an_input_is_durable_before_the_model_is_called(factory: Factory) -> None:
    """While it is called, and after it failed, the store says what is pending; another worker can take it up."""
    async with factory() as store:
        tenant, failure = scope(), APIError("down", hint="wait")
        conversation = await store.create("a", scope=tenant)
        model = Scripted(failure, [say("Hello")], [say("Bye")])
        await refused(APIError, conversation.interact(ENV, Input("Hi"), model.config, key="k"))
        other = await store.load("a", scope=tenant)
        assert other.turns == 0
        pending = other.pending
        assert pending is not None
        assert (pending.content, pending.key) == ("Hi", "k")
        await refused(PendingInputError, other.interact(ENV, Input("Other"), model.config))
        await refused(IdempotencyError, other.interact(ENV, Input("Other"), model.config, key="k"))
        output = await other.resume(ENV, model.config)
        assert output.text == "Hello"
        assert other.pending is None
        await refused(ConflictError, conversation.interact(ENV, Input("Late"), model.config))
        assert model.left == 1
        assert (await store.load("a", scope=tenant)).turns == 1


async def a_failed_turn_can_be_taken_again_or_given_up(factory: Factory) -> None:
    """By whoever made it durable, with this input or another; by others after discard_pending."""
    async with factory() as store:
        tenant, failure = scope(), APIError("down", hint="wait")
        conversation = await store.create("a", scope=tenant)
        model = Scripted(failure, [say("Two")], failure, [say("Three")])
        await refused(APIError, conversation.interact(ENV, Input("one"), model.config))
        await conversation.interact(ENV, Input("two"), model.config)
        await refused(APIError, conversation.interact(ENV, Input("lost"), model.config))
        other = await store.load("a", scope=tenant)
        await other.discard_pending()
        await other.interact(ENV, Input("three"), model.config)
        assert await texts(other) == ["two", "Two", "three", "Three"]


async def a_key_gives_the_stored_turn(factory: Factory) -> None:
    """Text, calls, messages, usage, finish and state; the model is not called. Another input is an error."""
    async with factory() as store:
        tenant = scope()
        conversation = await store.create("a", scope=tenant)
        model = Scripted(
            answer(say("I book"), call("book", {"seat": 2**63}, id="c"), input_tokens=2**63), [refuse("No")]
        )
        first = await conversation.interact(ENV, Input("Book"), model.config, key="k1")
        result = ToolResult("c", "done")
        second = await conversation.interact(ENV, Input(tool_results=[result]), model.config, key="k2")
        for handle in (conversation, await store.load("a", scope=tenant)):
            for wanted, given, key in ((first, Input("Book"), "k1"), (second, Input(tool_results=[result]), "k2")):
                stored = await handle.interact(ENV, given, model.config, key=key)
                for name in ("text", "refusal", "tool_calls", "messages", "usage", "finish", "continuation"):
                    assert getattr(stored, name) == getattr(wanted, name), name
            await refused(IdempotencyError, handle.interact(ENV, Input("Book 2"), model.config, key="k1"))
        assert len(model.requests) == 2
        assert [e.type async for e in conversation.stream(ENV, Input("Book"), model.config, key="k1")] == ["done"]


async def a_retry_takes_over_a_crashed_turn(factory: Factory) -> None:
    """The same key and input goes on where the pending input has no answer; the first worker then loses."""
    async with factory() as store:
        tenant, model = scope(), Scripted(APIError("down", hint="wait"), [say("Hello")])
        crashed = await store.create("a", scope=tenant)
        await refused(APIError, crashed.interact(ENV, Input("Hi"), model.config, key="k"))
        retry = await store.load("a", scope=tenant)
        assert (await retry.interact(ENV, Input("Hi"), model.config, key="k")).text == "Hello"
        assert (await crashed.interact(ENV, Input("Hi"), model.config, key="k")).text == "Hello"
        assert len(model.requests) == 2
        assert crashed.turns == 1


async def one_object_takes_one_turn_at_a_time(factory: Factory) -> None:
    """A second turn through the same object, while one is under way, is refused and changes nothing."""
    async with factory() as store:
        conversation = await store.create(scope=scope())
        model = Scripted([say("one")], [say("two")])
        async with conversation.stream(ENV, Input("Hi"), model.config) as events:
            async for event in events:
                if event.type == "text_delta":
                    await refused(PendingInputError, conversation.interact(ENV, Input("x"), model.config))
                if event.type == "done":
                    await conversation.interact(ENV, Input("again"), model.config)
        assert await texts(conversation) == ["Hi", "one", "again", "two"]


async def a_stream_that_is_left_leaves_its_input(factory: Factory) -> None:
    """No turn, and the input is pending."""
    async with factory() as store:
        tenant, model = scope(), Scripted([say("one")])
        conversation = await store.create("a", scope=tenant)
        async with conversation.stream(ENV, Input("Hi"), model.config) as events:
            async for event in events:
                if event.type == "text_delta":
                    break
        loaded = await store.load("a", scope=tenant)
        assert loaded.turns == 0
        assert loaded.pending is not None
        assert loaded.pending.content == "Hi"


async def bad_input_is_refused_before_anything_is_written(factory: Factory) -> None:
    """A continuation of the caller's, results that answer nothing, a history in the middle."""
    async with factory() as store:
        tenant = scope()
        conversation = await talked(store, tenant, "one", id="a")
        model = Scripted([say("never")])
        state = conversation.continuation
        for given in (
            Input("x", continuation=state),
            Input(tool_results=[ToolResult("c", "")]),
            Input("x", history=[]),
        ):
            await refused(ConfigurationError, conversation.interact(ENV, given, model.config))
        assert model.requests == []
        loaded = await store.load("a", scope=tenant)
        assert (loaded.revision, loaded.pending) == (conversation.revision, None)


async def a_turn_whose_answer_does_not_fit_is_stored(factory: Factory) -> None:
    """The error says so, and the conversation goes on after it."""
    async with factory() as store:
        conversation = await store.create(scope=scope())
        model = Scripted([say("no json")], [say("sorry")])
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        await refused(StructuredOutputError, conversation.interact(ENV, Input("Hi"), model.config, output=schema))
        await conversation.interact(ENV, Input("Again"), model.config)
        assert await texts(conversation) == ["Hi", "no json", "Again", "sorry"]


async def turns_taken_elsewhere_can_be_appended(factory: Factory) -> None:
    """One that follows; a saved state as a whole; nothing else."""
    async with factory() as store:
        tenant = scope()
        model = Scripted([say("A")], [say("B")], [say("C")])
        history = [Message("user", "u"), Message("assistant", "v")]
        first = await interact(ENV, Input("a", history=history), model.config)
        second = await interact(ENV, Input("b", continuation=first.continuation), model.config)
        third = await interact(ENV, Input("c", continuation=second.continuation), model.config)
        conversation = await store.create("a", scope=tenant)
        await refused(ConfigurationError, conversation.append(second))
        await conversation.append(first)
        await refused(ConfigurationError, conversation.append(third))
        appended = await store.append("a", second, scope=tenant, expected=1)
        assert await texts(appended) == ["u", "v", "a", "A", "b", "B"]
        await refused(ConflictError, store.append("a", third, scope=tenant, expected=1))
        whole = await store.create("b", scope=tenant, continuation=third.continuation)
        loaded = await store.load("b", scope=tenant)
        assert loaded.continuation == third.continuation == whole.continuation
        assert await texts(loaded) == ["u", "v", "a", "A", "b", "B", "c", "C"]


async def the_environment_can_be_asked_for(factory: Factory) -> None:
    """A load that expects another fingerprint than the last turn's is refused."""
    async with factory() as store:
        tenant = scope()
        await talked(store, tenant, "one", id="a")
        own = ENV.fingerprint(provider="scripted")
        assert (await store.load("a", scope=tenant, expected_fingerprint=own)).turns == 1
        await refused(StoreError, store.load("a", scope=tenant, expected_fingerprint="0" * 64))
