"""Reads that need no state: the tree over rewinds and deletions, pages, places of words, open calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from pollux_like import ConfigurationError, Environment, Input, ToolDeclaration, ToolResult
from pollux_like.errors import StoreDamagedError, UnknownConversationError
from pollux_like.sealing import ContinuationSealer
from pollux_like.store import Branch, ConversationStore, Reader, reading, rows
from pollux_like.store.database import Transaction
from pollux_like.testing import Scripted, call, say

pytestmark = pytest.mark.anyio
ENV = Environment(tools=[ToolDeclaration("book", "Book a seat")])
KEY = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="


async def talked(store: ConversationStore, id: str, turns: int, size: int = 1) -> None:
    talk = await store.create(id, scope="s")
    model = Scripted(*([say(f"answer {number} " * size)] for number in range(1, turns + 1)))
    for number in range(1, turns + 1):
        await talk.interact(ENV, Input(f"question {number}"), model.config)


def shape(found: list[Branch] | tuple[Branch, ...] | object) -> list[tuple[str, str | None, int, int]]:
    return [(one.id, one.parent, one.at, one.turns) for one in found]  # type: ignore[attr-defined]


async def test_a_fork_names_what_it_shares_with_its_parent_as_that_stands(
    factory: Callable[..., ConversationStore],
) -> None:
    async with factory() as store:
        reader = Reader(store)
        await talked(store, "trunk", 5)
        await store.fork("trunk", "late", scope="s", at=4)
        await store.fork("late", "early", scope="s", at=2)
        await store.fork("trunk", "whole", scope="s")
        await store.fork("trunk", "empty", scope="s", at=0)
        expected = [("trunk", None, 0, 5), ("late", "trunk", 4, 4), ("early", "trunk", 2, 2), ("whole", "trunk", 5, 5)]
        for name in ("trunk", "early"):
            assert shape(await reader.tree(name, scope="s")) == expected
        assert shape(await reader.tree("empty", scope="s")) == [("empty", None, 0, 0)]
        await store.rewind("trunk", 3, scope="s")
        assert shape(await reader.tree("late", scope="s"))[:2] == [("trunk", None, 0, 3), ("late", "trunk", 3, 4)]
        await store.delete("trunk", scope="s")
        assert shape(await reader.tree("late", scope="s")) == [
            ("late", None, 4, 4),
            ("early", None, 2, 2),
            ("whole", None, 5, 5),
        ]
        with pytest.raises(UnknownConversationError):
            await reader.tree("late", scope="other")


async def test_the_nearest_that_is_there_is_the_parent(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        await talked(store, "trunk", 2)
        middle = await store.fork("trunk", "middle", scope="s")
        await middle.interact(ENV, Input("more"), Scripted([say("more")]).config)
        await store.fork("middle", "leaf", scope="s")
        assert shape(await Reader(store).tree("leaf", scope="s"))[2] == ("leaf", "middle", 3, 3)
        await store.delete("middle", scope="s")
        assert shape(await Reader(store).tree("leaf", scope="s")) == [("trunk", None, 0, 2), ("leaf", "trunk", 2, 3)]


async def test_a_page_holds_what_fits_and_at_least_one_turn(
    factory: Callable[..., ConversationStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 2_000)
    async with factory() as store:
        reader = Reader(store)
        await talked(store, "small", 30)
        await talked(store, "large", 3, size=1_000)
        seen: list[int] = []
        while len(seen) < 30:
            page = await reader.page("small", scope="s", first=len(seen) + 1, last=30)
            assert 1 < len(page.turns) < 30
            seen += [shown.seq for shown in page.turns]
        assert seen == list(range(1, 31))
        assert [shown.seq for shown in (await reader.page("large", scope="s", first=2, last=3)).turns] == [2]
        assert (await reader.page("large", scope="s", first=9, last=9)).turns == ()
        summary, usage = await reader.usage("small", scope="s", first=11, last=30)
        assert (summary.turns, len(usage)) == (30, 20)
        for first, last in ((0, 1), (2, 1), (1, 1_001)):
            with pytest.raises(ConfigurationError):
                await reader.page("small", scope="s", first=first, last=last)


@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
async def test_words_are_found_in_one_conversation(factory: Callable[..., ConversationStore], sealed: bool) -> None:
    async with factory(sealer=ContinuationSealer([KEY]) if sealed else None) as store:
        reader = Reader(store)
        talk = await store.create("talk", scope="s", title="A 100% Title_!")
        model = Scripted([call("book", {"seat": "WINDOW"}, id="call_1")], [say("Window it is")])
        await talk.interact(ENV, Input("By the window"), model.config)
        opened = await reader.overview("talk", scope="s")
        assert [one.id for one in opened.open_calls] == ["call_1"]
        await talk.interact(ENV, Input(tool_results=[ToolResult("call_1", "done")]), model.config)
        assert (await reader.overview("talk", scope="s")).open_calls == ()
        _, found = await reader.find("talk", "window", scope="s")
        assert [(one.seq, one.of, one.start) for one in found] == [(1, "content", 7), (1, "book", 9), (2, "content", 0)]
        assert len((await reader.find("talk", "window", scope="s", limit=2))[1]) == 2
        page = await reader.page("talk", scope="s", first=2, last=2)
        assert page.named == {"call_1": "book"}
        for words, count in (("100% title_!", 1), ("TALK", 1), ("100_", 0), ("%", 1), ("x", 0)):
            assert len(await reader.named(words, scope="s")) == count, words
        assert await reader.named("talk", scope="other") == []
        assert ("s", 1) in await reader.scopes()


async def test_damage_is_an_error_here_too(factory: Callable[..., ConversationStore]) -> None:
    async with factory() as store:
        await talked(store, "talk", 3)

        def cut(tx: Transaction) -> None:
            tx.run("UPDATE pollux_like_entries SET fingerprint = ? WHERE seq = 2", b"\0" * 32)

        await store.database.write(cut)
        reader = Reader(store)
        for read in (
            reader.page("talk", scope="s", first=1, last=3), reader.usage("talk", scope="s", first=1, last=3),
            reader.find("talk", "nowhere", scope="s"),
        ):  # fmt: skip
            with pytest.raises(StoreDamagedError):
                await read


async def test_a_read_that_is_cancelled_ends_with_the_part_it_is_at(
    factory: Callable[..., ConversationStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE_TURNS", 1)
    read: list[int] = []
    begun, goes_on = threading.Event(), threading.Event()
    transcript = rows.transcript

    def slow(tx: Transaction, opened: Any, head: Any, first: int, last: int) -> Any:
        read.append(first)
        begun.set()
        goes_on.wait(10)
        return transcript(tx, opened, head, first, last)

    monkeypatch.setattr(rows, "transcript", slow)
    async with factory() as store:
        await talked(store, "long", 6)
        async with anyio.create_task_group() as group:

            async def find() -> None:
                await Reader(store).find("long", "nowhere", scope="s")

            group.start_soon(find)
            while not begun.is_set():
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            goes_on.set()
        assert read == [1]
        assert (await Reader(store).find("long", "answer 6", scope="s"))[1][0].seq == 6
