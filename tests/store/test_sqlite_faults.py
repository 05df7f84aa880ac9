"""What can happen to a SQLite file: each a typed error, and what was stored is intact or nothing of it is returned."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from pollux_like import ConfigurationError, Environment, Input, StoreError
from pollux_like.errors import (
    StoreDamagedError,
    StoreFullError,
    StoreReadOnlyError,
    StoreSchemaError,
    StoreUnavailableError,
)
from pollux_like.store import Conversation, ConversationStore, database, ddl, open_store, sqlite
from pollux_like.testing import Scripted, say

pytestmark = pytest.mark.anyio
ENV = Environment()


async def talk(store: ConversationStore, turns: int = 3, size: int = 10) -> Conversation:
    conversation = await store.create("a", scope="t")
    model = Scripted(*([say("y" * size)] for _ in range(turns)))
    for number in range(turns):
        await conversation.interact(ENV, Input(f"{number}" + "x" * size), model.config)
    return conversation


def change(file: Path, sql: str, *values: object) -> None:
    connection = sqlite3.connect(file)
    with connection:
        assert connection.execute(sql, values).rowcount > 0
    connection.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talks.db"


async def test_a_file_that_takes_no_writes(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store)
    bytes_before = file.read_bytes()
    async with open_store(f"sqlite:///{file}") as store:
        conversation = await store.load("a", scope="t")
        store.database._writer.execute("PRAGMA query_only = ON")  # as root, file modes bind nobody
        model = Scripted([say("never")])
        with pytest.raises(StoreReadOnlyError):
            await conversation.interact(ENV, Input("x"), model.config)
        assert model.requests == []
        assert (await store.load("a", scope="t")).turns == 3
    assert file.read_bytes() == bytes_before


@pytest.mark.skipif(os.geteuid() == 0, reason="file modes do not bind root")
async def test_a_file_whose_mode_is_read_only(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store)
    file.chmod(0o444)
    async with open_store(f"sqlite:///{file}") as store:
        assert (await store.load("a", scope="t")).turns == 3
        with pytest.raises(StoreReadOnlyError):
            await store.create(scope="t")


async def test_no_space_is_left(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        conversation = await talk(store)
        pages = store.database._writer.execute("PRAGMA page_count").fetchone()[0]
        store.database._writer.execute(f"PRAGMA max_page_count = {pages + 8}")
        with pytest.raises(StoreFullError):
            await conversation.interact(ENV, Input("x"), Scripted([say("y" * 100_000)]).config)
        loaded = await store.load("a", scope="t")
        assert (loaded.turns, loaded.pending and loaded.pending.content) == (3, "x")
        assert (await store.verify(scope="t")).problems == ()
        store.database._writer.execute("PRAGMA max_page_count = 1000000")
        await loaded.resume(ENV, Scripted([say("y" * 100_000)]).config)
        assert loaded.turns == 4


async def test_a_corrupted_page(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store, turns=40, size=1000)
    data = bytearray(file.read_bytes())
    for page in range(8, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    file.write_bytes(data)
    async with open_store(f"sqlite:///{file}") as store:
        with pytest.raises(StoreDamagedError):
            await store.load("a", scope="t")


async def test_a_truncated_file(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store, turns=40, size=1000)
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(StoreDamagedError):
        async with open_store(f"sqlite:///{file}") as store:
            await store.load("a", scope="t")


async def test_a_file_of_something_else(file: Path) -> None:
    file.write_bytes(b"no database at all " * 1000)
    with pytest.raises(StoreDamagedError):
        async with open_store(f"sqlite:///{file}"):
            pass


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        async with open_store(f"sqlite:///{tmp_path}/missing/talks.db"):
            pass


async def test_a_newer_schema_is_left_alone(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store)
    change(file, "INSERT INTO pollux_like_schema (step) VALUES (99)")
    with pytest.raises(StoreSchemaError, match="schema 99"):
        async with open_store(f"sqlite:///{file}"):
            pass


async def test_an_older_schema_is_not_changed_unasked(file: Path) -> None:
    with pytest.raises(StoreSchemaError, match="schema 0"):
        async with open_store(f"sqlite:///{file}", migrate=False):
            pass
    connection = sqlite3.connect(file)
    connection.executescript(ddl("sqlite"))
    connection.close()
    async with open_store(f"sqlite:///{file}", migrate=False) as store:
        assert (await talk(store)).turns == 3


@pytest.mark.parametrize(
    ("sql", "loads"),
    [
        (
            "UPDATE pollux_like_turns SET state = CAST(replace(CAST(state AS TEXT), '1xx', '9xx') AS BLOB) WHERE seq = 2",
            False,
        ),
        ("UPDATE pollux_like_turns SET state = CAST(state || ' ' AS BLOB) WHERE seq = 3", False),
        ("UPDATE pollux_like_turns SET state = 'no bytes' WHERE seq = 2", False),
        ("UPDATE pollux_like_turns SET state = x'ff' WHERE seq = 2", False),
        ("UPDATE pollux_like_turns SET digest = x'00' WHERE seq = 2", False),
        ("DELETE FROM pollux_like_turns WHERE seq = 2", False),
        ("DELETE FROM pollux_like_turns WHERE seq = 3", False),
        (
            "UPDATE pollux_like_turns SET state = (SELECT state FROM pollux_like_turns WHERE seq = 1) WHERE seq = 2",
            False,
        ),
        ("UPDATE pollux_like_conversations SET turns = 2", False),
        ("UPDATE pollux_like_conversations SET digest = 'x'", False),
        (
            "UPDATE pollux_like_entries SET shown = CAST(replace(CAST(shown AS TEXT), '1xx', '9xx') AS BLOB) WHERE seq = 2",
            True,
        ),
        ("UPDATE pollux_like_entries SET fingerprint = checksum WHERE seq = 1", True),
        ("UPDATE pollux_like_entries SET shown = (SELECT shown FROM pollux_like_entries WHERE seq = 1)", True),
        ("DELETE FROM pollux_like_entries WHERE seq = 2", True),
    ],
)
async def test_every_change_behind_its_back_is_seen(file: Path, sql: str, loads: bool) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store)
    change(file, sql)
    async with open_store(f"sqlite:///{file}") as store:
        assert [name for name, _ in (await store.verify(scope="t")).problems] == ["a"]
        if loads:
            conversation = await store.load("a", scope="t")
            with pytest.raises(StoreDamagedError):
                await conversation.transcript()
        else:
            with pytest.raises(StoreDamagedError):
                await store.load("a", scope="t")


async def test_turns_of_a_newer_version_are_left_alone(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        await talk(store)
    change(file, "UPDATE pollux_like_turns SET version = 77 WHERE seq = 3")
    async with open_store(f"sqlite:///{file}") as store:
        with pytest.raises(StoreSchemaError, match="77"):
            await store.load("a", scope="t")


async def test_another_process_that_keeps_the_lock(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(database, "ATTEMPTS", 2)
    async with open_store(f"sqlite:///{file}") as store:
        conversation = await talk(store)
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        model = Scripted([say("later")])
        with pytest.raises(StoreUnavailableError) as caught:
            await conversation.interact(ENV, Input("x"), model.config)
        assert not caught.value.maybe_written
        assert (await store.load("a", scope="t")).turns == 3  # readers wait for nobody
        other.close()
        assert (await conversation.interact(ENV, Input("x"), model.config)).text == "later"


async def test_erased_text_is_not_left_in_the_file(file: Path) -> None:
    async with open_store(f"sqlite:///{file}") as store:
        conversation = await store.create("a", scope="t")
        await conversation.interact(ENV, Input("unforgettable words"), Scripted([say("ok")]).config)
        await store.delete("a", scope="t")
        left = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert b"unforgettable" not in left


async def test_a_store_is_not_used_after_its_end_or_in_a_forked_child(file: Path) -> None:
    store = open_store(f"sqlite:///{file}")
    await talk(store)
    store.database._pid -= 1
    with pytest.raises(ConfigurationError, match="forked"):
        await store.load("a", scope="t")
    store.database._pid += 1
    await store.aclose()
    await store.aclose()
    with pytest.raises(ConfigurationError, match="closed"):
        await store.load("a", scope="t")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mysql://x/y",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/x.db",
        "sqlite:///a?b",
        "file.db",
        "sqlite:///a%00b",
    ],
)
async def test_urls_that_name_no_store(url: str) -> None:
    with pytest.raises(ConfigurationError):
        open_store(url)


async def test_two_loops_can_share_a_store(file: Path) -> None:
    store = open_store(f"sqlite:///{file}")
    await talk(store)

    async def elsewhere() -> int:
        return (await store.load("a", scope="t")).turns

    assert await anyio.to_thread.run_sync(lambda: anyio.run(elsewhere)) == 3
    await store.aclose()


def test_a_file_named_memory_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="Write memory:"):
        open_store("sqlite:///:memory:")
