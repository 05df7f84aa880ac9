"""Histories: forks, deletion, search, content, export."""

from __future__ import annotations

from datetime import timedelta

from pollux_like.errors import (
    APIError,
    ConfigurationError,
    ConflictError,
    UnknownConversationError,
)
from pollux_like.input import Input
from pollux_like.messages import Message, ToolResult
from pollux_like.testing.script import call, say
from pollux_like.testing.scripted import Scripted
from pollux_like.testing.store_conformance.support import ENV, Factory, refused, scope, searched, talked, texts


async def forks_share_and_never_mix(factory: Factory) -> None:
    """Each goes its own way; a rewound conversation leaves its forks alone."""
    async with factory() as store:
        tenant = scope()
        trunk = await talked(store, tenant, "1", "2", "3", id="trunk")
        early, late = await trunk.fork("early", at=1), await trunk.fork("late")
        model = Scripted([say("E")], [say("L")], [say("T")], [say("R")])
        await early.interact(ENV, Input("early"), model.config)
        await late.interact(ENV, Input("late"), model.config)
        await trunk.interact(ENV, Input("trunk"), model.config)
        inner = await early.fork("inner", at=1)
        await trunk.rewind(2)
        await trunk.interact(ENV, Input("other"), model.config)
        whole = ["1", "You said 1", "2", "You said 2", "3", "You said 3"]
        for name, expected in (
            ("early", [*whole[:2], "early", "E"]), ("late", [*whole, "late", "L"]),
            ("trunk", [*whole[:4], "other", "R"]), ("inner", whole[:2]),
        ):  # fmt: skip
            assert await texts(await store.load(name, scope=tenant)) == expected, name
        empty = await trunk.fork("empty", at=0)
        assert (empty.turns, empty.continuation, inner.turns) == (0, None, 1)
        assert not (await store.verify(scope=tenant)).problems


async def rewinding_needs_the_newest_revision(factory: Factory) -> None:
    """It is a change like any other."""
    async with factory() as store:
        tenant = scope()
        await talked(store, tenant, "1", "2", id="a")
        old = await store.load("a", scope=tenant)
        await (await store.load("a", scope=tenant)).rewind(1)
        await refused(ConflictError, old.rewind(0))
        await refused(ConfigurationError, old.rewind(3))
        await refused(ConflictError, store.rewind("a", 0, scope=tenant, expected=old.revision))
        assert (await store.rewind("a", 0, scope=tenant)).continuation is None


async def deletion_erases_what_no_fork_shares(factory: Factory) -> None:
    """The receipt counts it; the fork stays whole; when the last goes, everything goes."""
    async with factory() as store:
        tenant = scope()
        trunk = await talked(store, tenant, "1", "2", "3", id="trunk")
        fork = await trunk.fork("fork", at=2)
        await fork.interact(ENV, Input("4"), Scripted([say("four")]).config)
        digests = {shown.digest for shown in await trunk.transcript()}
        receipt = await store.delete("trunk", scope=tenant)
        assert (receipt.turns, receipt.messages, receipt.kept) == (1, 2, 2)
        assert set(receipt.digests) < digests
        assert not await searched(store, tenant, "3")
        assert await searched(store, tenant, "You said 1") in (["fork"], None)
        assert await texts(await store.load("fork", scope=tenant)) == [
            "1",
            "You said 1",
            "2",
            "You said 2",
            "4",
            "four",
        ]
        await refused(UnknownConversationError, trunk.interact(ENV, Input("x"), Scripted([say("y")]).config))
        last = await store.delete("fork", scope=tenant)
        assert (last.turns, last.kept) == (3, 0)


async def rewound_turns_go_with_their_conversation(factory: Factory) -> None:
    """They belong to nobody else, and a fork that was rewound holds no more than it shows."""
    async with factory() as store:
        tenant = scope()
        conversation = await talked(store, tenant, "1", "2", "3", id="a")
        await conversation.rewind(1)
        await conversation.interact(ENV, Input("4"), Scripted([say("four")]).config)
        assert not await searched(store, tenant, "You said 3")
        fork = await conversation.fork("b")
        await fork.rewind(1)
        receipt = await store.delete("a", scope=tenant)
        assert (receipt.turns, receipt.kept) == (3, 1)
        assert await texts(await store.load("b", scope=tenant)) == ["1", "You said 1"]
        assert (await store.delete("b", scope=tenant)).turns == 1


async def pruning_takes_only_the_old(factory: Factory) -> None:
    """By the time of the last change."""
    async with factory() as store:
        tenant = scope()
        await talked(store, tenant, "1", id="a")
        assert not await store.prune(scope=tenant, older_than=timedelta(days=1))
        receipts = await store.prune(scope=tenant, older_than=timedelta(0))
        assert [(receipt.id, receipt.turns) for receipt in receipts] == [("a", 1)]
        assert not await store.list(scope=tenant)


