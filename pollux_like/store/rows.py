"""The SQL of conversations: every statement is bound to a scope, and every change to a revision.

A conversation is a head: a revision, and a place (segment, number of turns). A segment holds the turns that one head
appended; its parent is the place that it was forked or rewound from. The turns of a head are those of its segment above
`base`, those of the parent up to `base`, and so on: forking and rewinding copy nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pollux_like import canonical
from pollux_like.continuation import VERSION
from pollux_like.errors import ConflictError, UnknownConversationError
from pollux_like.messages import Message
from pollux_like.store import records
from pollux_like.store.database import Transaction
from pollux_like.store.records import Policy, Record, Shown

_HEAD = "number, id, revision, segment, turns, digest, title, metadata, pending, pending_key, pending_digest, created_at, updated_at, writer"  # noqa: E501

CHAIN = """chain (segment, base, upto, parent) AS (
  SELECT id, base, CAST(? AS BIGINT), parent FROM pollux_like_segments WHERE scope = ? AND id = ?
  UNION ALL
  SELECT up.id, up.base, CASE WHEN chain.upto < chain.base THEN chain.upto ELSE chain.base END, up.parent
  FROM chain JOIN pollux_like_segments up ON up.id = chain.parent AND up.scope = ?
)"""
"""The segments of a head, by (turns, scope, segment, scope): each holds the turns above base, up to upto."""


@dataclass(frozen=True, slots=True)
class Head:
    """A conversation's row. `turns` is the number of its complete turns, `digest` that of the last as it was stored."""

    scope: str
    number: int
    id: str
    revision: int
    segment: int
    turns: int
    digest: str
    title: str | None
    metadata: str = field(repr=False)
    pending: str | None = field(repr=False)
    pending_key: str | None
    pending_digest: str | None
    created_at: float
    updated_at: float
    writer: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list. `number` grows with each new conversation: the order of lists, and their cursor."""

    id: str
    number: int
    revision: int
    turns: int
    title: str | None
    pending: bool
    created_at: float
    updated_at: float


def unknown(id: str) -> UnknownConversationError:
    """The same for a conversation of another scope."""
    return UnknownConversationError(
        f"there is no conversation {id[:80]!r} in this scope", hint="Look for it with list(scope=...), or create it"
    )


def find(tx: Transaction, scope: str, id: str) -> Head | None:
    """The head, or None."""
    row = tx.one(f"SELECT {_HEAD} FROM pollux_like_conversations WHERE scope = ? AND id = ?", scope, id)
    return None if row is None else Head(scope, *row)


def get(tx: Transaction, scope: str, id: str) -> Head:
    """The head. Raises UnknownConversationError."""
    head = find(tx, scope, id)
    if head is None:
        raise unknown(id)
    return head


def landed(tx: Transaction, scope: str, id: str, writer: str) -> Head | None:
    """The head, if the write of that token is the newest one to it."""
    head = find(tx, scope, id)
    return head if head is not None and head.writer == writer else None


def create(tx: Transaction, scope: str, id: str, title: str | None, metadata: str, writer: str) -> Head:
    """A new head without turns. Raises ConflictError where the id is taken."""
    now = time.time()
    segment = _segment(tx, scope, None, None, 0)
    done = tx.run(
        "INSERT INTO pollux_like_conversations (scope, id, revision, segment, turns, digest, title, metadata, writer, "
        "created_at, updated_at) VALUES (?, ?, 0, ?, 0, ?, ?, ?, ?, ?, ?) ON CONFLICT (scope, id) DO NOTHING",
        scope, id, segment, records.GENESIS, title, metadata, writer, now, now,
    )  # fmt: skip
    if done != 1:
        raise ConflictError(
            f"there is a conversation {id[:80]!r} already", hint="Load it, or choose another id",
            expected=0, actual=get(tx, scope, id).revision,
        )  # fmt: skip
    return _owned(tx, scope, id, segment)


def _segment(tx: Transaction, scope: str, root: int | None, parent: int | None, base: int) -> int:
    row = tx.one(
        "INSERT INTO pollux_like_segments (scope, root, parent, base) VALUES (?, ?, ?, ?) RETURNING id",
        scope, root, parent, base,
    )  # fmt: skip
    assert row is not None  # RETURNING gives the row that was inserted
    return int(row[0])


def _owned(tx: Transaction, scope: str, id: str, segment: int) -> Head:
    head = get(tx, scope, id)
    tx.run(
        "UPDATE pollux_like_segments SET owner = ?, root = COALESCE(root, id) WHERE scope = ? AND id = ?",
        head.number, scope, segment,
    )  # fmt: skip
    return head


def change(tx: Transaction, scope: str, id: str, expected: int, writer: str, **columns: object) -> Head:
    """The one compare-and-set: the revision goes up by one, the columns change, or ConflictError and nothing changes.

    Two writers meet in the row: the second waits for the first, and then sees another revision than it expects.
    """
    names = "".join(f", {name} = ?" for name in columns)
    row = tx.one(
        f"UPDATE pollux_like_conversations SET revision = revision + 1, updated_at = ?, writer = ?{names} "
        f"WHERE scope = ? AND id = ? AND revision = ? RETURNING {_HEAD}",
        time.time(), writer, *columns.values(), scope, id, expected,
    )  # fmt: skip
    if row is None:
        raise conflict(expected, get(tx, scope, id).revision)
    return Head(scope, *row)


def conflict(expected: int, actual: int) -> ConflictError:
    """Another writer was first."""
    return ConflictError(
        f"the conversation is at revision {actual}, not {expected}: another writer was first",
        hint="Load it again, and decide anew", expected=expected, actual=actual,
    )  # fmt: skip


def append(
    tx: Transaction, policy: Policy, scope: str, segment: int, first: int, turns: Sequence[Record],
    key: str | None = None, input_digest: str | None = None,
) -> None:  # fmt: skip
    """The one write point of turns: opaque lines to one table, what is shown of them to two others."""
    place = records.context(scope, "segment", segment)
    now = time.time()
    states: list[tuple[object, ...]] = []
    entries: list[tuple[object, ...]] = []
    messages: list[tuple[object, ...]] = []
    for seq, record in enumerate(turns, start=first):
        states.append((segment, seq, VERSION, record.digest, policy.sealed(record.line, place)))
        shown = [records.message_row(policy.redacted(message)) for message in record.messages]
        usage = records.usage_row(record.usage)
        details = canonical.dumps(dict(record.details))
        check = records.checksum(record.digest, [record.fingerprint, record.finish, usage, details, shown])
        entries.append((segment, seq, record.fingerprint, record.finish, usage, details, key, input_digest, check, now))
        for position, (role, content, extra) in enumerate(shown):
            sealed = None if extra is None else policy.sealed(extra, place)
            messages.append((segment, seq, position, role, policy.sealed(content, place), sealed))
    tx.many("INSERT INTO pollux_like_turns (segment, seq, version, digest, state) VALUES (?, ?, ?, ?, ?)", states)
    tx.many(
        "INSERT INTO pollux_like_entries (segment, seq, fingerprint, finish, usage, details, idempotency_key, "
        "input_digest, checksum, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        entries,
    )
    tx.many(
        "INSERT INTO pollux_like_messages (segment, seq, position, role, content, extra) VALUES (?, ?, ?, ?, ?, ?)",
        messages,
    )


def states(tx: Transaction, policy: Policy, head: Head, upto: int) -> list[tuple[int, str, str]]:
    """(version, digest, line) of the first `upto` turns, in order: one query, however many turns and forks."""
    scope = head.scope
    found = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT t.segment, t.version, t.digest, t.state FROM chain "
        "JOIN pollux_like_turns t ON t.segment = chain.segment AND t.seq > chain.base AND t.seq <= chain.upto "
        "ORDER BY t.seq",
        upto, scope, head.segment, scope,
    )  # fmt: skip
    if policy.sealing is None:
        return [(version, digest, state) for _, version, digest, state in found]
    return [
        (version, digest, policy.unsealed(state, records.context(scope, "segment", segment)))
        for segment, version, digest, state in found
    ]


def lock_tree(tx: Transaction, scope: str, root: int) -> None:
    """Forks, rewinds and deletions in one tree of segments follow one another."""
    tx.run("UPDATE pollux_like_segments SET root = root WHERE scope = ? AND id = ?", scope, root)


def fork(tx: Transaction, head: Head, turns: int, id: str, title: str | None, metadata: str, writer: str) -> Head:
    """A new head that shares the first turns of another. The caller holds the other's row."""
    created = create(tx, head.scope, id, title, metadata, writer)
    digest = _branch(tx, head, turns, created.segment)
    tx.run(
        "UPDATE pollux_like_conversations SET turns = ?, digest = ? WHERE scope = ? AND id = ?",
        turns, digest, head.scope, id,
    )  # fmt: skip
    return get(tx, head.scope, id)


