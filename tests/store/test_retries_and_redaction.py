"""A keyed retry gives what the model said, whatever the transcript shows; a redact hook that fails loses no answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pollux_like import Environment, Input, Message, StructuredOutputError
from pollux_like.output import Metrics, Output
from pollux_like.store import ConversationStore
from pollux_like.testing import Answer, Scripted, answer, call, refuse, say, think

pytestmark = pytest.mark.anyio
ENV = Environment()


def hidden(message: Message) -> Message:
    return replace(message, content="***" if message.content else "", tool_calls=())


def fails(message: Message) -> Message:
    raise ValueError(message.content)


def fails_on_answers(message: Message) -> Message:
    return message if message.role == "user" else fails(message)


def stored(output: Output) -> Output:
    """Without what the documents say is not stored."""
    known = Metrics(request_id=output.metrics.request_id, model=output.metrics.model)
    return replace(output, reasoning="", structured=None, metrics=known)


@pytest.mark.parametrize("redact", [None, hidden, fails], ids=["plain", "redacted", "withheld"])
@pytest.mark.parametrize(
    "said",
    [
        answer(say("Hello")), answer(say("")), answer(say(" \n")), answer(refuse("No")), answer(refuse(" ")),
        answer(say(" "), refuse("No")), answer(say("Well"), refuse("no")), answer(say("Well"), refuse(" ")),
        answer(think("hm"), say("Let me see"), call("f", {"pin": 4711}, id="c")), answer(call("f", {}, id="c")),
        answer(say(" "), call("f", {}, id="c")), answer(say("cut"), finish="length"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_retry_gives_the_stored_turn(
    factory: Callable[..., ConversationStore], said: Answer, redact: Any
) -> None:
    async with factory(redact=redact) as store:
        conversation = await store.create("a", scope="t")
        history = [Message("user", "u"), Message("assistant", "v")]
        given = Input("PIN 4711", history=history)
        first = await conversation.interact(ENV, given, Scripted(said).config, key="k")
        again = await conversation.interact(ENV, given, Scripted().config, key="k")
        assert again == stored(first)
        assert again.messages[0] == Message("user", "PIN 4711")
        assert (await store.verify(scope="t")).problems == ()


async def test_what_was_redacted_is_in_no_transcript(factory: Callable[..., ConversationStore]) -> None:
    async with factory(redact=hidden) as store:
        conversation = await store.create("a", scope="t")
        await conversation.interact(ENV, Input("4711"), Scripted([say("4711")]).config, key="k")
        assert "4711" not in repr([shown.to_jsonable() for shown in await conversation.transcript()])
        assert await store.search("4711", scope="t") == []


@pytest.mark.parametrize(
    "redact",
    [fails_on_answers, lambda message: None if message.role == "assistant" else message],
    ids=["raises", "None"],
)
async def test_an_answer_that_cannot_be_redacted_is_stored_and_withheld(
    factory: Callable[..., ConversationStore], redact: Any
) -> None:
    async with factory(redact=redact) as store:
        conversation = await store.create("a", scope="t")
        model = Scripted([say("4711"), call("f", {"pin": 4711}, id="c")])
        output = await conversation.interact(ENV, Input("Hi"), model.config, key="k")
        assert output.text == "4711"
        assert [notice.kind for notice in output.notices] == ["redaction_failed"]
        assert "4711" not in output.notices[0].message
        loaded = await store.load("a", scope="t")
        assert (loaded.turns, loaded.pending, loaded.continuation) == (1, None, output.continuation)
        (shown,) = await loaded.transcript()
        assert [message.content for message in shown.messages] == ["Hi", "[withheld: the redact hook failed]"]
        assert "4711" not in repr(shown.to_jsonable())
        assert shown.details["notices"][0][0] == "redaction_failed"
        assert (await loaded.interact(ENV, Input("Hi"), Scripted().config, key="k")) == stored(output)


async def test_the_error_of_an_answer_that_does_not_fit_carries_the_notice(
    factory: Callable[..., ConversationStore],
) -> None:
    async with factory(redact=fails_on_answers) as store:
        conversation = await store.create("a", scope="t")
        shape = {"type": "object", "properties": {}, "additionalProperties": False}
        with pytest.raises(StructuredOutputError) as caught:
            await conversation.interact(ENV, Input("Hi"), Scripted([say("no JSON")]).config, output=shape)
        assert [notice.kind for notice in caught.value.output.notices] == ["redaction_failed"]
        assert conversation.turns == 1


async def test_the_hook_sees_each_message_once(factory: Callable[..., ConversationStore]) -> None:
    seen: list[str] = []

    def watched(message: Message) -> Message:
        seen.append(message.content)
        return message

    async with factory(redact=watched) as store:
        conversation = await store.create("a", scope="t")
        await conversation.interact(ENV, Input("Hi"), Scripted([say("Hello")]).config)
        await store.create("b", scope="t", continuation=conversation.continuation)
        assert seen == ["Hi", "Hello"] * 2
