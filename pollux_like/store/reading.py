"""Reader: what is looked at without loading a state: transcripts by pages, usage, places of words, the tree of forks.

Every read is one transaction, takes the scope that it may see, and holds a bounded part of a conversation in memory. A
cancelled one ends with the part that it is at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio

from pollux_like import canonical, checks
from pollux_like.continuation import MAX_TURNS
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Usage
from pollux_like.store import inputs, lifecycle, rows
from pollux_like.store.database import Transaction
from pollux_like.store.inputs import Pending
from pollux_like.store.keys import Keys
from pollux_like.store.records import Shown
from pollux_like.store.rows import AFTER, CHAIN, Head, Summary
from pollux_like.store.store import MAX_WORDS, ConversationStore

T = TypeVar("T")

PAGE_BYTES = 4_000_000
"""Most bytes of stored transcript that a read takes up at a time; one turn is read whole, however large."""
PAGE_TURNS = 1_000
"""Most turns of one page."""
MAX_BRANCHES = 1_000
"""Most conversations of one tree."""

_LOWER = {"sqlite": "lower({0})", "postgresql": 'lower({0} COLLATE "C")'}


@dataclass(frozen=True, slots=True)
class Overview:
    """A conversation without its turns. `open_calls`: those of its last turn that no result answers."""

    summary: Summary
    metadata: Mapping[str, Any] = field(repr=False)
    pending: Pending | None
    open_calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Turns of a conversation at one revision: fewer than were asked for where they are large.

    `named`: the tool of each result in the first turns whose call stands in the turn before, by call id.
    """

    summary: Summary
    turns: tuple[Shown, ...]
    named: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """A place of words in a turn. `of`: "content", or the name of the tool whose call has them."""

    seq: int
    role: str
    of: str
    text: str = field(repr=False)
    start: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A conversation in a tree of forks. `at`: the turns that it shares with `parent` as that one stands now.

    `parent` is the nearest one that is there. It is None for the root, and where what it was forked from was deleted or
    rewound to nothing.
    """

    id: str
    title: str | None
    turns: int
    updated_at: float
    parent: str | None
    at: int


class Reader:
    """Reads of a store for display and audit. Needs no more of the database than `SELECT`."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    async def scopes(self, *, limit: int = 1_000) -> Sequence[tuple[str, int]]:
        """The tenants by name, with the number of their conversations."""
        sql = "SELECT scope, COUNT(*) FROM pollux_like_conversations GROUP BY scope ORDER BY scope LIMIT ?"
        found = await self._store.database.read(lambda tx: tx.all(sql, limit))
        return [(str(scope), int(count)) for scope, count in found]

    async def named(self, words: str, *, scope: str, limit: int = 100) -> Sequence[Summary]:
        """Conversations whose id or title holds the words, the newest first; also in a sealed store."""
        inputs.name(scope, "scope")
        _words(words)
        lower = _LOWER[self._store.database.dialect]
        pattern = lifecycle.pattern(words)
        sql = (
            f"{rows.SUMMARY} WHERE scope = ? AND ({lower.format('id')} LIKE ? ESCAPE '!' OR "
            f"{lower.format('title')} LIKE ? ESCAPE '!') ORDER BY number DESC LIMIT ?"
        )
        found = await self._store.database.read(lambda tx: tx.all(sql, scope, pattern, pattern, limit))
        return [rows.summary(row) for row in found]

    async def overview(self, id: str, *, scope: str) -> Overview:
        """Raises UnknownConversationError, StoreDamagedError and StoreKeyError."""

        def work(tx: Transaction, _: threading.Event) -> Overview:
            head, opened = self._head(tx, scope, id)
            last = rows.transcript(tx, opened, head, head.turns, head.turns)[0][0].messages if head.turns else ()
            pending = inputs.pending_of(head, opened)
            return Overview(rows.summed(head), dict(canonical.loads(head.metadata)), pending, _open(last))

        return await self._read(work, scope, id)

    async def page(self, id: str, *, scope: str, first: int, last: int) -> Page:
        """The turns from `first` on to at most `last`, as many as fit into PAGE_BYTES and at least one."""
        _span(first, last, PAGE_TURNS)

        def work(tx: Transaction, ended: threading.Event) -> Page:
            head, opened = self._head(tx, scope, id)
            turns = next(_pages(tx, opened, head, first, last, ended), list[Shown]())
            before = rows.transcript(tx, opened, head, first - 1, first - 1) if turns and first > 1 else []
            calls = (call for shown, _ in before for message in shown.messages for call in message.tool_calls)
            return Page(rows.summed(head), tuple(turns), {call.id: call.name for call in calls})

        return await self._read(work, scope, id)

    async def usage(self, id: str, *, scope: str, first: int, last: int) -> tuple[Summary, Sequence[Usage | None]]:
        """The usage of each turn in order; None for turns that were imported."""
        _span(first, last, MAX_TURNS)

        def work(tx: Transaction, ended: threading.Event) -> tuple[Summary, list[Usage | None]]:
            head, opened = self._head(tx, scope, id)
            pages = _pages(tx, opened, head, first, last, ended)
            return rows.summed(head), [shown.usage for page in pages for shown in page]

        return await self._read(work, scope, id)

    async def find(self, id: str, words: str, *, scope: str, limit: int = 100) -> tuple[Summary, Sequence[Found]]:
        """The first places of the words in one conversation, A to Z in either case; also in a sealed store.

        Reads all turns up to the last place.
        """
        folded = lifecycle.folded(_words(words))

        def work(tx: Transaction, ended: threading.Event) -> tuple[Summary, list[Found]]:
            head, opened = self._head(tx, scope, id)
            found: list[Found] = []
            for page in _pages(tx, opened, head, 1, head.turns, ended):
                for place in (place for shown in page for place in _places(shown, folded)):
                    found.append(place)
                    if len(found) == limit:
                        return rows.summed(head), found
            return rows.summed(head), found

        return await self._read(work, scope, id)

    async def tree(self, id: str, *, scope: str) -> Sequence[Branch]:
        """All conversations that share turns with one, by age: its ancestors and forks; at most MAX_BRANCHES."""

        def work(tx: Transaction, _: threading.Event) -> list[Branch]:
            return _tree(tx, rows.get(tx, scope, id))

        return await self._read(work, scope, id)

    def _head(self, tx: Transaction, scope: str, id: str) -> tuple[Head, Keys]:
        head = rows.get(tx, scope, id)
        return head, rows.keys_of(tx, self._store.policy, head)

    async def _read(self, work: Callable[[Transaction, threading.Event], T], scope: str, id: str) -> T:
        """`work` also gets an event that is set when the read is cancelled: a thread sees no cancellation."""
        inputs.name(scope, "scope")
        inputs.name(id, "id")
        ended = threading.Event()
        results: list[T] = []
        errors: list[Exception] = []

        async def until_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(until_cancelled)
            try:
                results.append(await self._store.database.read(lambda tx: work(tx, ended)))
            except Exception as error:  # noqa: BLE001  raised below, where it is in no group
                errors.append(error)
            group.cancel_scope.cancel()
        if errors:
            raise errors[0]
        return results[0]


