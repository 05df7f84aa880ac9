"""Encryption at rest: nothing of a conversation in the clear, keys that are wrapped, shared, rotated and dropped."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from pollux_like import ConfigurationError, ContinuationSealer, Environment, Input
from pollux_like.errors import StoreDamagedError, StoreKeyError
from pollux_like.store import ConversationStore, open_store
from pollux_like.testing import Scripted, call, say, store_conformance

pytestmark = pytest.mark.anyio
ENV = Environment()
OLD, NEW, OTHER = (bytes([number]) * 32 for number in range(3))


@pytest.fixture
def sealed(url: str) -> Callable[..., ConversationStore]:
    """Opens the store of this test with the old key, or with another sealer."""
    return partial(open_store, url, sealer=ContinuationSealer([OLD]))


async def talked(store: ConversationStore, name: str, *said: str) -> None:
    conversation = await store.create(name, scope="t")
    for word in said:
        await conversation.interact(ENV, Input(word), Scripted([say(f"You said {word}")]).config)


async def texts(store: ConversationStore, name: str) -> list[str]:
    return [shown.messages[0].content for shown in await (await store.load(name, scope="t")).transcript()]


async def wrapped(store: ConversationStore) -> list[str]:
    rows = await store.database.read(lambda tx: tx.all("SELECT wrapped FROM pollux_like_keys ORDER BY 1"))
    return [row[0] for row in rows]


@pytest.mark.parametrize("check", store_conformance.CHECKS, ids=lambda check: check.__name__)
async def test_a_sealed_store_does_what_every_store_has_to_do(
    check: Callable[..., Awaitable[None]], sealed: Callable[..., ConversationStore]
) -> None:
    await check(sealed)


async def secrets_in(store: ConversationStore) -> None:
    """A conversation whose every text holds the word: said, answered, asked of a tool, given by it, pending."""
    conversation = await store.create("a", scope="t")
    model = Scripted([say("secret one"), call("book", {"x": "secret two"}, id="c")], OSError("down"))
    output = await conversation.interact(ENV, Input("secret three"), model.config, key="k")
    result = await conversation.run_tool(output.tool_calls[0], lambda x: "secret four")
    with pytest.raises(OSError, match="down"):
        await conversation.interact(ENV, Input("secret five", tool_results=[result]), model.config)
    fork = await conversation.fork("b")
    await fork.rewind(0)
    await fork.interact(ENV, Input("secret six"), Scripted([say("secret seven")]).config)


async def test_no_text_is_in_the_file_nor_in_its_log(tmp_path: Path) -> None:
    files = []
    for name, sealer in (("sealed", ContinuationSealer([OLD])), ("plain", None)):
        folder = tmp_path / name
        folder.mkdir()
        async with open_store(f"sqlite:///{folder / 'talks.db'}", sealer=sealer) as store:
            await secrets_in(store)
            assert (folder / "talks.db-wal").stat().st_size > 0
            files.append(b"".join(path.read_bytes() for path in folder.iterdir()))
    assert b"secret" not in files[0]
    assert files[1].count(b"secret") > 10  # what is looked for would be found


async def test_no_text_is_in_the_tables_of_the_server(postgres: str) -> None:
    import psycopg

    async with open_store(postgres, sealer=ContinuationSealer([OLD])) as store:
        await secrets_in(store)
    with psycopg.connect(postgres) as connection:
        named = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name LIKE 'pollux_like_%'"
        ).fetchall()
        assert len(named) > 30
        for table, column, kind in named:
            pattern = b"secret".hex() if kind == "bytea" else "secret"
            shown = f"encode({column}, 'hex')" if kind == "bytea" else f"{column}::text"
            found = connection.execute(f"SELECT count(*) FROM {table} WHERE {shown} LIKE %s".encode(), [f"%{pattern}%"])
            assert found.fetchone() == (0,), (table, column)


async def test_equal_texts_have_no_equal_rows(sealed: Callable[..., ConversationStore]) -> None:
    """Neither texts nor the names of digests say that two conversations say the same."""
    async with sealed() as store:
        for name in ("a", "b"):
            conversation = await store.create(name, scope="t")
            model = Scripted([call("book", {"x": 1}, id="c")])
            output = await conversation.interact(ENV, Input("same"), model.config, key="k")
            await conversation.run_tool(output.tool_calls[0], lambda x: "same")
        for table, columns in (
            ("turns", "digest, state"), ("entries", "shown, input_digest, checksum"),
            ("effects", "turn, arguments_digest, result"), ("conversations", "digest"), ("keys", "wrapped"),
        ):  # fmt: skip
            sql = f"SELECT {columns} FROM pollux_like_{table}"
            found = await store.database.read(lambda tx, sql=sql: tx.all(sql))
            for column in zip(*found, strict=True):
                assert len({bytes(v) if isinstance(v, bytes) else v for v in column}) == len(column) >= 2, sql


async def test_a_key_that_is_wrong_or_missing_is_one_error(sealed: Callable[..., ConversationStore]) -> None:
    async with sealed() as store:
        await talked(store, "a", "1")
        right = store.policy
        for sealer in (ContinuationSealer([NEW]), None):
            store.policy = type(right)(sealer=sealer)
            for attempt in (
                lambda: store.load("a", scope="t"), lambda: store.fork("a", "b", scope="t"),
                lambda: store.export("a", scope="t"), lambda: store.rewind("a", 0, scope="t"),
            ):  # fmt: skip
                with pytest.raises(StoreKeyError):
                    await attempt()
            assert [name for name, _ in (await store.verify(scope="t")).problems] == ["a"]
            with pytest.raises(ConfigurationError, match="sealed"):
                await store.search("1", scope="t")
        assert [summary.id for summary in await store.list(scope="t")] == ["a"]
        assert (await store.delete("a", scope="t")).turns == 1  # an erasure needs no key


async def test_a_plain_conversation_is_refused_by_a_sealed_store(url: str) -> None:
    async with open_store(url) as store:
        await talked(store, "a", "1")
        store.policy = type(store.policy)(sealer=ContinuationSealer([OLD]))
        with pytest.raises(StoreKeyError, match="not sealed"):
            await store.load("a", scope="t")


async def test_a_fork_reads_what_it_shares_after_the_other_was_deleted(
    sealed: Callable[..., ConversationStore],
) -> None:
    async with sealed() as store:
        await talked(store, "trunk", "1", "2", "3")
        before = len(await wrapped(store))
        fork = await store.fork("trunk", "fork", scope="t", at=2)
        assert len(await wrapped(store)) == before + 3  # its own, its segment, the one it shares
        await fork.interact(ENV, Input("4"), Scripted([say("four")]).config)
        inner = await fork.fork("inner")
        receipt = await store.delete("trunk", scope="t")
        assert [key.partition(" ")[0] for key in receipt.keys] == ["conversation"]
        assert (receipt.turns, receipt.kept) == (1, 2)
        assert await texts(store, "fork") == await texts(store, "inner") == ["1", "2", "4"]
        assert len((await store.delete("fork", scope="t")).keys) == 1
        await inner.refresh()
        last = await store.delete("inner", scope="t")
        assert sorted(key.partition(" ")[0] for key in last.keys) == ["conversation"] + ["segment"] * 3
        assert await wrapped(store) == []


async def test_wrappings_do_not_grow_with_turns(sealed: Callable[..., ConversationStore]) -> None:
    async with sealed() as store:
        await talked(store, "a", *map(str, range(30)))
        assert len(await wrapped(store)) == 2


async def test_rotation_rewraps_and_writes_no_turn_anew(sealed: Callable[..., ConversationStore]) -> None:
    async with sealed() as store:
        for number in range(4):
            await talked(store, f"c{number}", "1", "2")
        await store.fork("c0", "fork", scope="t", at=1)
        tables = ("turns", "entries", "effects", "conversations", "segments")

        async def rest() -> list[object]:
            return [
                await store.database.read(
                    lambda tx, sql=f"SELECT * FROM pollux_like_{table}": sorted(map(repr, tx.all(sql)))
                )
                for table in tables
            ]

        before, keys = await rest(), await wrapped(store)
        store.policy = type(store.policy)(sealer=ContinuationSealer([NEW, OLD]))
        seen: list[tuple[int, int]] = []
        assert await store.rotate(batch=3, progress=lambda *numbers: seen.append(numbers)) == len(keys) == 11
        assert seen == [(3, 3), (6, 6), (9, 9), (11, 11)]
        assert await store.rotate() == 0
        assert await rest() == before
        assert not set(keys) & set(await wrapped(store))
        store.policy = type(store.policy)(sealer=ContinuationSealer([NEW]))
        assert (await store.verify(scope="t")).problems == ()
        store.policy = type(store.policy)(sealer=ContinuationSealer([OTHER]))
        assert len((await store.verify(scope="t")).problems) == 5
        with pytest.raises(StoreKeyError):
            await store.rotate()


async def test_a_worker_with_the_old_key_alone_writes_no_wrapping_after_a_rotation(
    sealed: Callable[..., ConversationStore],
) -> None:
    """Its object still has the data keys that it opened before: turns go on, and what would need a new wrapping does not."""
    async with sealed() as store:
        await talked(store, "a", "1", "2")
        old = await store.load("a", scope="t")
        ring = type(store.policy)
        rotating = ConversationStore(store.database, ring(sealer=ContinuationSealer([NEW, OLD])))
        assert await rotating.rotate() == 2
        await old.interact(ENV, Input("3"), Scripted([say("y")]).config)
        for attempt in (lambda: old.rewind(1), lambda: old.rewind(0), old.fork, lambda: old.fork(at=0)):
            with pytest.raises(StoreKeyError):
                await attempt()
        assert (old.turns, old.continuation) == (3, (await rotating.load("a", scope="t")).continuation)
        only = ConversationStore(store.database, ring(sealer=ContinuationSealer([NEW])))
        assert (await only.verify(scope="t")).problems == ()
        assert [summary.revision for summary in await only.list(scope="t")] == [old.revision]


async def test_rotation_under_load(sealed: Callable[..., ConversationStore]) -> None:
    """Turns, forks, rewinds and deletions go on meanwhile, by workers with the old first key too."""
    async with sealed() as store:
        for number in range(6):
            await talked(store, f"c{number}", "1", "2")
        ring = type(store.policy)(sealer=ContinuationSealer([NEW, OLD]))
        rotating = ConversationStore(store.database, ring)
        older = ConversationStore(store.database, type(ring)(sealer=ContinuationSealer([OLD, NEW])))
        done = anyio.Event()

        async def work(number: int) -> None:
            conversation = await older.load(f"c{number}", scope="t")
            for step in range(6):
                await conversation.interact(ENV, Input(f"{step}"), Scripted([say("y")]).config)
                fork = await conversation.fork(f"f{number}.{step}", at=2)
                await fork.rewind(1)
                if step % 2:
                    await older.delete(fork.id, scope="t")

        async def rotate() -> None:
            while not done.is_set():
                await rotating.rotate(batch=2)

        async with anyio.create_task_group() as outer:
            outer.start_soon(rotate)
            async with anyio.create_task_group() as group:
                for number in range(6):
                    group.start_soon(work, number)
            done.set()
        await rotating.rotate()
        assert await rotating.rotate() == 0
        only = ConversationStore(store.database, type(ring)(sealer=ContinuationSealer([NEW])))
        report = await only.verify(scope="t")
        assert (report.conversations, report.problems) == (24, ())


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("UPDATE pollux_like_keys SET wrapped = (SELECT wrapped FROM pollux_like_keys WHERE conversation = 2 AND segment = 0) "
         "WHERE conversation = 1 AND segment = 0", StoreKeyError),
        ("UPDATE pollux_like_keys SET wrapped = (SELECT wrapped FROM pollux_like_keys WHERE conversation = 2 AND segment = 2) "
         "WHERE conversation = 1 AND segment = 1", StoreKeyError),
        ("DELETE FROM pollux_like_keys WHERE conversation = 1 AND segment = 1", StoreKeyError),
        ("DELETE FROM pollux_like_keys", StoreKeyError),
        ("UPDATE pollux_like_keys SET wrapped = 'plx1.a.b'", StoreKeyError),
        ("UPDATE pollux_like_turns SET state = (SELECT state FROM pollux_like_turns WHERE segment = 1 AND seq = 1) "
         "WHERE segment = 1 AND seq = 2", StoreDamagedError),
        ("UPDATE pollux_like_turns SET state = x'00' WHERE segment = 1 AND seq = 2", StoreDamagedError),
        ("UPDATE pollux_like_turns SET state = (SELECT state FROM pollux_like_turns WHERE segment = 2 AND seq = 1) "
         "WHERE segment = 1 AND seq = 1", StoreDamagedError),
        ("UPDATE pollux_like_entries SET shown = (SELECT shown FROM pollux_like_entries WHERE segment = 1 AND seq = 1) "
         "WHERE segment = 1 AND seq = 2", StoreDamagedError),
        ("UPDATE pollux_like_conversations SET pending = (SELECT state FROM pollux_like_turns LIMIT 1)", StoreDamagedError),
    ],
)  # fmt: skip
async def test_what_is_changed_or_moved_is_not_opened(tmp_path: Path, sql: str, kind: type[Exception]) -> None:
    url = f"sqlite:///{tmp_path / 'talks.db'}"
    async with open_store(url, sealer=ContinuationSealer([OLD])) as store:
        await talked(store, "a", "1", "2")
        await talked(store, "b", "1", "2")
    connection = sqlite3.connect(tmp_path / "talks.db")
    with connection:
        assert connection.execute(sql).rowcount > 0
    connection.close()
    async with open_store(url, sealer=ContinuationSealer([OLD])) as store:
        with pytest.raises(kind):
            conversation = await store.load("a", scope="t")
            await conversation.transcript()
            assert conversation.pending is None
            assert conversation.effects.turn


async def test_what_is_no_sealer_is_refused() -> None:
    for value in (os.urandom(32), "key", object()):
        with pytest.raises(ConfigurationError, match="sealer"):
            open_store("memory:", sealer=value)  # type: ignore[arg-type]
    async with open_store("memory:") as store:
        with pytest.raises(ConfigurationError, match="without a sealer"):
            await store.rotate()
