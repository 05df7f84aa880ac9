"""open_store: a store by its URL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pollux_like import checks
from pollux_like.errors import ConfigurationError, missing_extra
from pollux_like.messages import Message
from pollux_like.sealing import ContinuationSealer
from pollux_like.store.database import Database
from pollux_like.store.records import Policy
from pollux_like.store.store import ConversationStore


def open_store(
    url: str,
    *,
    redact: Callable[[Message], Message] | None = None,
    sealer: ContinuationSealer | None = None,
    migrate: bool = True,
    synchronous: Literal["full", "normal"] = "full",
    connections: int = 10,
) -> ConversationStore:
    """A store by its URL. Nothing is opened before it is used; `async with` closes it.

    * `sqlite:///file.db` (relative), `sqlite:////folder/file.db` (absolute), `memory:`, `postgresql://...` (psycopg
      and its pool, extra "postgres").
    * `redact`: a function that each transcript message goes through before it is stored; opaque state cannot be
      redacted. `sealer`: encryption of all conversation text at rest; see docs/sealing.md.
    * `migrate`: bring older tables up to date. `synchronous` (SQLite): "full" survives the loss of power,
      "normal" only that of the process. `connections` (PostgreSQL): most of this process.

    Raises ConfigurationError for a URL or a value that cannot be used.
    """
    file = file_of(url)
    if sealer is not None and not isinstance(sealer, ContinuationSealer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"sealer is {checks.kind(sealer)}", hint="Give a ContinuationSealer([...])")
    checks.flag(migrate, "migrate")
    checks.one_of(synchronous, "synchronous", ("full", "normal"))
    checks.whole(connections, "connections", least=1, most=1000)
    scheme = url.partition(":")[0]
    database: Database
    if url == "memory:" or file is not None:
        from pollux_like.store.sqlite import SQLite

        database = SQLite(file, synchronous=synchronous, migrate=migrate)
    elif scheme in ("postgresql", "postgres"):
        try:
            from pollux_like.store.postgres import PostgreSQL
        except ImportError as error:  # psycopg without its C library is one too
            raise missing_extra("postgres", error) from None
        database = PostgreSQL(url, connections=connections, migrate=migrate)
    else:
        raise ConfigurationError(
            "the url is of no store that is known", hint="Use sqlite:///file.db, postgresql://host/name or memory:"
        )
    return ConversationStore(database, Policy(redact, sealer))


def file_of(url: str) -> Path | None:
    """The file of a `sqlite:` URL; None for a store that has none. Raises ConfigurationError."""
    if checks.text(url, "url").partition(":")[0] != "sqlite":
        return None
    parts = urlsplit(url)
    path = unquote(parts.path)[1:]
    if path == ":memory:":
        raise ConfigurationError("the url names a file :memory:", hint="Write memory: for a store in memory")
    if parts.netloc or parts.query or parts.fragment or not path or "\0" in path:
        raise ConfigurationError(
            "the url names no SQLite file", hint="Write sqlite:///file.db, or sqlite:////folder/file.db"
        )
    return Path(path)
