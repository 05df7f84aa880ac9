"""The recipes about crashes: each is killed where it says so, run again, and held to its success check."""

from __future__ import annotations

import base64
import json
import sqlite3
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store.conftest import postgres_url
from test_cookbook import KILLED, run


@contextmanager
def database() -> Iterator[str]:
    """A database of its own on the server, dropped at the end."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    url, name = postgres_url(), f"test_{uuid.uuid4().hex[:12]}"
    parts = conninfo_to_dict(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield f"postgresql://{parts.get('user', 'postgres')}@{parts['host']}:{parts.get('port', 5432)}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(params=["sqlite", "postgresql"])
def urls(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The variables of a recipe; none are needed for files."""
    if request.param == "sqlite":
        yield {}
        return
    with database() as url:
        yield {"STORE_URL": url, "DBOS_SYSTEM_DATABASE_URL": url}


def test_the_tool_loop_survives_its_crash(tmp_path: Path) -> None:
    crashed = run(tmp_path, "tool_loop_after_crash", status=KILLED)
    assert [line.split()[0] for line in crashed] == ["running", "Crash:"]
    resumed = run(tmp_path, "tool_loop_after_crash")
    assert resumed == ["Waiting: book", "running book for call_book", "Done: Booked LX 1."]
    assert [booking["flight"] for booking in json.loads((tmp_path / "bookings.json").read_text())] == ["LX 1"]


def test_a_conversation_in_a_database_survives_the_crash(urls: dict[str, str], tmp_path: Path) -> None:
    crashed = run(tmp_path, "resume_after_crash", status=KILLED, **urls)
    assert crashed == ["Heard 1: I am Sean.", "Crash"]
    resumed = run(tmp_path, "resume_after_crash", **urls)
    assert resumed == ["Pending: I like blue.", "Heard 2: I am Sean., I like blue.", "2 turns are stored"]
    assert run(tmp_path, "resume_after_crash", **urls) == ["2 turns are stored"]


def lines_of(file: Path) -> list[object]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("crash", "asked"), [("tool", [0, 1, 2, 3]), ("model", [0, 1, 2, 2, 3])])
def test_a_durable_loop_is_finished_by_a_second_worker(
    urls: dict[str, str], tmp_path: Path, crash: str, asked: list[int]
) -> None:
    pytest.importorskip("dbos")
    if not urls and sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
        pytest.skip("DBOS takes it that Python 3.12 and newer come with SQLite 3.42")
    first = run(tmp_path, "durable_loop", "--crash-in", crash, status=KILLED, **urls)
    assert not any("turns." in line for line in first)
    second = run(tmp_path, "durable_loop", **urls)
    assert ("Unknown: LX 2" in second) == (crash == "tool")
    assert second[-1] == "4 turns. Done: Booked LX 1. Booked LX 2. Booked LX 3."
    assert lines_of(tmp_path / "bookings.jsonl") == ["LX 1", "LX 2", "LX 3"]
    assert lines_of(tmp_path / "asked.jsonl") == asked  # the call under way may be made again, and no other
    assert run(tmp_path, "durable_loop", **urls) == second[-1:]
    assert lines_of(tmp_path / "asked.jsonl") == asked
    if not urls:
        connection = sqlite3.connect(tmp_path / "dbos.db")
        kept = [base64.b64decode(row[0]) for row in connection.execute("SELECT output FROM operation_outputs")]
        connection.close()
        assert len(kept) == 7  # four turns and three tools
        assert all(len(output) < 100 and b"Booked" not in output for output in kept)  # references, no histories
