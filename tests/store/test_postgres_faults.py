"""A server that goes away: typed errors, nothing lost, nothing written twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest
from store.server import Proxy, Server, proxied

from pollux_like import ConfigurationError, ConflictError, Environment, Input
from pollux_like.errors import StoreReadOnlyError, StoreSchemaError, StoreUnavailableError
from pollux_like.store import Conversation, ConversationStore, database, ddl, open_store
from pollux_like.testing import Scripted, call, say

pytestmark = pytest.mark.anyio
pytest.importorskip("psycopg_pool")
ENV = Environment()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("postgres"))
    yield running
    running.stop()


@pytest.fixture
def proxy(postgres: str) -> Iterator[Proxy]:
    with proxied(urlsplit(postgres).port or 5432) as running:
        yield running


def through(url: str, proxy: Proxy) -> str:
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    query = f"{parts.query}&sslmode=disable&gssencmode=disable"
    return parts._replace(netloc=f"{user}127.0.0.1:{proxy.port}", query=query).geturl()


async def one_turn(conversation: Conversation, said: str) -> None:
    await conversation.interact(ENV, Input(said), Scripted([say(f"You said {said}")]).config)


async def said_in(store: ConversationStore, name: str) -> list[str]:
    conversation = await store.load(name, scope="t")
    return [shown.messages[0].content for shown in await conversation.transcript()]


async def test_a_restart_under_load_loses_nothing(server: Server) -> None:
    async with open_store(server.url) as store:
        scope = "t"
        names = [(await store.create(scope=scope)).id for _ in range(4)]
        done: dict[str, list[str]] = {name: [] for name in names}

        async def work(name: str) -> None:
            conversation = await store.load(name, scope=scope)
            for number in range(30):
                await one_turn(conversation, f"{number}")
                done[name].append(f"{number}")

        async def restart() -> None:
            for _ in range(2):
                while len(done[names[0]]) < 3:
                    await anyio.sleep(0.01)
                await anyio.to_thread.run_sync(server.restart)

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(work, name)
            group.start_soon(restart)
        for name in names:
            assert await said_in(store, name) == done[name] == [f"{number}" for number in range(30)]
        assert (await store.verify(scope=scope)).problems == ()


async def test_a_server_that_stays_away_is_an_error(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import pollux_like.store.postgres as module

    monkeypatch.setattr(database, "ATTEMPTS", 2)
    monkeypatch.setattr(module, "WAIT_S", 0.2)
    async with open_store(server.url) as store:
        conversation = await store.create(scope="t")
        server.stop()
        model = Scripted([say("never")])
        try:
            with pytest.raises(StoreUnavailableError) as caught:
                await conversation.interact(ENV, Input("x"), model.config)
        finally:
            server.start()
        assert not caught.value.maybe_written
        assert model.requests == []
        await one_turn(conversation, "back")
        assert conversation.turns == 1


@pytest.mark.parametrize(
    "word",
    [b"UPDATE pollux_like_conv", b"INSERT INTO pollux_like_turns", b"INSERT INTO pollux_like_entries", b"COMMIT\0"],
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_connection_that_is_cut_at_a_statement(postgres: str, proxy: Proxy, word: bytes, after: bool) -> None:
    async with open_store(through(postgres, proxy)) as store:
        conversation = await store.create("a", scope="t")
        await one_turn(conversation, "1")
        left = [1]

        def cut(piece: bytes) -> bool:
            if word in piece and left:
                left.pop()
                return True
            return False

        proxy.cut, proxy.after = cut, after
        await one_turn(conversation, "2")
        await one_turn(conversation, "3")
        assert proxy.cuts == 1
        assert await said_in(store, "a") == ["1", "2", "3"]
        assert (await store.load("a", scope="t")).revision == conversation.revision == 6


async def test_every_commit_of_a_turn_may_be_lost(postgres: str, proxy: Proxy) -> None:
    async with open_store(through(postgres, proxy)) as store:
        conversation = await store.create("a", scope="t")
        seen = [0]

        def cut(piece: bytes) -> bool:
            if b"COMMIT\0" not in piece:
                return False
            seen[0] += 1
            return seen[0] % 2 == 1

        proxy.cut, proxy.after = cut, True
        model = Scripted([call("f", {}, id="c")])
        output = await conversation.interact(ENV, Input("x"), model.config)
        ran: list[int] = []
        await conversation.run_tool(output.tool_calls[0], lambda: ran.append(1))
        proxy.cut = lambda piece: False
        assert ran == [1]
        assert proxy.cuts >= 4
        assert (await store.load("a", scope="t")).revision == 2
        assert (await conversation.effects.status(output.tool_calls[0])).status == "done"


async def test_a_lost_commit_is_told_from_a_lost_race(postgres: str, proxy: Proxy) -> None:
    async with open_store(through(postgres, proxy)) as store, open_store(postgres) as direct:
        conversation = await store.create("a", scope="t")
        other = await direct.load("a", scope="t")
        await one_turn(other, "first")
        proxy.cut, proxy.after = lambda piece: b"COMMIT\0" in piece and proxy.cuts == 0, True
        with pytest.raises(ConflictError):
            await one_turn(conversation, "second")
        assert await said_in(direct, "a") == ["first"]


async def test_a_user_that_may_not_write(postgres: str) -> None:
    import psycopg

    async with open_store(postgres) as store:
        await store.create("a", scope="t")
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("ALTER TABLE pollux_like_conversations RENAME TO hidden")
            connection.execute("CREATE VIEW pollux_like_conversations AS SELECT * FROM hidden")
            connection.execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                               "$$BEGIN RAISE insufficient_privilege; END$$")  # fmt: skip
            connection.execute("CREATE TRIGGER refuse INSTEAD OF UPDATE ON pollux_like_conversations "
                               "FOR EACH ROW EXECUTE FUNCTION refuse()")  # fmt: skip
        conversation = await store.load("a", scope="t")
        model = Scripted([say("never")])
        with pytest.raises(StoreReadOnlyError):
            await conversation.interact(ENV, Input("x"), model.config)
        assert model.requests == []


async def test_schemas_newer_and_older(postgres: str) -> None:
    import psycopg

    with pytest.raises(StoreSchemaError, match="schema 0"):
        async with open_store(postgres, migrate=False):
            pass
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(ddl("postgresql").encode())
    async with open_store(postgres, migrate=False) as store:
        await one_turn(await store.create(scope="t"), "x")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("INSERT INTO pollux_like_schema (step) VALUES (99)")
    with pytest.raises(StoreSchemaError, match="schema 99"):
        async with open_store(postgres):
            pass


async def test_many_open_an_empty_database_at_once(postgres: str) -> None:
    async def one(number: int) -> None:
        async with open_store(postgres, connections=2) as store:
            await store.create(f"c{number}", scope="t")

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(one, number)
    async with open_store(postgres) as store:
        assert len(await store.list(scope="t")) == 8


async def test_no_prepared_statement_and_no_setting_stays_on_a_connection(postgres: str) -> None:
    async with open_store(postgres, connections=1) as store:
        conversation = await store.create("a", scope="t")
        for number in range(8):  # psycopg prepares from the fifth on, where it is let
            await one_turn(conversation, f"{number}")
            await store.load("a", scope="t")
        with store.database._pool.connection() as connection:
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
            assert locks == (0,)


def test_what_an_unreachable_server_costs_is_bounded() -> None:
    """The figure in docs/store.md: each attempt waits WAIT_S for the pool, and between them 0.05 s, doubling."""
    import pollux_like.store.postgres as module

    waits = sum(0.05 * 2.0**number for number in range(database.ATTEMPTS - 1))
    assert 14 < database.ATTEMPTS * module.WAIT_S + waits < 15
    store = open_store("postgresql://127.0.0.1:1/db")
    assert store.database._pool.timeout == module.WAIT_S


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:pw%zzsecret@host/db", "postgresql://user:hunt/er2secret@host:5432/db",
        "postgresql://user:12/34secret@host/db", "postgresql://user:p@secret@host/db", "postgresql://user:s%00ecret@host/db",
        "postgresql://user:secret\ud800@host/db", "postgresql://user:secret@host/db?sslmod=x", "postgresql:secret",
        "postgresql://user:sec\0ret@host/db",
    ],
)  # fmt: skip
def test_a_url_that_is_read_otherwise_is_refused_and_not_quoted(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_store(url)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "secret" not in str(chain).replace("user:password", "") or chain.__suppress_context__
        assert not {"pw%zz", "hunt", "er2secret", "34secret"} & set(str(caught.value).split())
        chain = chain.__cause__
    assert "secret" not in str(caught.value)
    assert caplog.text == ""


@pytest.mark.parametrize(
    "url",
    ["postgresql://h1:1,h2:2/db", "postgresql:///db?host=/tmp", "postgresql://u:p%40s@[::1]:5432/db", "postgres://h"],
)
def test_urls_that_libpq_reads_as_they_are_meant(url: str) -> None:
    open_store(url)


def test_the_log_of_the_pool_reaches_no_stderr_unasked() -> None:
    """In a process of its own: pytest has handlers."""
    code = (
        "import sys, anyio, pollux_like, pollux_like.store.database as d\n"
        "if sys.argv[1:]:\n import logging; logging.basicConfig()\n"
        "d.ATTEMPTS = 1\n"
        "async def main():\n"
        " async with pollux_like.open_store('postgresql://user:secret@127.0.0.1:1/db'): pass\n"
        "try: anyio.run(main)\n"
        "except pollux_like.StoreError as error: print(type(error).__name__)"
    )
    for arguments, expected in (((), ""), (("configured",), "WARNING:psycopg.pool")):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "StoreUnavailableError"
        assert "secret" not in done.stderr
        assert (expected in done.stderr) if expected else done.stderr == ""
