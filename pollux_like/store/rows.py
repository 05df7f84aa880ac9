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

from pollux_like.continuation import VERSION
from pollux_like.errors import ConflictError, UnknownConversationError
from pollux_like.store import keys, records
from pollux_like.store.database import Transaction
from pollux_like.store.keys import Box, Keys
from pollux_like.store.records import Policy, Record, Shown, Stored

_HEAD = "number, id, revision, segment, turns, digest, title, metadata, pending, pending_key, pending_digest, created_at, updated_at, writer, EXISTS (SELECT 1 FROM pollux_like_keys WHERE conversation = number) AS sealed"  # noqa: E501

CHAIN = """chain (segment, base, upto, parent) AS (
  SELECT id, base, CAST(? AS BIGINT), parent FROM pollux_like_segments WHERE scope = ? AND id = ?
  UNION ALL
  SELECT up.id, up.base, CASE WHEN chain.upto < chain.base THEN chain.upto ELSE chain.base END, up.parent
  FROM chain JOIN pollux_like_segments up ON up.id = chain.parent AND up.scope = ?
)"""
"""The segments of a head, by (turns, scope, segment, scope): each holds the turns above base, up to upto."""

AFTER = "CASE WHEN chain.base > CAST(? AS BIGINT) THEN chain.base ELSE CAST(? AS BIGINT) END"
"""The base or a turn, given twice, whichever is later: as one bound, since SQLite would search by the base alone."""


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
    pending: bytes | None = field(repr=False)
    pending_key: str | None
    pending_digest: str | None
    created_at: float
    updated_at: float
    writer: str = field(repr=False)
    sealed: bool


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


_SUMMED = "id, number, revision, turns, title, pending IS NOT NULL, created_at, updated_at"
SUMMARY = f"SELECT {_SUMMED} FROM pollux_like_conversations"
"""What `summary` takes the rows of."""


def summary(row: tuple[Any, ...]) -> Summary:
    """A row of SUMMARY."""
    return Summary(row[0], row[1], row[2], row[3], row[4], bool(row[5]), row[6], row[7])


def summed(head: Head) -> Summary:
    """The same of a head."""
    return Summary(
        head.id, head.number, head.revision, head.turns, head.title, head.pending is not None, head.created_at,
        head.updated_at,
    )  # fmt: skip


def unknown(id: str) -> UnknownConversationError:
    """The same for a conversation of another scope."""
    return UnknownConversationError(
        f"there is no conversation {id[:80]!r} in this scope", hint="Look for it with list(scope=...), or create it"
    )


def find(tx: Transaction, scope: str, id: str) -> Head | None:
    """The head, or None."""
    row = tx.one(f"SELECT {_HEAD} FROM pollux_like_conversations WHERE scope = ? AND id = ?", scope, id)
    return None if row is None else Head(scope, *row)


def get(tx: Transaction, scope: str, id: str, number: int | None = None) -> Head:
    """The head. Raises UnknownConversationError, for one that was made anew under that id too, if a number is given."""
    head = find(tx, scope, id)
    if head is None or number not in (None, head.number):
        raise unknown(id)
    return head


def keys_of(tx: Transaction, policy: Policy, head: Head) -> Keys:
    """The keys of a head. Raises StoreKeyError."""
    return keys.of(tx, policy.sealer, head.scope, head.number, sealed=bool(head.sealed))


def landed(tx: Transaction, scope: str, id: str, writer: str) -> Head | None:
    """The head, if the write of that token is the newest one to it."""
    head = find(tx, scope, id)
    return head if head is not None and head.writer == writer else None


def landed_with_keys(tx: Transaction, policy: Policy, scope: str, id: str, writer: str) -> tuple[Head, Keys] | None:
    """The same, with the keys."""
    head = landed(tx, scope, id, writer)
    return None if head is None else (head, keys_of(tx, policy, head))


def create(tx: Transaction, policy: Policy, scope: str, id: str, title: str | None, metadata: str, writer: str) -> Head:
    """A new head without turns, and its keys. Raises ConflictError where the id is taken."""
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
    keys.made(tx, policy.sealer, scope, get(tx, scope, id).number, (keys.OWN, segment))
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