async def content_comes_back_exactly(factory: Factory) -> None:
    """U+0000, the edges of Unicode, large integers, long texts, in input, answer, arguments, results and metadata."""
    odd = "\0 \x1f \u2028 \ufeff \U0010ffff é é ‮ \\u0000 \"'` %s ? %% \r\n\t $1 :x"
    numbers = {"a": 2**63, "b": -(2**63) - 1, "c": 1.5e300, "d": 5e-324, "e": -0.0, "": [None, True, {"\0": odd}]}
    async with factory() as store:
        tenant = scope()
        conversation = await store.create("a", scope=tenant, metadata={"odd": odd, **numbers})
        model = Scripted([say(odd), call("book", numbers, id="c?%s\0")], [say("x" * 1_000_000)])
        output = await conversation.interact(ENV, Input(odd), model.config)
        result = ToolResult("c?%s\0", odd, is_error=True)

        def book(**arguments: object) -> ToolResult:
            return result

        assert await conversation.run_tool(output.tool_calls[0], book) == result
        await conversation.interact(ENV, Input(odd, tool_results=[result]), model.config)
        loaded = await store.load("a", scope=tenant)
        assert loaded.metadata == {"odd": odd, **numbers}
        assert loaded.continuation == conversation.continuation
        first, second = (shown.messages for shown in await loaded.transcript())
        assert first == (Message("user", odd), Message("assistant", odd, output.tool_calls))
        assert first[1].tool_calls[0].arguments == numbers
        assert second == (result.to_message(), Message("user", odd), Message("assistant", "x" * 1_000_000))


async def lone_surrogates_are_refused(factory: Factory) -> None:
    """As everywhere in the library: by the values, before the store."""
    async with factory() as store:
        await refused(ConfigurationError, store.create(scope=scope(), metadata={"a": "\ud800"}))
        await refused(ConfigurationError, store.search("\ud800", scope=scope()))


async def search_finds_words_as_they_stand(factory: Factory) -> None:
    """A to Z in either case, every other character as it is; no pattern, no escape of the stored form."""
    async with factory() as store:
        tenant = scope()
        await talked(store, tenant, 'Straße 100%_! "q" \\ end\nnext', id="a")
        if await searched(store, tenant, "e") is None:
            return
        for words, found in (
            ("STRAße", 2), ("straSSe", 0), ("100%_!", 2), ("100__", 0), ('"Q" \\', 2), ("\\n", 0), ("end\nnext", 2),
            ("you SAID", 1), ("role", 0), ("u000", 0), ("%", 2),
        ):  # fmt: skip
            assert len(await store.search(words, scope=tenant)) == found, words
        assert len(await store.search("e", scope=tenant, limit=1)) == 1


async def lists_are_paged_newest_first(factory: Factory) -> None:
    """By the number of the conversation, which no clock gives."""
    async with factory() as store:
        tenant = scope()
        for number in range(5):
            await store.create(f"c{number}", scope=tenant, title=f"title {number}")
        first = await store.list(scope=tenant, limit=3)
        second = await store.list(scope=tenant, limit=3, before=first[-1].number)
        assert [summary.id for summary in (*first, *second)] == ["c4", "c3", "c2", "c1", "c0"]
        assert first[0].title == "title 4"


async def the_transcript_is_redacted_and_the_state_is_not(factory: Factory) -> None:
    """The hook sees every message once, at the write."""

    def redact(message: Message) -> Message:
        return Message(message.role, message.content.replace("4711", "****"), message.tool_calls, message.tool_call_id)

    async with factory(redact=redact) as store:
        tenant, model = scope(), Scripted([say("Your PIN is 4711")], [say("ok")])
        conversation = await store.create("a", scope=tenant)
        output = await conversation.interact(ENV, Input("PIN 4711?"), model.config)
        assert output.text == "Your PIN is 4711"
        assert await texts(conversation) == ["PIN ****?", "Your PIN is ****"]
        assert not await searched(store, tenant, "4711")
        await (await store.load("a", scope=tenant)).interact(ENV, Input("Again"), model.config)
        assert model.requests[1].messages[0]["content"] == "PIN 4711?"


async def an_export_holds_everything(factory: Factory) -> None:
    """State, transcript, title, metadata, pending input, as JSON types."""
    async with factory() as store:
        tenant, model = scope(), Scripted([say("Hello")], APIError("down", hint="wait"))
        conversation = await store.create("a", scope=tenant, title="T", metadata={"k": 1})
        output = await conversation.interact(ENV, Input("Hi"), model.config)
        await refused(APIError, conversation.interact(ENV, Input("Next"), model.config))
        exported = await store.export("a", scope=tenant)
        assert output.continuation is not None
        assert exported["continuation"] == output.continuation.to_jsonable()
        assert [m["content"] for shown in exported["transcript"] for m in shown["messages"]] == ["Hi", "Hello"]
        assert (exported["title"], exported["metadata"], exported["pending"]["content"]) == ("T", {"k": 1}, "Next")
