"""One stored conversation at one revision: take turns in it, run its tools, fork it, look at it.

A turn is: make the input durable by compare-and-set, call the model, append what came in one transaction that clears
the input. Whoever loses the first step never calls the model; whoever crashes after it leaves the input as `pending`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import anyio.to_thread

from pollux_like import canonical, checks, registry, structured, turn
from pollux_like.config import Config
from pollux_like.continuation import Continuation
from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError, PendingInputError, StructuredOutputError
from pollux_like.input import Input
from pollux_like.messages import ToolCall, ToolResult
from pollux_like.output import Event, Output
from pollux_like.prepare import check_types
from pollux_like.registry import Connection
from pollux_like.settings import Arguments, Settings
from pollux_like.sources import Source
from pollux_like.store import effects, inputs, records, rows
from pollux_like.store.database import Transaction, settled
from pollux_like.store.effects import Effects
from pollux_like.store.inputs import Pending
from pollux_like.store.keys import Keys
from pollux_like.store.records import Shown
from pollux_like.store.rows import Head
from pollux_like.turn import Stream

if TYPE_CHECKING:
    from pollux_like.store.store import ConversationStore


class Conversation:
    """A conversation as it was loaded, kept up to date by what is done through it.

    Made by `ConversationStore.create`, `load` and `fork`. Another worker's turn is noticed at the next change, as
    ConflictError; `refresh` then loads it.
    """

    def __init__(self, store: ConversationStore, head: Head, opened: Keys, continuation: Continuation | None) -> None:
        self._store = store
        self._database = store.database
        self._head = head
        self._keys = opened
        self._continuation = continuation
        self._mine = False  # the pending input was made durable here
        self._busy = False
        self._ledger: Effects | None = None

    @property
    def id(self) -> str:
        """Its name in its scope."""
        return self._head.id

    @property
    def scope(self) -> str:
        """The tenant that it belongs to."""
        return self._head.scope

    @property
    def revision(self) -> int:
        """Goes up with every change: a compare-and-set compares it."""
        return self._head.revision

    @property
    def turns(self) -> int:
        """The number of complete turns."""
        return self._head.turns

    @property
    def title(self) -> str | None:
        """What it was called when it was created."""
        return self._head.title

    @property
    def metadata(self) -> dict[str, Any]:
        """The application's own JSON object, fresh at every access."""
        return dict(canonical.loads(self._head.metadata))

    @property
    def continuation(self) -> Continuation | None:
        """The state after the last complete turn; None before the first."""
        return self._continuation

    @property
    def pending_tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that wait for results."""
        return () if self._continuation is None else self._continuation.pending_tool_calls

    @property
    def pending(self) -> Pending | None:
        """The input that was under way and has no answer yet; None between turns."""
        return inputs.pending_of(self._head, self._keys)

    @property
    def effects(self) -> Effects:
        """The ledger of the calls that are open now."""
        if self._ledger is None or self._ledger.turn != self._head.digest:
            self._ledger = Effects(self._database, self._keys.own, self._head)
        return self._ledger

    async def run_tool(self, call: ToolCall, function: Callable[..., Any]) -> ToolResult:
        """Execute a call of the open round at most once, over crashes and workers; see `Effects.run`."""
        if effects.checked(call) not in self.pending_tool_calls:
            raise ConfigurationError(
                f"tool call {call.id[:80]!r} is not open in this conversation", hint="Pass one of pending_tool_calls"
            )
        return await self.effects.run(call, function)

    async def interact(
        self, environment: Environment, input: Input, config: Config, *, key: str | None = None,
        **arguments: Unpack[Arguments],
    ) -> Output:  # fmt: skip
        """One turn; `pollux_like.interact` says what the arguments are and which errors come.

        `input` brings content, tool results and sources, and a history before the first turn: the state comes from the
        store. A paused turn goes on with `Input(continuation=conversation.continuation)`, or with `resume`. `key`: a
        retry with the same key and input gives the stored turn, without `reasoning`. Raises
        ConflictError where another writer was first, PendingInputError where an input of another worker is under way,
        IdempotencyError for a key with another input, UnknownConversationError where the conversation was deleted.
        After an APIError the input stays pending, and may be replaced from here by the next turn.
        """
        check_types(environment, input, config)
        with self._alone():
            digest = inputs.digest(input)
            stored = await self._replayed(key, digest, dict(arguments))
            if stored is not None:
                return stored
            self._check_pending(key, digest)
            return await self._taken(environment, input, config, key, digest, dict(arguments))

    def stream(
        self, environment: Environment, input: Input, config: Config, *, key: str | None = None,
        **arguments: Unpack[Arguments],
    ) -> Stream:  # fmt: skip
        """The same turn as events. "done" comes after the turn was stored; a stored turn has no other event."""
        return Stream(self._events(environment, input, config, key, dict(arguments)))

    async def resume(
        self,
        environment: Environment,
        config: Config,
        *,
        sources: Sequence[Source] = (),
        **arguments: Unpack[Arguments],
    ) -> Output:
        """Take the pending input up again, after a crash. A worker that is still at it will lose, with ConflictError.

        `sources`: those that the input came with, since the store has their digests only. Where nothing is pending and
        the model paused in the middle of its turn (`continuation.paused`), the turn goes on.
        """
        with self._alone():
            given, key = inputs.resumed(self.pending, self._continuation, sources)
            return await self._taken(environment, given, config, key, inputs.digest(given), dict(arguments))

    async def discard_pending(self) -> None:
        """Forget the pending input. A worker that is still at it will lose, with ConflictError."""
        with self._alone():
            if self._head.pending is not None:
                await self._changed(mine=False, pending=None, pending_key=None, pending_digest=None)

    async def append(self, output: Output) -> None:
        """Store a turn that was taken elsewhere from `continuation` (or, for the first, without one).

        Raises ConflictError where another writer was first, ConfigurationError where the output does not follow.
        """
        with self._alone():
            self._check_pending(None, None)
            records.check_follows(output, self._continuation, self.turns)
            await self._kept(output, None, None)

    async def fork(self, id: str | None = None, *, at: int | None = None, title: str | None = None) -> Conversation:
        """A new conversation that shares the first `at` turns, all by default. Nothing is copied."""
        head, opened = await self._store.forked(
            self.id, id, scope=self.scope, at=at, title=title, number=self._head.number
        )
        if head.digest == self._head.digest:
            return Conversation(self._store, head, opened, self._continuation)
        return Conversation(self._store, head, opened, await self._store.continuation_at(head, opened, head.turns))

    async def rewind(self, to: int) -> None:
        """Go back to the first `to` turns, and forget the pending input. Raises ConflictError."""
        checks.whole(to, "to", least=0, most=self.turns)
        with self._alone():
            made = await self._store.continuation_at(self._head, self._keys, to)

            def known(result: tuple[Head, Keys]) -> None:
                self._head, self._keys = result
                self._continuation, self._mine = made, False

            await self._store.rewound(self._head, to, known)

    async def refresh(self) -> None:
        """Load what other workers did."""
        with self._alone():
            fresh = await self._store.load(self.id, scope=self.scope)
            if fresh._head.number != self._head.number:
                raise rows.unknown(self.id)  # another one has its id
            self._head, self._keys, self._continuation = fresh._head, fresh._keys, fresh._continuation
            self._mine = False

    async def transcript(self, *, first: int = 1, last: int | None = None) -> list[Shown]:
        """The turns for display, search and audit, as the redaction hook left them; the first one is number 1."""
        return list(await self._store.transcript_of(self._head, self._keys, first, last))

    def __repr__(self) -> str:
        return f"Conversation(id={self.id!r}, revision={self.revision}, turns={self.turns}, pending={self._head.pending is not None})"  # noqa: E501

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """One change at a time through this object."""
        if self._busy:
            raise PendingInputError("a turn of this conversation is under way here", hint="Await it first")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _check_pending(self, key: str | None, digest: str | None) -> None:
        """A retry with the same key and input may take over; so may whoever made the input durable and saw it fail."""
        head = self._head
        if head.pending is None or self._mine:
            return
        if key is not None and key == head.pending_key:
            if digest is not None and self._keys.own.name(digest) == head.pending_digest:
                return
            raise inputs.another(key)
        raise PendingInputError(
            "an input is under way, of another worker or of one that crashed",
            hint="Take it up with resume(...), give it up with discard_pending(), or wait and refresh()",
        )

    async def _replayed(self, key: str | None, digest: str, arguments: dict[str, Any]) -> Output | None:
        """The stored output of a key, by what the store holds now."""
        if key is None:
            return None
        inputs.name(key, "key")

        found = await self._store.replayed(self._head, key, digest)
        if found is None:
            return None
        head, opened, output, seq = found
        if head.revision != self.revision and seq == head.turns:
            self._head, self._keys, self._continuation, self._mine = head, opened, output.continuation, False
        return structured.fitted(output, Settings.of(**arguments).output)

    async def _taken(
        self, environment: Environment, input: Input, config: Config, key: str | None, digest: str,
        arguments: dict[str, Any],
    ) -> Output:  # fmt: skip
        given = inputs.given(input, self._continuation, self.turns)
        try:
            output = await turn.turn(environment, given, config, self._connect(input, key, digest), arguments)
        except StructuredOutputError as error:
            error.output = await self._kept(error.output, key, digest)
            raise
        return await self._kept(output, key, digest)

    async def _events(
        self, environment: Environment, input: Input, config: Config, key: str | None, arguments: dict[str, Any]
    ) -> AsyncGenerator[Event, None]:
        check_types(environment, input, config)
        with self._alone():
            digest = inputs.digest(input)
            output = await self._replayed(key, digest, arguments)
            if output is None:
                self._check_pending(key, digest)
                given = inputs.given(input, self._continuation, self.turns)
                events = turn.events(environment, given, config, self._connect(input, key, digest), arguments)
                async with aclosing(events):
                    try:
                        async for event in events:
                            output = event.output
                            if output is None:
                                yield event
                    except StructuredOutputError as error:
                        error.output = await self._kept(error.output, key, digest)
                        raise
                assert output is not None  # events end in done, or raise
                output = await self._kept(output, key, digest)
        yield Event("done", output=output)  # nothing is held any more: a loop may go on from inside "done"

    def _connect(self, input: Input, key: str | None, digest: str) -> Callable[[Config], Awaitable[Connection]]:
        """The turn connects after every check and before any byte: there the input becomes durable."""

        async def connect(config: Config) -> Connection:
            connection = await registry.pooled(config)
            own = self._keys.own
            await self._changed(
                mine=True, pending=own.seal(inputs.saved(input), inputs.PLACE), pending_key=key,
                pending_digest=own.name(digest),
            )  # fmt: skip
            return connection

        return connect

    async def _kept(self, output: Output, key: str | None, digest: str | None) -> Output:
        """An answer that came is stored, even where the caller is being cancelled. The output as it was stored."""
        return await settled(lambda scope: self._stored(output, key, digest))

    async def _stored(self, output: Output, key: str | None, digest: str | None) -> Output:
        made = output.continuation
        assert made is not None  # every stored conversation is tracked
        policy = self._store.policy
        build = partial(records.of_output, output, made, policy)
        record, output = build() if policy.redact is None else await anyio.to_thread.run_sync(build)
        segment, seq = self._head.segment, self.turns + 1
        box = self._keys.box(segment)

        def work(tx: Transaction) -> None:
            rows.append(tx, box, segment, seq, [record], key, digest)

        cleared: Mapping[str, object] = {"pending": None, "pending_key": None, "pending_digest": None}
        await self._changed(work, mine=False, made=made, turns=seq, digest=box.name(record.digest), **cleared)
        return output

    async def _changed(
        self, also: Callable[[Transaction], None] | None = None, *, mine: bool, made: Continuation | None = None,
        **columns: object,
    ) -> None:  # fmt: skip
        """Compare-and-set from the revision known here, and whatever belongs to it, in one transaction."""
        before, writer = self._head, uuid.uuid4().hex

        def work(tx: Transaction) -> Head:
            head = rows.change(tx, before, before.revision, writer, **columns)
            if also is not None:
                also(tx)
            return head

        def known(head: Head) -> None:
            self._head, self._mine = head, mine
            self._continuation = made or self._continuation

        landed = partial(rows.landed, scope=self.scope, id=self.id, writer=writer)
        await self._database.write(work, landed=landed, known=known)