def _words(words: str) -> str:
    if len(checks.filled(words, "words")) > MAX_WORDS:
        raise ConfigurationError(f"words has {len(words):,} characters", hint=f"Search for at most {MAX_WORDS:,}")
    return words


def _span(first: int, last: int, most: int) -> None:
    checks.whole(first, "first", least=1, most=MAX_TURNS)
    checks.whole(last, "last", least=first, most=min(MAX_TURNS, first + most - 1))


def _pages(
    tx: Transaction, opened: Keys, head: Head, first: int, last: int, ended: threading.Event
) -> Iterator[list[Shown]]:
    """The turns in order, in lists of at most PAGE_BYTES and at least one turn, until `ended`."""
    last = min(last, head.turns)
    while first <= last and not ended.is_set():
        sizes = _sizes(tx, head, first, min(last, first + PAGE_TURNS - 1))
        count, size = 0, 0
        for one in sizes:
            size += one
            if count and size > PAGE_BYTES:
                break
            count += 1
        upto = first + max(1, count) - 1  # a row that is missing is found by the transcript
        yield [shown for shown, _ in rows.transcript(tx, opened, head, first, upto)]
        first = upto + 1


def _sizes(tx: Transaction, head: Head, first: int, last: int) -> list[int]:
    """Bytes of each turn's transcript; the database need not read the bytes for that."""
    found = tx.all(
        f"WITH RECURSIVE {CHAIN} SELECT LENGTH(x.shown) + COALESCE(LENGTH(t.said), 0) FROM chain "
        f"JOIN pollux_like_entries x ON x.segment = chain.segment AND x.seq > {AFTER} AND x.seq <= chain.upto "
        "JOIN pollux_like_turns t ON t.segment = x.segment AND t.seq = x.seq ORDER BY x.seq",
        last, head.scope, head.segment, head.scope, first - 1, first - 1,
    )  # fmt: skip
    return [int(row[0]) for row in found]


