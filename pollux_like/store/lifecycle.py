"""Lists, search, deletion, verification: what is done with conversations as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pollux_like import canonical
from pollux_like.errors import ConfigurationError, ContinuationError, StoreDamagedError, StoreKeyError
from pollux_like.store import keys, records, rows
from pollux_like.store.database import Transaction
from pollux_like.store.records import Policy
from pollux_like.store.rows import Summary


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a deletion erased. `kept` turns are still part of a fork; `digests` name the erased turns.

    `keys`: the data keys of a sealed store that nobody can open any more: of the conversation and of history segments.
    """

    id: str
    turns: int
    messages: int
    effects: int
    kept: int
    digests: tuple[str, ...] = field(repr=False)
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A message that holds the words. `seq` is its turn, `text` the content."""

    id: str
    seq: int
    role: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification looked at, and the conversations that failed: (id, what is wrong)."""

    conversations: int
    turns: int
    problems: tuple[tuple[str, str], ...] = ()


def listed(tx: Transaction, scope: str, limit: int, before: int | None) -> list[Summary]:
    """The newest first."""
    found = tx.all(
        f"{rows.SUMMARY} WHERE scope = ? AND number < ? ORDER BY number DESC LIMIT ?",
        scope, 2**63 - 1 if before is None else before, limit,
    )  # fmt: skip
    return [rows.summary(row) for row in found]


_SEARCH = """WITH RECURSIVE chain (conversation, segment, base, upto, parent) AS (
  SELECT c.number, s.id, s.base, c.turns, s.parent FROM pollux_like_conversations c
  JOIN pollux_like_segments s ON s.id = c.segment AND s.scope = c.scope WHERE c.scope = ?
  UNION ALL
  SELECT chain.conversation, up.id, up.base, CASE WHEN chain.upto < chain.base THEN chain.upto ELSE chain.base END,
  up.parent FROM chain JOIN pollux_like_segments up ON up.id = chain.parent AND up.scope = ?
)
SELECT c.id, x.seq, x.shown FROM chain
JOIN pollux_like_conversations c ON c.number = chain.conversation
JOIN pollux_like_entries x ON x.segment = chain.segment AND x.seq > chain.base AND x.seq <= chain.upto
WHERE {lower} LIKE ? ESCAPE '!'
ORDER BY c.number DESC, x.seq LIMIT ? OFFSET ?"""
_LOWER = {
    "sqlite": "lower(CAST(x.shown AS TEXT))",
    "postgresql": "lower(convert_from(x.shown, 'UTF8') COLLATE \"C\")",
}
_ASCII = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def folded(text: str) -> str:
    """Text as words are compared: A to Z in one case, other letters as they are, nothing moved."""
    return text.translate(_ASCII)


def pattern(words: str) -> str:
    """For `LIKE ? ESCAPE '!'`: text that holds the words."""
    return "%" + folded(words).replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"


def search(tx: Transaction, policy: Policy, dialect: str, scope: str, words: str, limit: int) -> list[Match]:
    """Messages whose content holds the words, A to Z in either case, other letters as they are."""
    if policy.sealer is not None or keys.any_sealed(tx, scope):
        raise ConfigurationError("a sealed store cannot be searched", hint="Search the application's own index")
    found: list[Match] = []
    for name, seq, shown in _candidates(tx, dialect, scope, words, max(limit, 100)):
        for message in records.shown_of(seq, keys.OPEN.unseal(shown, ""), "", "", 0.0).messages:
            if folded(words) in folded(message.content):  # not elsewhere in the JSON text
                found.append(Match(name, seq, message.role, message.content))
                if len(found) == limit:
                    return found
    return found


def _candidates(tx: Transaction, dialect: str, scope: str, words: str, page: int) -> Iterator[tuple[Any, ...]]:
    inner = pattern(canonical.dumps(words)[1:-1])
    sql = _SEARCH.format(lower=_LOWER[dialect])
    offset = 0
    while True:
        batch = tx.all(sql, scope, scope, inner, page, offset)
        yield from batch
        if len(batch) < page:
            return
        offset += page