def rewind(tx: Transaction, head: Head, turns: int, expected: int, writer: str) -> Head:
    """The head goes back to its first turns; those after it stay until the conversation is deleted."""
    segment = _segment(tx, head.scope, None, None, 0)
    change(tx, head.scope, head.id, expected, writer, segment=segment, turns=turns, pending=None, pending_key=None,
           pending_digest=None)  # fmt: skip
    _owned(tx, head.scope, head.id, segment)
    digest = _branch(tx, head, turns, segment)
    tx.run("UPDATE pollux_like_conversations SET digest = ? WHERE scope = ? AND id = ?", digest, head.scope, head.id)
    return get(tx, head.scope, head.id)


def _branch(tx: Transaction, head: Head, turns: int, segment: int) -> str:
    """Hang a segment below the one that holds that many turns of a head. Returns the digest there."""
    if turns == 0:
        return records.GENESIS
    scope = head.scope
    found = tx.one(
        f"WITH RECURSIVE {CHAIN} SELECT t.segment, t.digest, s.root FROM chain "
        "JOIN pollux_like_turns t ON t.segment = chain.segment AND t.seq > chain.base AND t.seq <= chain.upto "
        "JOIN pollux_like_segments s ON s.id = t.segment WHERE t.seq = ?",
        head.turns, scope, head.segment, scope, turns,
    )  # fmt: skip
    if found is None:
        raise records.damaged(f"turn {turns} is missing")
    parent, digest, root = found
    lock_tree(tx, scope, root)
    tx.run(
        "UPDATE pollux_like_segments SET root = ?, parent = ?, base = ? WHERE scope = ? AND id = ?",
        root, parent, turns, scope, segment,
    )  # fmt: skip
    return str(digest)


