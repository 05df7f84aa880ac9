"""The worker: one thread per loaded model, which owns its slot, and the jobs on it.

Jobs wait in order, whichever engine of this process they come from, and a cancelled one gives way within one evaluation
step. A job is seen from the event loop that asked, on asyncio and on trio.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel

from pollux_like.errors import APIError
from pollux_like_local import runtime as _runtime
from pollux_like_local.runtime import Cancelled, Runtime

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Loaded:
    """A model in memory with the thread that works on it, shared by every engine that is open on it."""

    key: tuple[int, Path, int, int | None]
    runtime: Runtime
    worker: ThreadPoolExecutor
    users: int = 0
    verified: set[str] = field(default_factory=set[str])


_loaded: dict[tuple[int, Path, int, int | None], Loaded] = {}
_lock = threading.Lock()


class Job(Generic[T]):
    """One request on its way through the worker thread, seen from the event loop that asked."""

    def __init__(self, loaded: Loaded, work: Callable[[Callable[[T], None], Callable[[], bool]], None]) -> None:
        """`work` is run with two functions: one takes each result as it comes, one says whether to stop."""
        self._wake = _waker(self._arrived)
        self._items: deque[T] = deque()
        self._event = anyio.Event()
        self._cancelled = threading.Event()
        self._future: Future[None] = loaded.worker.submit(work, self._emit, self._cancelled.is_set)
        self._future.add_done_callback(lambda _: self._wake())

    async def next(self) -> T | None:
        """The next result, or None after the last one. Raises what the work raised."""
        await anyio.lowlevel.checkpoint()
        while True:
            self._event = anyio.Event()
            done = self._future.done()
            if self._items:
                return self._items.popleft()
            if done:
                try:
                    self._future.result()
                except (Cancelled, CancelledError):
                    raise APIError(
                        "The engine was closed while it answered", hint="Open it again", provider="local"
                    ) from None
                return None
            await self._event.wait()

    def cancel(self) -> None:
        """Stop the work where it is not done. Needs no event loop, so a collected generator can call it."""
        self._cancelled.set()
        self._future.cancel()

    def _emit(self, item: T) -> None:
        if self._cancelled.is_set():
            raise Cancelled
        self._items.append(item)
        self._wake()

    def _arrived(self) -> None:
        self._event.set()


def _waker(callback: Callable[[], None]) -> Callable[[], None]:
    """A function that makes the running event loop call `callback`, from any thread and without waiting for it."""
    native: Any = anyio.lowlevel.current_token().native_token
    schedule: Callable[[Callable[[], None]], object] = (
        getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon
    )

    def wake() -> None:
        try:
            schedule(callback)
        except RuntimeError:  # the loop is closed (trio: RunFinishedError): nobody waits any more
            return

    return wake


def load(path: Path, n_ctx: int, threads: int | None) -> Loaded:
    """Load a model, or share it where this process has it loaded with the same window and threads. Blocks."""
    key = (os.getpid(), path, n_ctx, threads)  # a forked child has no worker thread of its parent
    with _lock:
        loaded = _loaded.get(key)
        if loaded is None:
            ready = Runtime(path, n_ctx=n_ctx, threads=threads or _runtime.default_threads())
            loaded = _loaded[key] = Loaded(key, ready, ThreadPoolExecutor(1, thread_name_prefix="pollux-like-local"))
        loaded.users += 1
        return loaded


def release(loaded: Loaded) -> None:
    """Give a model back; the last user frees its memory. Blocks until its jobs are over."""
    with _lock:
        loaded.users -= 1
        if loaded.users:
            return
        del _loaded[loaded.key]
    loaded.worker.shutdown(wait=True, cancel_futures=True)
    loaded.runtime.close()