def delete(tx: Transaction, scope: str, id: str, *, older_than: float | None = None) -> Receipt | None:
    """Erase a conversation and all turns that no fork shares. None where it was changed since `older_than`.

    Deletions and forks in one tree follow one another, so that a fork never loses what it shares.
    """
    head = rows.hold(tx, scope, id)
    if older_than is not None and head.updated_at >= older_than:
        return None
    whole = set(rows.digests(tx, head))
    dropped = keys.erased(tx, scope, head.number)
    owned = tx.all(
        "SELECT DISTINCT root FROM pollux_like_segments WHERE scope = ? AND owner = ? ORDER BY root", scope, head.number
    )
    for (root,) in owned:
        rows.lock_tree(tx, scope, root)
    effects = tx.run(
        "DELETE FROM pollux_like_effects WHERE conversation = "
        "(SELECT number FROM pollux_like_conversations WHERE scope = ? AND number = ?)",
        scope, head.number,
    )  # fmt: skip
    tx.run("DELETE FROM pollux_like_conversations WHERE scope = ? AND number = ?", scope, head.number)
    tx.run("UPDATE pollux_like_segments SET owner = NULL WHERE scope = ? AND owner = ?", scope, head.number)
    digests: list[bytes] = []
    messages = 0
    for (root,) in owned:
        for segment, keep, used in _orphans(tx, scope, root):
            gone, count = _erase(tx, scope, segment, keep, used)
            digests.extend(gone)
            messages += count
    kept = len(whole - set(digests))
    return Receipt(id, len(digests), messages, effects, kept, tuple(digest.hex() for digest in digests), dropped)


def _orphans(tx: Transaction, scope: str, root: int) -> list[tuple[int, int, bool]]:
    """The segments of a tree that belong to nobody, children first: the last turn that a head needs, and whether
    another segment hangs below.

    Turns that their own conversation was rewound from stay with it, but keep nothing of others.
    """
    needed: dict[int, int] = {}
    below: set[int] = set()
    found: list[tuple[int, int, bool]] = []
    for segment, parent, base, owner, head in tx.all(
        "SELECT s.id, s.parent, s.base, s.owner, c.segment FROM pollux_like_segments s "
        "LEFT JOIN pollux_like_conversations c ON c.number = s.owner AND c.scope = s.scope "
        "WHERE s.scope = ? AND s.root = ? ORDER BY s.id DESC",
        scope, root,
    ):  # fmt: skip
        if owner is None:
            found.append((segment, needed.get(segment, 0), segment in below))
        stays = owner is not None or segment in below
        if parent is not None and stays:
            below.add(parent)
        if parent is not None and (head == segment or segment in needed):
            needed[parent] = max(base, needed.get(parent, 0))
    return found


def _erase(tx: Transaction, scope: str, segment: int, keep: int, used: bool) -> tuple[list[bytes], int]:
    where = "WHERE segment = (SELECT id FROM pollux_like_segments WHERE scope = ? AND id = ?) AND seq > ?"
    values = (scope, segment, keep)
    shown = tx.all(f"DELETE FROM pollux_like_entries {where} RETURNING messages", *values)
    gone = tx.all(f"DELETE FROM pollux_like_turns {where} RETURNING digest", *values)
    if not used:
        tx.run("DELETE FROM pollux_like_segments WHERE scope = ? AND id = ?", scope, segment)
    return [keys.raw(row[0]) for row in gone], sum(row[0] for row in shown)


def stale(tx: Transaction, scope: str, older_than: float) -> list[str]:
    """The ids of conversations that were last changed before a time."""
    found = tx.all(
        "SELECT id FROM pollux_like_conversations WHERE scope = ? AND updated_at < ? ORDER BY number", scope, older_than
    )
    return [str(row[0]) for row in found]


def verify(tx: Transaction, policy: Policy, scope: str, id: str) -> tuple[int, str | None]:
    """(turns, what is wrong or None) of one conversation: the chain, its parsing, the transcript."""
    head = rows.get(tx, scope, id)
    try:
        opened = rows.keys_of(tx, policy, head)
        records.assembled(rows.states(tx, opened, head, head.turns), head.turns, head.digest)
        rows.transcript(tx, opened, head, 1, head.turns)
    except (
        StoreDamagedError,
        StoreKeyError,
        ContinuationError,
        ConfigurationError,
        canonical.JSONPolicyError,
    ) as error:
        return head.turns, getattr(error, "message", None) or str(error)
    return head.turns, None