def hold(tx: Transaction, scope: str, id: str) -> Head:
    """The head, its row locked to the end of the transaction. Raises UnknownConversationError."""
    tx.run("UPDATE pollux_like_conversations SET writer = writer WHERE scope = ? AND id = ?", scope, id)
    return get(tx, scope, id)


def transcript(tx: Transaction, policy: Policy, head: Head, first: int, last: int) -> list[Shown]:
    """What is shown of the turns `first` to `last`. Raises StoreDamagedError where it is not what was written."""
    scope = head.scope
    where = "ON x.segment = chain.segment AND x.seq > chain.base AND x.seq <= chain.upto AND x.seq >= ? ORDER BY x.seq"
    bound = (min(last, head.turns), scope, head.segment, scope, first)
    entries = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT x.seq, x.fingerprint, x.finish, x.usage, x.details, x.checksum, x.created_at, "
        "(SELECT digest FROM pollux_like_turns t WHERE t.segment = x.segment AND t.seq = x.seq) "
        f"FROM chain JOIN pollux_like_entries x {where}",
        *bound,
    )
    found = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT x.segment, x.seq, x.role, x.content, x.extra "
        f"FROM chain JOIN pollux_like_messages x {where}, x.position",
        *bound,
    )
    texts: dict[int, list[tuple[str, str, str | None]]] = {}
    for segment, seq, role, content, extra in found:
        place = records.context(scope, "segment", segment)
        rest = None if extra is None else policy.unsealed(extra, place)
        texts.setdefault(seq, []).append((role, policy.unsealed(content, place), rest))
    if len(entries) != max(0, bound[0] - first + 1):
        raise records.damaged("rows of the transcript are missing")
    return [_shown(entry, texts.get(entry[0], [])) for entry in entries]


def _shown(entry: tuple[Any, ...], rows: list[tuple[str, str, str | None]]) -> Shown:
    seq, fingerprint, finish, usage, details, check, created_at, digest = entry
    if records.checksum(digest, [fingerprint, finish, usage, details, rows]) != check:
        raise records.damaged(f"the transcript of turn {seq} is not what was written")
    messages: tuple[Message, ...] = tuple(records.message_of(*row) for row in rows)
    return Shown(
        seq, messages, finish, records.usage_of(usage), fingerprint, digest, created_at, canonical.loads(details)
    )


def keyed(tx: Transaction, head: Head, key: str) -> tuple[int, str] | None:
    """(turn, digest of its input) of the turn that was made with an idempotency key."""
    row = tx.one(
        f"WITH RECURSIVE {CHAIN} SELECT x.seq, x.input_digest FROM chain JOIN pollux_like_entries x "
        "ON x.segment = chain.segment AND x.seq > chain.base AND x.seq <= chain.upto WHERE x.idempotency_key = ?",
        head.turns, head.scope, head.segment, head.scope, key,
    )  # fmt: skip
    return None if row is None else (int(row[0]), str(row[1]))
