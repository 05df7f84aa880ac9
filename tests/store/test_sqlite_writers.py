"""Writers of one SQLite file that wait at the same time: committed together, and each told of its own."""

from __future__ import annotations

import sqlite3
import threading
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pollux_like import ConflictError, Environment, Input, StoreError
from pollux_like.errors import (
    StoreFullError,
    StoreUnavailableError,
)
from pollux_like.store import Conversation, ConversationStore, database, open_store, sqlite
from pollux_like.testing import Scripted, say

pytestmark = pytest.mark.anyio
ENV = Environment()


async def talk(store: ConversationStore, turns: int = 3, size: int = 10) -> Conversation:
    conversation = await store.create("a", scope="t")
    model = Scripted(*([say("y" * size)] for _ in range(turns)))
    for number in range(turns):
        await conversation.interact(ENV, Input(f"{number}" + "x" * size), model.config)
    return conversation


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talks.db"


async def test_writers_that_wait_together_do_not_share_their_failures(file: Path) -> None:
    """They are committed at once: one that is refused, fails or finds no space takes nobody else's turn with it."""
    async with open_store(f"sqlite:///{file}") as store:
        for number in range(10):
            await store.create(f"c{number}", scope="t")
        talks = [await store.load(f"c{number}", scope="t") for number in range(10)]
        late = await store.load("c0", scope="t")
        pages = store.database._writer.execute("PRAGMA page_count").fetchone()[0]
        store.database._writer.execute(f"PRAGMA max_page_count = {pages + 12}")
        failed: dict[str, Exception] = {}

        async def turn(name: str, conversation: Conversation, text: str) -> None:
            try:
                await conversation.interact(ENV, Input("x"), Scripted([say(text)]).config)
            except StoreError as error:
                failed[name] = error

        async def broken() -> None:
            with pytest.raises(ZeroDivisionError):
                await store.database.write(lambda tx: 1 / 0)

        def hold() -> None:
            """The lock is kept until everybody waits behind it."""
            with store.database._lock:
                held.set()
                go.wait(10)

        held, go = threading.Event(), threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, hold)
            await anyio.to_thread.run_sync(held.wait)
            for number, conversation in enumerate(talks):
                group.start_soon(turn, f"c{number}", conversation, "y" * (300_000 if number == 5 else 10))
            group.start_soon(turn, "late", late, "y")
            group.start_soon(broken)
            while len(store.database._waiting) < 12:
                await anyio.sleep(0.001)
            go.set()
        assert {name: type(error) for name, error in failed.items()} in (
            {"c5": StoreFullError, "late": ConflictError}, {"c5": StoreFullError, "c0": ConflictError},
        )  # fmt: skip
        for number in range(10):
            assert (await store.load(f"c{number}", scope="t")).turns == (number != 5)
        assert (await store.verify(scope="t")).problems == ()


async def test_all_that_wait_are_told_of_a_lock(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(database, "ATTEMPTS", 1)
    async with open_store(f"sqlite:///{file}") as store:
        await store.create("a", scope="t")
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        told: list[str] = []

        async def create(number: int) -> None:
            try:
                await store.create(f"c{number}", scope="t")
            except StoreUnavailableError as error:
                told.append(str(error))

        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(create, number)
        other.close()
        assert len(told) == 6
        assert [summary.id for summary in await store.list(scope="t")] == ["a"]


async def test_a_write_that_is_cancelled_while_it_waits_is_settled_first(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await store.create("a", scope="t")
        held, go = threading.Event(), threading.Event()

        def hold() -> None:
            with store.database._lock:
                held.set()
                go.wait(10)

        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, hold)
            await anyio.to_thread.run_sync(held.wait)
            group.start_soon(partial(store.create, "first", scope="t"))
            while len(store.database._waiting) < 1:
                await anyio.sleep(0.001)
            async with anyio.create_task_group() as inner:
                inner.start_soon(partial(store.create, "given up", scope="t"))
                while len(store.database._waiting) < 2:
                    await anyio.sleep(0.001)
                inner.cancel_scope.cancel()
                go.set()
            assert inner.cancel_scope.cancelled_caught
        assert {summary.id for summary in await store.list(scope="t")} == {"a", "first", "given up"}


async def test_an_unwritten_turn_is_given_up_at_once_between_two_attempts(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.01)
    async with open_store(f"sqlite:///{file}") as store:
        conversation = await talk(store)
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        inner, tries = store.database._done, anyio.Event()

        async def done(*arguments: Any) -> Any:
            try:
                return await inner(*arguments)
            finally:
                tries.set()

        store.database._done = done
        async with anyio.create_task_group() as group:
            group.start_soon(conversation.interact, ENV, Input("x"), Scripted().config)
            await tries.wait()
            group.cancel_scope.cancel()
        other.close()
        assert (await store.load("a", scope="t")).revision == conversation.revision
