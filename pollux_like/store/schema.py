"""The tables, as numbered steps of SQL that only ever grow. `ddl("sqlite")` prints them for whoever applies them."""

from __future__ import annotations

from typing import Literal

from pollux_like.errors import StoreSchemaError
from pollux_like.store.database import Transaction

Dialect = Literal["sqlite", "postgresql"]

_WORDS: dict[Dialect, dict[str, str]] = {
    "sqlite": {"identity": "INTEGER PRIMARY KEY AUTOINCREMENT", "real": "REAL", "bytes": "BLOB"},
    "postgresql": {
        "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
    },
}

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE pollux_like_conversations (
  number {identity},
  scope TEXT NOT NULL,
  id TEXT NOT NULL,
  revision BIGINT NOT NULL,
  segment BIGINT NOT NULL,
  turns BIGINT NOT NULL,
  digest TEXT NOT NULL,
  title TEXT,
  metadata TEXT NOT NULL,
  pending {bytes},
  pending_key TEXT,
  pending_digest TEXT,
  writer TEXT NOT NULL,
  created_at {real} NOT NULL,
  updated_at {real} NOT NULL,
  UNIQUE (scope, id)
)""",
        """CREATE TABLE pollux_like_segments (
  id {identity},
  scope TEXT NOT NULL,
  owner BIGINT,
  root BIGINT,
  parent BIGINT REFERENCES pollux_like_segments (id),
  base BIGINT NOT NULL
)""",
        "CREATE INDEX pollux_like_segments_owner ON pollux_like_segments (owner)",
        "CREATE INDEX pollux_like_segments_root ON pollux_like_segments (root)",
        "CREATE INDEX pollux_like_segments_parent ON pollux_like_segments (parent)",
        """CREATE TABLE pollux_like_turns (
  segment BIGINT NOT NULL REFERENCES pollux_like_segments (id),
  seq BIGINT NOT NULL,
  version INTEGER NOT NULL,
  digest {bytes} NOT NULL,
  state {bytes} NOT NULL,
  PRIMARY KEY (segment, seq)
)""",
        """CREATE TABLE pollux_like_entries (
  segment BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  shown {bytes} NOT NULL,
  messages INTEGER NOT NULL,
  fingerprint {bytes} NOT NULL,
  idempotency_key TEXT,
  input_digest {bytes},
  checksum {bytes} NOT NULL,
  created_at {real} NOT NULL,
  PRIMARY KEY (segment, seq),
  FOREIGN KEY (segment, seq) REFERENCES pollux_like_turns (segment, seq)
)""",
        """CREATE INDEX pollux_like_entries_key ON pollux_like_entries (segment, idempotency_key)
  WHERE idempotency_key IS NOT NULL""",
        """CREATE TABLE pollux_like_effects (
  conversation BIGINT NOT NULL REFERENCES pollux_like_conversations (number),
  turn TEXT NOT NULL,
  call_id TEXT NOT NULL,
  arguments_digest TEXT NOT NULL,
  state TEXT NOT NULL,
  owner TEXT NOT NULL,
  result {bytes},
  PRIMARY KEY (conversation, turn, call_id, arguments_digest)
)""",
        """CREATE TABLE pollux_like_keys (
  conversation BIGINT NOT NULL REFERENCES pollux_like_conversations (number),
  segment BIGINT NOT NULL,
  wrapped TEXT NOT NULL,
  PRIMARY KEY (conversation, segment)
)""",
        "CREATE INDEX pollux_like_keys_segment ON pollux_like_keys (segment)",
    ),
    ("ALTER TABLE pollux_like_turns ADD COLUMN said {bytes}",),
)
"""Step n brings the tables to version n. A step that was released never changes."""

_TABLE = "CREATE TABLE pollux_like_schema (step INTEGER NOT NULL PRIMARY KEY)"


def ddl(dialect: Dialect) -> str:
    """All steps as one script for `sqlite` or `postgresql`, the table of applied steps included."""
    lines = [f"{_TABLE};"]
    for number, step in enumerate(STEPS, start=1):
        lines.append(f"-- step {number}")
        lines.extend(f"{statement.format(**_WORDS[dialect])};" for statement in step)
        lines.append(f"INSERT INTO pollux_like_schema (step) VALUES ({number});")
    return "\n".join(lines) + "\n"


def migrate(tx: Transaction, dialect: Dialect, *, exists: bool, allowed: bool) -> None:
    """Apply the steps that are missing. `exists`: there is a table of applied steps.

    Raises StoreSchemaError for tables that are newer than this library, and for older ones where `allowed` is False.
    """
    row = tx.one("SELECT COALESCE(MAX(step), 0) FROM pollux_like_schema") if exists else None
    version = int(row[0]) if row is not None else 0
    if version > len(STEPS):
        raise StoreSchemaError(
            f"the store has schema {version}, this library knows up to {len(STEPS)}",
            hint="Upgrade pollux_like on this machine",
        )
    if version == len(STEPS):
        return
    if not allowed:
        raise StoreSchemaError(
            f"the store has schema {version}, this library needs {len(STEPS)}",
            hint="Apply the steps that pollux_like.store.ddl(...) prints, or open with migrate=True",
        )
    if not exists:
        tx.run(_TABLE)
    for number in range(version + 1, len(STEPS) + 1):
        for statement in STEPS[number - 1]:
            tx.run(statement.format(**_WORDS[dialect]))
        tx.run("INSERT INTO pollux_like_schema (step) VALUES (?)", number)
