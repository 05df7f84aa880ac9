"""Stores to test: a file, memory, and a PostgreSQL server where POLLUX_LIKE_TEST_POSTGRES names one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from pollux_like.store import ConversationStore, open_store


def postgres_url() -> str:
    """The server's URL; skips, saying so, where there is none."""
    url = os.environ.get("POLLUX_LIKE_TEST_POSTGRES")
    if not url:
        pytest.skip("no PostgreSQL here; set POLLUX_LIKE_TEST_POSTGRES to its URL")
    pytest.importorskip("psycopg_pool")
    return url


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of a schema of its own, dropped at the end."""
    import psycopg

    url, name = postgres_url(), f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


@pytest.fixture(params=["sqlite", "memory", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One URL of each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'talks.db'}" if request.param == "sqlite" else "memory:"


@pytest.fixture
def factory(url: str) -> Callable[..., ConversationStore]:
    """Opens the store of this test, each time it is called."""
    return partial(open_store, url)
