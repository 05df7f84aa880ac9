"""What stands around the store: its face, the sync calls, sealing, upcasters, the statements that it makes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from pollux_like import (
    ConflictError,
    ContinuationSealer,
    Environment,
    Input,
    ToolDeclaration,
    ToolResult,
    continuation,
)
from pollux_like.errors import PendingInputError, UnknownEffectError
from pollux_like.store import open_store, records, rows, sqlite, sync
from pollux_like.testing import Scripted, call, say, store_conformance

ENV = Environment(tools=[ToolDeclaration("book")])


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_no_database_is_imported_before_it_is_opened() -> None:
    assert not {"sqlite3", "psycopg", "psycopg_pool"} & loaded_by("import pollux_like, pollux_like.store.sync")
    code = "import pollux_like; pollux_like.open_store('memory:')"
    assert not {"psycopg", "psycopg_pool"} & loaded_by(code)


def test_a_missing_driver_names_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\nimport pollux_like\n"
        "try: pollux_like.open_store('postgresql://h/d')\n"
        "except pollux_like.ConfigurationError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "pollux-like[postgres]"' in done.stdout


def test_the_sync_calls_do_the_same(tmp_path: Path) -> None:
    model = Scripted(
        [say("Hello")], [call("book", {"seat": 1}, id="c")], [say("Booked")], OSError("down"), [say("Back")]
    )
    with sync.open_store(f"sqlite:///{tmp_path / 'talks.db'}") as store:
        conversation = store.create("a", scope="t", title="Talk", metadata={"k": [1]})
        assert conversation.interact(ENV, Input("Hi"), model.config, key="k").text == "Hello"
        assert conversation.interact(ENV, Input("Hi"), model.config, key="k").text == "Hello"
        with conversation.stream(ENV, Input("Book"), model.config) as events:
            kinds = [event.type for event in events]
        assert kinds[-1] == "done"
        (made,) = conversation.pending_tool_calls
        result = conversation.run_tool(made, lambda seat: {"seat": seat})
        assert conversation.run_tool(made, lambda seat: 1 / 0) == result
        assert conversation.effects.status(made).result == result
        conversation.interact(ENV, Input(tool_results=[result]), model.config)
        with pytest.raises(OSError, match="down"):
            conversation.interact(ENV, Input("Again"), model.config)
        other = store.load("a", scope="t")
        assert other.pending is not None
        with pytest.raises(PendingInputError):
            other.interact(ENV, Input("Else"), model.config)
        assert other.resume(ENV, model.config).text == "Back"
        with pytest.raises(ConflictError):
            conversation.discard_pending()
        conversation.refresh()
        assert (conversation.turns, conversation.title, conversation.metadata) == (4, "Talk", {"k": [1]})
        fork = conversation.fork("b", at=2)
        with pytest.raises(UnknownEffectError):
            fork.effects.claim(made)
            fork.run_tool(made, lambda seat: seat)
        fork.effects.resolve(made, ToolResult("c", "given"))
        fork.rewind(1)
        assert [shown.seq for shown in fork.transcript()] == [1]
        assert [match.id for match in store.search("hello", scope="t")] == ["b", "a"]
        assert [summary.id for summary in store.list(scope="t")] == ["b", "a"]
        assert store.export("a", scope="t")["revision"] == conversation.revision
        assert store.verify(scope="t").problems == ()
        assert store.rewind("a", 3, scope="t").turns == 3
        assert store.delete("a", scope="t").kept == 1


@pytest.mark.anyio
async def test_upcasters_run_where_turns_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new version writes each line otherwise, so that the digests of old turns change when they are read."""

    def upcast(fields: dict[str, Any]) -> dict[str, Any]:
        lines = ["{" + added[fields["version"]] + line[1:] for line in fields["turns"]]
        digest = records.GENESIS
        for line in lines:
            digest = records.after(digest, line)
        return {**fields, "version": fields["version"] + 1, "turns": lines, "digest": digest}

    old = continuation.VERSION
    added = {old: '"signed":false,', old + 1: '"media":[],'}
    async with open_store("memory:") as store:
        conversation = await store.create("a", scope="t")
        for word in ("1", "2"):
            await conversation.interact(ENV, Input(word), Scripted([say(word)]).config)
        before = conversation.continuation
        for new in (old + 1, old + 2):
            for module in (continuation, records, rows):
                monkeypatch.setattr(module, "VERSION", new)
            monkeypatch.setitem(continuation.UPCASTERS, new - 1, upcast)
            loaded = await store.load("a", scope="t")
            assert loaded.continuation != before
            await loaded.interact(ENV, Input(f"by {new}"), Scripted([say("ok")]).config)
            again = await store.load("a", scope="t")
            assert again.continuation == loaded.continuation
            assert (await store.verify(scope="t")).problems == ()
        fork = await again.fork(at=3)
        await fork.interact(ENV, Input("fork"), Scripted([say("ok")]).config)
        assert (await store.load(fork.id, scope="t")).turns == 4


class Watched:
    """A transaction that keeps the statements."""

    def __init__(self, tx: Any, seen: set[str]) -> None:
        self._tx, self._seen = tx, seen

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run(sql: str, *values: object) -> Any:
            self._seen.add(sql)
            return getattr(self._tx, name)(sql, *values)

        return run


@pytest.mark.parametrize("sealer", [None, ContinuationSealer([bytes(32)])], ids=["plain", "sealed"])
def test_every_statement_is_bound_to_a_scope(
    sealer: ContinuationSealer | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    rows_of = sqlite._Rows
    monkeypatch.setattr(sqlite, "_Rows", lambda connection: Watched(rows_of(connection), seen))
    factory = partial(open_store, "memory:", sealer=sealer)

    for check in store_conformance.CHECKS:
        anyio.run(check, factory)
    inserts = tuple(f"INSERT INTO pollux_like_{table} (segment" for table in ("turns", "entries"))
    tables = ("CREATE ", "ALTER ", "SELECT COUNT(*) FROM sqlite_master", "INSERT INTO pollux_like_schema")
    known = (*inserts, *tables)
    unbound = [sql for sql in seen if "scope = ?" not in sql and "(scope" not in sql and not sql.startswith(known)]
    assert len(seen) > 25
    assert unbound == []


def test_no_repr_shows_what_is_stored() -> None:
    one = records.Stored(1, "d", '{"native":["OPAQUE"]}', records.Box)
    assert "OPAQUE" not in repr(one)