def change(tx: Transaction, head: Head, expected: int, writer: str, **columns: object) -> Head:
    """The one compare-and-set: the revision goes up by one, the columns change, or ConflictError and nothing changes.

    It names the conversation by its number, which is never given again: after a deletion there is none of that number.

    Two writers meet in the row: the second waits for the first, and then sees another revision than it expects.
    """
    names = "".join(f", {name} = ?" for name in columns)
    row = tx.one(
        f"UPDATE pollux_like_conversations SET revision = revision + 1, updated_at = ?, writer = ?{names} "
        f"WHERE scope = ? AND number = ? AND revision = ? RETURNING {_HEAD}",
        time.time(), writer, *columns.values(), head.scope, head.number, expected,
    )  # fmt: skip
    if row is None:
        raise conflict(expected, get(tx, head.scope, head.id, head.number).revision)
    return Head(head.scope, *row)


def conflict(expected: int, actual: int) -> ConflictError:
    """Another writer was first."""
    return ConflictError(
        f"the conversation is at revision {actual}, not {expected}: another writer was first",
        hint="Load it again, and decide anew", expected=expected, actual=actual,
    )  # fmt: skip


def append(
    tx: Transaction, box: Box, segment: int, first: int, turns: Sequence[Record],
    key: str | None = None, input_digest: str | None = None,
) -> str:  # fmt: skip
    """The one write point of turns: opaque lines to one table, what is shown of them to the other.

    `box` is that of the segment. Returns the digest of the last turn as the rows name it.
    """
    now = time.time()
    states: list[tuple[object, ...]] = []
    entries: list[tuple[object, ...]] = []
    asked = None if input_digest is None else bytes.fromhex(box.name(input_digest))
    digest = records.GENESIS
    for seq, record in enumerate(turns, start=first):
        digest = box.name(record.digest)
        said = None if record.said is None else box.seal(record.said, f"said {seq}")
        states.append((segment, seq, VERSION, bytes.fromhex(digest), box.seal(record.line, f"turn {seq}"), said))
        shown = records.shown_text(record)
        check = box.name(records.checksum(digest, record.fingerprint, shown, record.said))
        entries.append((
            segment, seq, box.seal(shown, f"shown {seq}"), len(record.messages), bytes.fromhex(record.fingerprint), key,
            asked, bytes.fromhex(check), now,
        ))  # fmt: skip
    tx.many(
        "INSERT INTO pollux_like_turns (segment, seq, version, digest, state, said) VALUES (?, ?, ?, ?, ?, ?)", states
    )
    tx.many(
        "INSERT INTO pollux_like_entries (segment, seq, shown, messages, fingerprint, idempotency_key, input_digest, "
        "checksum, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        entries,
    )
    return digest


def states(tx: Transaction, opened: Keys, head: Head, upto: int) -> list[Stored]:
    """The first `upto` turns, in order: one query, however many turns and forks."""
    scope = head.scope
    found = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT t.segment, t.seq, t.version, t.digest, t.state FROM chain "
        "JOIN pollux_like_turns t ON t.segment = chain.segment AND t.seq > chain.base AND t.seq <= chain.upto "
        "ORDER BY t.seq",
        upto, scope, head.segment, scope,
    )  # fmt: skip
    return [
        Stored(version, keys.raw(digest).hex(), box.unseal(state, f"turn {seq}"), box)
        for segment, seq, version, digest, state in found
        for box in (opened.box(segment),)
    ]


def digests(tx: Transaction, head: Head) -> list[bytes]:
    """The digests of a head's turns; no key is needed for that."""
    found = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT t.digest FROM chain JOIN pollux_like_turns t "
        "ON t.segment = chain.segment AND t.seq > chain.base AND t.seq <= chain.upto",
        head.turns, head.scope, head.segment, head.scope,
    )  # fmt: skip
    return [row[0] for row in found]


def lock_tree(tx: Transaction, scope: str, root: int) -> None:
    """Forks, rewinds and deletions in one tree of segments follow one another."""
    tx.run("UPDATE pollux_like_segments SET root = root WHERE scope = ? AND id = ?", scope, root)


