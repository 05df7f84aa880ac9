"""Values that no store can use: the same error on every database, before anything is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pollux_like import ConfigurationError, Environment, Input
from pollux_like.store import Conversation, ConversationStore
from pollux_like.testing import Scripted, call, say

pytestmark = pytest.mark.anyio
ENV = Environment()
NUMBERS: tuple[Any, ...] = (-1, 2**70, "x", 1.5, True)
NAMES: tuple[Any, ...] = ("\udcff", "a\0b", 5, "", "x" * 1000, b"x")


async def drained(conversation: Conversation, *arguments: Any) -> None:
    async with conversation.stream(*arguments) as events:
        async for _ in events:
            pass


async def test_each_is_refused(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        talk: Any = await store.create("a", scope="t")
        await talk.interact(ENV, Input("Hi"), Scripted([say("Hello"), call("f", {}, id="c")]).config)
        (made,), config = talk.pending_tool_calls, Scripted().config
        anything: Any = store
        attempts: list[Callable[[], Awaitable[object]]] = [
            *(lambda first=first: talk.transcript(first=first) for first in (0, *NUMBERS)),
            *(lambda last=last: talk.transcript(last=last) for last in (-1, "x", 1.5, True)),
            *(lambda before=before: anything.list(scope="t", before=before) for before in (2**63, *NUMBERS)),
            *(lambda name=name: anything.verify(name, scope="t") for name in NAMES),
            *(lambda name=name: anything.load(name, scope="t") for name in NAMES),
            lambda: talk.interact(ENV, None, config), lambda: talk.interact(ENV, None, config, key="k"),
            lambda: talk.interact(None, Input("x"), config), lambda: talk.interact(ENV, Input("x"), None),
            lambda: drained(talk, ENV, None, config), lambda: talk.append(None), lambda: talk.append("x"),
            lambda: anything.create(scope="t", continuation="x"), lambda: anything.search("a" * 60_000, scope="t"),
            lambda: anything.append("a", 1, scope="t", expected="x"),
            lambda: anything.rewind("a", 0, scope="t", expected="x"),
            lambda: talk.run_tool(None, lambda: None), lambda: talk.effects.claim(None),
            lambda: talk.effects.status("c"), lambda: talk.effects.release(None), lambda: talk.effects.done(None, None),
            lambda: talk.effects.resolve(made, None),
        ]  # fmt: skip
        for number, attempt in enumerate(attempts):
            with pytest.raises(ConfigurationError) as caught:
                await attempt()
            assert caught.value.__cause__ is None, number
        assert [summary.revision for summary in await store.list(scope="t")] == [2]


async def test_the_longest_search_is_taken(factory: Callable[..., ConversationStore]) -> None:
    """Of characters that are escaped in JSON and again in the pattern."""
    async with factory() as store:
        await store.create("a", scope="t")
        for letter in ("a", "\0", "%", "\U0001f600", '"', "!"):
            assert await store.search("x" + letter * 4095, scope="t") == []


async def test_the_ends_of_a_transcript(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        conversation = await store.create("a", scope="t")
        for word in ("1", "2", "3"):
            await conversation.interact(ENV, Input(word), Scripted([say(word)]).config)
        for first, last, expected in (
            (1, None, [1, 2, 3]),
            (2, 2, [2]),
            (3, 99, [3]),
            (4, None, []),
            (2, 1, []),
            (1, 0, []),
        ):
            assert [shown.seq for shown in await conversation.transcript(first=first, last=last)] == expected
