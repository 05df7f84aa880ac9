"""ConversationStore: where conversations are kept. Every method takes the `scope` (tenant) that it may see."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

import anyio

from pollux_like import canonical, checks
from pollux_like.continuation import MAX_TURNS, Continuation
from pollux_like.errors import ConfigurationError, StoreError
from pollux_like.output import Output
from pollux_like.sealing import ContinuationSealer
from pollux_like.store import inputs, keys, lifecycle, records, rows
from pollux_like.store.conversation import Conversation
from pollux_like.store.database import Database, Transaction
from pollux_like.store.keys import Key, Keys
from pollux_like.store.lifecycle import Match, Receipt, Report
from pollux_like.store.records import Policy, Shown, Stored
from pollux_like.store.rows import Head, Summary

MAX_WORDS = 4096
"""Longest text to search for, in characters: escaped, it stays below the 50,000 bytes of a pattern of SQLite."""


class ConversationStore:
    """See `open_store`. One object serves all tasks of an event loop, and all event loops of a process."""

    def __init__(self, database: Database, policy: Policy) -> None:
        self.database = database
        self.policy = policy

    async def create(
        self, id: str | None = None, *, scope: str, title: str | None = None,
        metadata: Mapping[str, Any] | None = None, continuation: Continuation | None = None,
    ) -> Conversation:  # fmt: skip
        """A new conversation; `id` is made up where none is given. `continuation`: state that was saved elsewhere.

        Raises ConflictError where there is one of that id.
        """
        name = _new(id)
        inputs.name(scope, "scope")
        title = None if title is None else inputs.name(title, "title")
        plain = canonical.dumps(checks.maybe_object(metadata, "metadata"))
        if continuation is not None and not isinstance(continuation, Continuation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"continuation is {checks.kind(continuation)}", hint="Restore it with Continuation.from_jsonable(...)"
            )
        turns = [] if continuation is None else records.of_saved(continuation, self.policy)
        writer = uuid.uuid4().hex

        def work(tx: Transaction) -> tuple[Head, Keys]:
            head = rows.create(tx, self.policy, scope, name, title, plain, writer)
            opened = rows.keys_of(tx, self.policy, head)
            if turns:
                digest = rows.append(tx, opened.box(head.segment), head.segment, 1, turns)
                head = rows.change(tx, head, 0, writer, turns=len(turns), digest=digest)
            return head, opened

        head, opened = await self.database.write(work, landed=self.landed(scope, name, writer))
        return Conversation(self, head, opened, continuation)

    async def load(self, id: str, *, scope: str, expected_fingerprint: str | None = None) -> Conversation:
        """The conversation at its newest revision, its whole chain checked.

        Raises UnknownConversationError, StoreDamagedError where anything of it was changed or cut, and StoreError where
        the last turn was taken in an environment of another fingerprint than `expected_fingerprint`.
        """
        inputs.name(scope, "scope")
        inputs.name(id, "id")

        def work(tx: Transaction) -> tuple[Head, Keys, list[Stored], str | None]:
            head = rows.get(tx, scope, id)
            opened = rows.keys_of(tx, self.policy, head)
            last = None
            if expected_fingerprint is not None and head.turns:
                last = rows.transcript(tx, opened, head, head.turns, head.turns)[0][0].fingerprint
            return head, opened, rows.states(tx, opened, head, head.turns), last

        head, opened, found, last = await self.database.read(work)
        if last != expected_fingerprint and head.turns:
            raise StoreError(
                "the last turn was taken in an environment with another fingerprint",
                hint="Use the same instructions, sources and tools, or load without expected_fingerprint",
            )
        return Conversation(self, head, opened, records.assembled(found, head.turns, head.digest))

    async def append(self, id: str, output: Output, *, scope: str, expected: int) -> Conversation:
        """Store a turn that was taken elsewhere, if the conversation is still at revision `expected`."""
        checks.whole(expected, "expected", least=0)
        conversation = await self.load(id, scope=scope)
        if conversation.revision != expected:
            raise rows.conflict(expected, conversation.revision)
        await conversation.append(output)
        return conversation

    async def fork(
        self, id: str, new_id: str | None = None, *, scope: str, at: int | None = None, title: str | None = None
    ) -> Conversation:
        """A new conversation that shares the first `at` turns of another, all by default. Nothing is copied.

        Raises ConflictError where there is one of the new id.
        """
        head, opened = await self.forked(id, new_id, scope=scope, at=at, title=title)
        return Conversation(self, head, opened, await self.continuation_at(head, opened, head.turns))

    async def forked(
        self, id: str, new_id: str | None, *, scope: str, at: int | None, title: str | None, number: int | None = None
    ) -> tuple[Head, Keys]:
        """The head and keys of a new fork, whose state is not loaded. `number`: that of the conversation, if known."""
        name, writer = _new(new_id), uuid.uuid4().hex
        inputs.name(scope, "scope")
        inputs.name(id, "id")
        title = None if title is None else inputs.name(title, "title")

        def work(tx: Transaction) -> tuple[Head, Keys]:
            head = rows.hold(tx, scope, id, number)
            turns = head.turns if at is None else checks.whole(at, "at", least=0, most=head.turns)
            made = rows.fork(tx, self.policy, head, turns, name, title or head.title, head.metadata, writer)
            return made, rows.keys_of(tx, self.policy, made)

        return await self.database.write(work, landed=self.landed(scope, name, writer))

    async def rewound(self, head: Head, turns: int, known: Callable[[tuple[Head, Keys]], None]) -> None:
        """Rewind by compare-and-set; `known` gets the head and keys after it, even where the caller is cancelled."""
        writer = uuid.uuid4().hex

        def work(tx: Transaction) -> tuple[Head, Keys]:
            held = rows.hold(tx, head.scope, head.id, head.number)
            made = rows.rewind(tx, self.policy, held, turns, head.revision, writer)
            return made, rows.keys_of(tx, self.policy, made)

        await self.database.write(work, landed=self.landed(head.scope, head.id, writer), known=known)

    def landed(self, scope: str, id: str, writer: str) -> Callable[[Transaction], tuple[Head, Keys] | None]:
        """Reads back whether the write of that token is the newest one."""
        return lambda tx: rows.landed_with_keys(tx, self.policy, scope, id, writer)

    async def rewind(self, id: str, to: int, *, scope: str, expected: int | None = None) -> Conversation:
        """Go back to the first `to` turns; those after it stay until the conversation is deleted."""
        if expected is not None:
            checks.whole(expected, "expected", least=0)
        conversation = await self.load(id, scope=scope)
        if expected is not None and conversation.revision != expected:
            raise rows.conflict(expected, conversation.revision)
        await conversation.rewind(to)
        return conversation

    async def list(self, *, scope: str, limit: int = 100, before: int | None = None) -> Sequence[Summary]:
        """The newest conversations first. `before`: the `number` of the last one of the page before."""
        inputs.name(scope, "scope")
        checks.whole(limit, "limit", least=1, most=10_000)
        if before is not None:
            checks.whole(before, "before", least=0, most=2**63 - 1)
        return await self.database.read(lambda tx: lifecycle.listed(tx, scope, limit, before))

    async def search(self, words: str, *, scope: str, limit: int = 100) -> Sequence[Match]:
        """Messages that hold the words as they stand, at most MAX_WORDS; A to Z match in either case.

        Reads every message of the scope.
        Raises ConfigurationError in a sealed store.
        """
        inputs.name(scope, "scope")
        if len(checks.filled(words, "words")) > MAX_WORDS:
            raise ConfigurationError(
                f"words has {len(words):,} characters", hint=f"Search for at most {MAX_WORDS:,} of them"
            )
        checks.whole(limit, "limit", least=1, most=10_000)
        dialect = self.database.dialect
        return await self.database.read(lambda tx: lifecycle.search(tx, self.policy, dialect, scope, words, limit))

    async def delete(self, id: str, *, scope: str) -> Receipt:
        """Erase a conversation: its turns that no fork shares, its transcript, its effects. Returns what went."""
        inputs.name(scope, "scope")
        inputs.name(id, "id")
        receipt = await self.database.write(lambda tx: lifecycle.delete(tx, scope, id))
        assert receipt is not None  # only a bound on age leaves one
        await self.database.scrub()
        return receipt

    async def prune(
        self, *, scope: str, older_than: timedelta, progress: Callable[[int, int], None] | None = None
    ) -> Sequence[Receipt]:
        """Delete the conversations that were last changed longer ago than that, each in a transaction of its own.

        `progress` is called after each with the numbers of those that were looked at and of all.
        """
        inputs.name(scope, "scope")
        if not isinstance(older_than, timedelta) or older_than < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError("older_than is no positive timedelta", hint="Give timedelta(days=...)")
        limit = time.time() - older_than.total_seconds()
        receipts: list[Receipt] = []
        names = await self.database.read(lambda tx: lifecycle.stale(tx, scope, limit))
        for seen, name in enumerate(names, 1):
            receipt = await self.database.write(_pruning(scope, name, limit))
            if receipt is not None:
                receipts.append(receipt)
            if progress is not None:
                progress(seen, len(names))
        if receipts:
            await self.database.scrub()
        return receipts

    async def export(self, id: str, *, scope: str) -> dict[str, Any]:
        """Everything of a conversation as JSON types: state, transcript, pending input."""
        conversation = await self.load(id, scope=scope)
        state = conversation.continuation
        return {
            "format": "pollux_like.conversation",
            "version": 1,
            "id": conversation.id,
            "title": conversation.title,
            "metadata": conversation.metadata,
            "revision": conversation.revision,
            "continuation": None if state is None else state.to_jsonable(),
            "transcript": [shown.to_jsonable() for shown in await conversation.transcript()],
            "pending": None if conversation.pending is None else conversation.pending.to_jsonable(),
        }

    async def verify(self, id: str | None = None, *, scope: str) -> Report:
        """Check the chain and the transcript of one conversation, or of all in the scope. Damage is reported."""
        inputs.name(scope, "scope")
        names = (
            [inputs.name(id, "id")]
            if id is not None
            else await self.database.read(lambda tx: lifecycle.stale(tx, scope, float("inf")))
        )
        turns = 0
        problems: list[tuple[str, str]] = []
        for name in names:
            count, problem = await self.database.read(_verifying(self.policy, scope, name))
            turns += count
            if problem is not None:
                problems.append((name, problem))
        return Report(len(names), turns, tuple(problems))

    async def rotate(self, *, progress: Callable[[int, int], None] | None = None, batch: int = 100) -> int:
        """Wrap every data key of the store, of all scopes, with the sealer's first key. Returns how many were not.

        Turns are not written anew. Each `batch` is a transaction of its own, and `progress` is then called with the
        numbers of wrappings that were looked at and rewrapped so far. May be run while others write, and again after
        it was ended: workers whose sealer has another first key make wrappings under that. Raises StoreKeyError.
        """
        sealer = self.policy.sealer
        if sealer is None:
            raise ConfigurationError("the store was opened without a sealer", hint="Open it with sealer=...")
        checks.whole(batch, "batch", least=1, most=10_000)
        after, seen, count = (-1, -1), 0, 0
        while found := await self.database.read(_wrappings(after, batch)):
            if not all(sealer.is_current(wrapped) for _, wrapped in found):
                count += await self.database.write(_rewrapping(sealer, found), again=True)
            after, seen = (found[-1][0].conversation, found[-1][0].segment), seen + len(found)
            if progress is not None:
                progress(seen, count)
        return count

    async def transcript_of(self, head: Head, opened: Keys, first: int, last: int | None) -> Sequence[Shown]:
        """What is shown of the turns `first` to `last` of a head."""
        checks.whole(first, "first", least=1, most=MAX_TURNS)
        end = head.turns if last is None else checks.whole(last, "last", least=0)

        def work(tx: Transaction) -> list[Shown]:
            rows.get(tx, head.scope, head.id, head.number)
            return [shown for shown, _ in rows.transcript(tx, opened, head, first, end)]

        return await self.database.read(work)

    async def replayed(self, known: Head, key: str, digest: str) -> tuple[Head, Keys, Output, int] | None:
        """The stored output of an idempotency key by what the store holds now, and its turn.

        Raises IdempotencyError where the key was used with an input of another digest.
        """

        def work(tx: Transaction) -> tuple[Head, Keys, tuple[int, int, str], tuple[Shown, str | None]] | None:
            head = rows.get(tx, known.scope, known.id, known.number)
            found = rows.keyed(tx, head, key)
            if found is None:
                return None
            opened = rows.keys_of(tx, self.policy, head)
            return head, opened, found, rows.transcript(tx, opened, head, found[0], found[0])[0]

        found = await self.database.read(work)
        if found is None:
            return None
        head, opened, (seq, segment, of), (shown, apart) = found
        if of != opened.box(segment).name(digest):
            raise inputs.another(key)
        continuation = await self.continuation_at(head, opened, seq)
        assert continuation is not None  # seq is at least 1
        return head, opened, records.output_of(shown, apart, continuation), seq

    async def continuation_at(self, head: Head, opened: Keys, turns: int) -> Continuation | None:
        """The state after that many turns of a head."""

        def work(tx: Transaction) -> list[Stored]:
            rows.get(tx, head.scope, head.id, head.number)
            return rows.states(tx, opened, head, turns)

        found = await self.database.read(work)
        return records.assembled(found, turns, found[-1].digest if found else records.GENESIS)

    async def aclose(self) -> None:
        """Close every connection."""
        await self.database.aclose()

    async def __aenter__(self) -> ConversationStore:
        try:
            await self.database.read(lambda tx: None)
        except BaseException:  # nobody leaves what could not be entered: threads of a pool would outlive the program
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _pruning(scope: str, id: str, limit: float) -> Callable[[Transaction], Receipt | None]:
    return lambda tx: None if rows.find(tx, scope, id) is None else lifecycle.delete(tx, scope, id, older_than=limit)


def _verifying(policy: Policy, scope: str, id: str) -> Callable[[Transaction], tuple[int, str | None]]:
    return lambda tx: lifecycle.verify(tx, policy, scope, id)


def _wrappings(after: tuple[int, int], batch: int) -> Callable[[Transaction], list[tuple[Key, str]]]:
    return lambda tx: keys.wrappings(tx, after, batch)


def _rewrapping(sealer: ContinuationSealer, found: list[tuple[Key, str]]) -> Callable[[Transaction], int]:
    return lambda tx: keys.rewrap(tx, sealer, found)


def _new(id: str | None) -> str:
    return uuid.uuid4().hex if id is None else inputs.name(id, "id")