def _open(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls that no later message of the turn answers."""
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        waiting.update((call.id, call) for call in message.tool_calls)
        if message.tool_call_id is not None:
            waiting.pop(message.tool_call_id, None)
    return tuple(waiting.values())


def _places(shown: Shown, folded: str) -> Iterator[Found]:
    """At most one place for each text of the turn."""
    for message in shown.messages:
        texts = [("content", message.content)]
        for call in message.tool_calls:
            texts += [(call.name, call.name), (call.name, call.arguments_text)]
        for of, text in texts:
            start = lifecycle.folded(text).find(folded)
            if start >= 0:
                yield Found(shown.seq, message.role, of, text, start)


def _tree(tx: Transaction, head: Head) -> list[Branch]:
    place = tx.one("SELECT root FROM pollux_like_segments WHERE scope = ? AND id = ?", head.scope, head.segment)
    root = None if place is None else place[0]
    segments: dict[int, tuple[int | None, int, int | None]] = {
        row[0]: (row[1], row[2], row[3])
        for row in tx.all(
            "SELECT id, parent, base, owner FROM pollux_like_segments WHERE scope = ? AND root = ?", head.scope, root
        )
    }
    heads = tx.all(
        "SELECT c.number, c.id, c.title, c.turns, c.updated_at, c.segment FROM pollux_like_segments s "
        "JOIN pollux_like_conversations c ON c.number = s.owner AND c.segment = s.id AND c.scope = s.scope "
        "WHERE s.scope = ? AND s.root = ? ORDER BY CASE WHEN c.number = ? THEN 0 ELSE 1 END, c.number DESC LIMIT ?",
        head.scope, root, head.number, MAX_BRANCHES,
    )  # fmt: skip
    names = {row[0]: str(row[1]) for row in heads}
    chains = {row[0]: dict(_chain(segments, row[5], row[3])) for row in heads}
    branches: list[Branch] = []
    for number, name, title, turns, updated_at, _ in sorted(heads):
        own = chains[number]
        foreign = {segment: segments[segment][2] for segment in own if segments[segment][2] != number}
        parent = next((owner for owner in foreign.values() if owner in chains), None)  # the nearest
        at = max((own[segment] for segment in foreign), default=0)
        if parent is not None:
            shared = own.keys() & chains[parent].keys()
            at = max((min(own[segment], chains[parent][segment]) for segment in shared), default=0)
        branches.append(Branch(name, title, turns, updated_at, None if parent is None else names[parent], at))
    return branches


def _chain(
    segments: Mapping[int, tuple[int | None, int, int | None]], segment: int | None, upto: int
) -> Iterator[tuple[int, int]]:
    """(segment, turns up to which a head reads it), its own first."""
    while segment is not None and segment in segments:
        yield segment, upto
        parent, base, _ = segments[segment]
        segment, upto = parent, min(upto, base)