def fork(
    tx: Transaction, policy: Policy, head: Head, turns: int, id: str, title: str | None, metadata: str, writer: str
) -> Head:
    """A new head that shares the first turns of another. The caller holds the other's row."""
    opened = keys_of(tx, policy, head)
    created = create(tx, policy, head.scope, id, title, metadata, writer)
    digest = _branch(tx, head, turns, created.segment)
    tx.run(
        "UPDATE pollux_like_conversations SET turns = ?, digest = ? WHERE scope = ? AND id = ?",
        turns, digest, head.scope, id,
    )  # fmt: skip
    found = get(tx, head.scope, id)
    shared = tx.all(f"WITH RECURSIVE {CHAIN} SELECT segment FROM chain", turns, head.scope, found.segment, head.scope)
    keys.shared(tx, policy.sealer, opened, found.number, [row[0] for row in shared if row[0] != found.segment])
    return found


def rewind(tx: Transaction, policy: Policy, head: Head, turns: int, expected: int, writer: str) -> Head:
    """The head goes back to its first turns; those after it stay until the conversation is deleted."""
    keys_of(tx, policy, head)  # a store that could not read it writes nothing here
    segment = _segment(tx, head.scope, None, None, 0)
    change(tx, head, expected, writer, segment=segment, turns=turns, pending=None, pending_key=None,
           pending_digest=None)  # fmt: skip
    keys.made(tx, policy.sealer, head.scope, head.number, (segment,))
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
    return keys.raw(digest).hex()


def hold(tx: Transaction, scope: str, id: str, number: int | None = None) -> Head:
    """The head as `get` gives it, its row locked to the end of the transaction."""
    tx.run("UPDATE pollux_like_conversations SET writer = writer WHERE scope = ? AND id = ?", scope, id)
    return get(tx, scope, id, number)


def transcript(tx: Transaction, opened: Keys, head: Head, first: int, last: int) -> list[tuple[Shown, str | None]]:
    """What is shown of the turns `first` to `last`, each with what the model said where that does not tell it.

    Raises StoreDamagedError where it is not what was written.
    """
    scope = head.scope
    upto = min(last, head.turns)
    found = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT x.segment, x.seq, x.shown, x.fingerprint, x.checksum, x.created_at, t.digest, "
        "t.said FROM chain JOIN pollux_like_entries x "
        f"ON x.segment = chain.segment AND x.seq > {AFTER} AND x.seq <= chain.upto "
        "JOIN pollux_like_turns t ON t.segment = x.segment AND t.seq = x.seq ORDER BY x.seq",
        upto, scope, head.segment, scope, first - 1, first - 1,
    )  # fmt: skip
    if len(found) != max(0, upto - first + 1):
        raise records.damaged("rows of the transcript are missing")
    return [_shown(opened.box(segment), *entry) for segment, *entry in found]


def _shown(
    box: Box, seq: int, shown: object, stamp: object, check: object, created_at: float, of: object, apart: object
) -> tuple[Shown, str | None]:
    text, fingerprint, digest = box.unseal(shown, f"shown {seq}"), keys.raw(stamp).hex(), keys.raw(of).hex()
    said = None if apart is None else box.unseal(apart, f"said {seq}")
    if box.name(records.checksum(digest, fingerprint, text, said)) != keys.raw(check).hex():
        raise records.damaged(f"the transcript of turn {seq} is not what was written")
    return records.shown_of(seq, text, fingerprint, digest, created_at), said


def keyed(tx: Transaction, head: Head, key: str) -> tuple[int, int, str] | None:
    """(turn, segment, digest of its input as the row names it) of the turn that was made with an idempotency key."""
    row = tx.one(
        f"WITH RECURSIVE {CHAIN} SELECT x.seq, x.segment, x.input_digest FROM chain JOIN pollux_like_entries x "
        "ON x.segment = chain.segment AND x.seq > chain.base AND x.seq <= chain.upto WHERE x.idempotency_key = ?",
        head.turns, head.scope, head.segment, head.scope, key,
    )  # fmt: skip
    return None if row is None else (int(row[0]), int(row[1]), keys.raw(row[2]).hex())
