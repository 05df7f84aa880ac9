"""The store for code that is not async: the same calls, run on the background loop of `pollux_like.sync`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar, Unpack

from pollux_like import sync as _sync
from pollux_like.config import Config
from pollux_like.continuation import Continuation
from pollux_like.environment import Environment
from pollux_like.input import Input
from pollux_like.messages import Message, ToolCall, ToolResult
from pollux_like.output import Output
from pollux_like.sealing import ContinuationSealer
from pollux_like.settings import Arguments
from pollux_like.sources import Source
from pollux_like.store import conversation as _conversation
from pollux_like.store import effects as _effects
from pollux_like.store import opening as _opening
from pollux_like.store import store as _store
from pollux_like.store.effects import Effect
from pollux_like.store.inputs import Pending
from pollux_like.store.lifecycle import Match, Receipt, Report
from pollux_like.store.records import Shown
from pollux_like.store.rows import Summary

T = TypeVar("T")


def _call(function: Callable[[], Awaitable[T]]) -> T:
    return _sync._loop.call(function)  # pyright: ignore[reportPrivateUsage]


def open_store(
    url: str,
    *,
    redact: Callable[[Message], Message] | None = None,
    sealer: ContinuationSealer | None = None,
    migrate: bool = True,
    synchronous: Literal["full", "normal"] = "full",
    connections: int = 10,
) -> ConversationStore:
    """See `pollux_like.open_store`."""
    return ConversationStore(
        _opening.open_store(
            url, redact=redact, sealer=sealer, migrate=migrate, synchronous=synchronous, connections=connections
        )
    )


class ConversationStore:
    """See `pollux_like.store.ConversationStore`: every method is the same, and waits."""

    def __init__(self, store: _store.ConversationStore) -> None:
        self._store = store

    def create(
        self, id: str | None = None, *, scope: str, title: str | None = None,
        metadata: Mapping[str, Any] | None = None, continuation: Continuation | None = None,
    ) -> Conversation:  # fmt: skip
        """A new conversation."""
        make = partial(self._store.create, id, scope=scope, title=title, metadata=metadata, continuation=continuation)
        return Conversation(_call(make))

    def load(self, id: str, *, scope: str, expected_fingerprint: str | None = None) -> Conversation:
        """The conversation at its newest revision."""
        load = partial(self._store.load, id, scope=scope, expected_fingerprint=expected_fingerprint)
        return Conversation(_call(load))

    def append(self, id: str, output: Output, *, scope: str, expected: int) -> Conversation:
        """Store a turn that was taken elsewhere."""
        return Conversation(_call(partial(self._store.append, id, output, scope=scope, expected=expected)))

    def fork(
        self, id: str, new_id: str | None = None, *, scope: str, at: int | None = None, title: str | None = None
    ) -> Conversation:
        """A new conversation that shares turns."""
        return Conversation(_call(partial(self._store.fork, id, new_id, scope=scope, at=at, title=title)))

    def rewind(self, id: str, to: int, *, scope: str, expected: int | None = None) -> Conversation:
        """Go back."""
        return Conversation(_call(partial(self._store.rewind, id, to, scope=scope, expected=expected)))

    def list(self, *, scope: str, limit: int = 100, before: int | None = None) -> Sequence[Summary]:
        """The newest conversations first."""
        return _call(partial(self._store.list, scope=scope, limit=limit, before=before))

    def search(self, words: str, *, scope: str, limit: int = 100) -> Sequence[Match]:
        """Messages that hold the words."""
        return _call(partial(self._store.search, words, scope=scope, limit=limit))

    def delete(self, id: str, *, scope: str) -> Receipt:
        """Erase a conversation."""
        return _call(partial(self._store.delete, id, scope=scope))

    def prune(
        self, *, scope: str, older_than: timedelta, progress: Callable[[int, int], None] | None = None
    ) -> Sequence[Receipt]:
        """Delete what was not changed for that long."""
        return _call(partial(self._store.prune, scope=scope, older_than=older_than, progress=progress))

    def export(self, id: str, *, scope: str) -> dict[str, Any]:
        """Everything of a conversation as JSON types."""
        return _call(partial(self._store.export, id, scope=scope))

    def verify(self, id: str | None = None, *, scope: str) -> Report:
        """Check chains and transcripts."""
        return _call(partial(self._store.verify, id, scope=scope))

    def rotate(self, *, progress: Callable[[int, int], None] | None = None, batch: int = 100) -> int:
        """Wrap every data key with the sealer's first key."""
        return _call(partial(self._store.rotate, progress=progress, batch=batch))

    def close(self) -> None:
        """Close every connection."""
        _call(self._store.aclose)

    def __enter__(self) -> ConversationStore:
        _call(self._store.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Conversation:
    """See `pollux_like.store.Conversation`: every method is the same, and waits."""

    def __init__(self, inner: _conversation.Conversation) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        """Its name in its scope."""
        return self._inner.id

    @property
    def scope(self) -> str:
        """The tenant that it belongs to."""
        return self._inner.scope

    @property
    def revision(self) -> int:
        """Goes up with every change."""
        return self._inner.revision

    @property
    def turns(self) -> int:
        """The number of complete turns."""
        return self._inner.turns

    @property
    def title(self) -> str | None:
        """What it was called."""
        return self._inner.title

    @property
    def metadata(self) -> dict[str, Any]:
        """The application's own."""
        return self._inner.metadata

    @property
    def continuation(self) -> Continuation | None:
        """The state after the last complete turn."""
        return self._inner.continuation

    @property
    def pending_tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that wait for results."""
        return self._inner.pending_tool_calls

    @property
    def pending(self) -> Pending | None:
        """The input that was under way."""
        return self._inner.pending

    @property
    def effects(self) -> Effects:
        """The ledger of the calls that are open now."""
        return Effects(self._inner.effects)

    def run_tool(self, call: ToolCall, function: Callable[..., Any]) -> ToolResult:
        """Execute a call of the open round at most once. `function` runs in a thread of its own."""
        return _call(partial(self._inner.run_tool, call, function))

    def interact(
        self, environment: Environment, input: Input, config: Config, *, key: str | None = None,
        **arguments: Unpack[Arguments],
    ) -> Output:  # fmt: skip
        """One turn."""
        return _call(partial(self._inner.interact, environment, input, config, key=key, **arguments))

    def stream(
        self, environment: Environment, input: Input, config: Config, *, key: str | None = None,
        **arguments: Unpack[Arguments],
    ) -> _sync.Stream:  # fmt: skip
        """One turn as events."""
        return _sync.Stream(self._inner.stream(environment, input, config, key=key, **arguments))

    def resume(
        self, environment: Environment, config: Config, *, sources: Sequence[Source] = (),
        **arguments: Unpack[Arguments],
    ) -> Output:  # fmt: skip
        """Take the pending input up again."""
        return _call(partial(self._inner.resume, environment, config, sources=sources, **arguments))

    def discard_pending(self) -> None:
        """Forget the pending input."""
        _call(self._inner.discard_pending)

    def append(self, output: Output) -> None:
        """Store a turn that was taken elsewhere."""
        _call(partial(self._inner.append, output))

    def fork(self, id: str | None = None, *, at: int | None = None, title: str | None = None) -> Conversation:
        """A new conversation that shares turns."""
        return Conversation(_call(partial(self._inner.fork, id, at=at, title=title)))

    def rewind(self, to: int) -> None:
        """Go back."""
        _call(partial(self._inner.rewind, to))

    def refresh(self) -> None:
        """Load what other workers did."""
        _call(self._inner.refresh)

    def transcript(self, *, first: int = 1, last: int | None = None) -> list[Shown]:
        """The turns for display, search and audit."""
        return _call(partial(self._inner.transcript, first=first, last=last))

    def __repr__(self) -> str:
        return repr(self._inner)


class Effects:
    """See `pollux_like.store.Effects`: every method is the same, and waits."""

    def __init__(self, inner: _effects.Effects) -> None:
        self._inner = inner

    def claim(self, call: ToolCall) -> Effect:
        """Whether this worker is to execute it."""
        return _call(partial(self._inner.claim, call))

    def done(self, call: ToolCall, result: ToolResult) -> Effect:
        """Record the result."""
        return _call(partial(self._inner.done, call, result))

    def resolve(self, call: ToolCall, result: ToolResult) -> Effect:
        """Decide that an unknown call was done."""
        return _call(partial(self._inner.resolve, call, result))

    def release(self, call: ToolCall) -> None:
        """Decide that an unknown call was never executed."""
        _call(partial(self._inner.release, call))

    def status(self, call: ToolCall) -> Effect:
        """What a claim would find."""
        return _call(partial(self._inner.status, call))
