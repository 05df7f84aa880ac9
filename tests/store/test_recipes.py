"""The recipes around the store: each is run as a program of its own, and killed where it says so."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store.conftest import postgres_url
from test_docs import ROOT, recipe

from pollux_like import ContinuationSealer

KILLED = -9


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


def test_a_conversation_in_a_database_survives_the_crash(urls: dict[str, str], tmp_path: Path) -> None:
    name = "conversation_in_a_database.py"
    crashed = recipe(name, tmp_path, status=KILLED, **urls)
    assert crashed.splitlines() == ["Heard 1: I am Sean.", "Crash"]
    resumed = recipe(name, tmp_path, **urls)
    assert resumed.splitlines() == ["Pending: I like blue.", "Heard 2: I am Sean., I like blue.", "2 turns are stored"]
    assert recipe(name, tmp_path, **urls) == "2 turns are stored\n"


def lines(file: Path) -> list[object]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("crash", "asked"), [("tool", [0, 1, 2, 3]), ("model", [0, 1, 2, 2, 3])])
def test_a_durable_loop_is_finished_by_a_second_worker(
    urls: dict[str, str], tmp_path: Path, crash: str, asked: list[int]
) -> None:
    pytest.importorskip("dbos")
    name = "durable_loop_on_dbos.py"
    first = recipe(name, tmp_path, "--crash-in", crash, status=KILLED, **urls)
    assert "turns." not in first
    second = recipe(name, tmp_path, **urls)
    assert ("Unknown: LX 2" in second) == (crash == "tool")
    assert second.splitlines()[-1] == "4 turns. Done: Booked LX 1. Booked LX 2. Booked LX 3."
    assert lines(tmp_path / "bookings.jsonl") == ["LX 1", "LX 2", "LX 3"]
    assert lines(tmp_path / "asked.jsonl") == asked  # the call under way may be made again, and no other
    third = recipe(name, tmp_path, **urls)
    assert third == second.splitlines()[-1] + "\n"
    assert lines(tmp_path / "asked.jsonl") == asked
    if not urls:
        connection = sqlite3.connect(tmp_path / "dbos.db")
        kept = [base64.b64decode(row[0]) for row in connection.execute("SELECT output FROM operation_outputs")]
        connection.close()
        assert len(kept) == 7  # four turns and three tools
        assert all(len(output) < 100 and b"Booked" not in output for output in kept)  # references, no histories


def test_a_sealed_cookie_carries_the_chat() -> None:
    from starlette.testclient import TestClient

    spec = importlib.util.spec_from_file_location("sealed_cookie", ROOT / "cookbook/sealed_cookie.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    old, new = os.urandom(32), os.urandom(32)
    sean, eve = {"x-user": "sean"}, {"x-user": "eve"}
    with TestClient(module.application(ContinuationSealer([old]))) as client:
        assert client.post("/say", content="I am Sean.", headers=sean).json()["text"].startswith("Message 1;")
        second = client.post("/say", content="Who am I?", headers=sean)
        assert second.json() == {"text": "Message 3; the first was: I am Sean."}
        token = client.cookies["talk"]
        assert "Sean" not in token
        cookie = second.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        for headers, value in ((eve, token), (sean, token[:-2] + "AA"), (sean, "x"), (sean, token[:40])):
            client.cookies.set("talk", value)
            refused = client.post("/say", content="Hi", headers=headers)
            assert refused.status_code == 400
            assert 'talk=""' in refused.headers["set-cookie"]
            client.cookies.clear()
        assert client.post("/say", content=" ", headers=sean).status_code == 400
    with TestClient(module.application(ContinuationSealer([new, old]))) as client:  # the keys were rotated
        client.cookies.set("talk", token)
        assert client.post("/say", content="Again", headers=sean).json()["text"].startswith("Message 5;")
        client.cookies.clear()
        full = client.post("/say", content="x" * 5_000, headers=sean)
        assert "full" in full.json()["error"]
        assert "set-cookie" not in full.headers
