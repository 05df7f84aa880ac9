"""The embedded chat engine: a small model in this process that answers OpenAI-chat-shaped requests, offline.

One worker thread per loaded model owns its slot: requests wait there in order, and a cancelled one gives way within
one evaluation step. Works on asyncio and on trio, from any number of event loops.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from pollux_like.canonical import dumps
from pollux_like.errors import APIError, ConfigurationError
from pollux_like_local import runtime as _runtime
from pollux_like_local.chat import Chat, prompt_tokens, whole
from pollux_like_local.models import ModelInfo, find_model
from pollux_like_local.request import ChatRequest, read_request
from pollux_like_local.runtime import Cancelled, Runtime

DEFAULT_N_CTX = 8192
"""Window in tokens. SmolLM2 was trained for 8,192; a larger one costs memory (23 kB a token) and gives no sense."""


@dataclass(slots=True, eq=False)
class _Loaded:
    """A model in memory with the thread that works on it, shared by every engine that is open on it."""

    key: tuple[int, Path, int, int | None]
    runtime: Runtime
    worker: ThreadPoolExecutor
    users: int = 0
    verified: set[str] = field(default_factory=set[str])


_loaded: dict[tuple[int, Path, int, int | None], _Loaded] = {}
_lock = threading.Lock()


class LlamaEngine:
    """A chat engine on a local GGUF model; make one with `open`.

    `stream` and `complete` take the body of an OpenAI chat completion: messages (system first, user, assistant, tool;
    text only), tools, tool_choice, parallel_tool_calls (accepted; one call per turn is made), response_format,
    max_tokens (default 512), temperature (default 0), top_p, seed, stop, stream, model. Anything else is refused.

    `usage.prompt_tokens_details.cached_tokens` counts the prompt tokens that were in the model's cache already: from
    turn to turn only the new text is evaluated.
    """

    def __init__(self, loaded: _Loaded) -> None:
        self._loaded: _Loaded | None = loaded
        self._jobs: set[_Job] = set()
        self.model: ModelInfo = loaded.runtime.model

    @classmethod
    async def open(
        cls, model: str | Path | None = None, *, n_ctx: int = DEFAULT_N_CTX, threads: int | None = None
    ) -> LlamaEngine:
        """Load a model, or share it where this process has it loaded with the same window and threads.

        `model` is the path of a `.gguf` file, the id of the installed model, or None for the default (the file named
        by POLLUX_LIKE_LOCAL_MODEL, else the installed model). `threads` defaults to half of the cores, from one to
        four. Raises ConfigurationError where the runtime or the model is missing or cannot be used.
        """
        path = find_model(model)
        if n_ctx < 256 or (threads is not None and threads < 1):
            raise ConfigurationError(
                f"n_ctx is {n_ctx} and threads is {threads}", hint="Pass at least 256 tokens and one thread"
            )
        return cls(await anyio.to_thread.run_sync(_load, path, n_ctx, threads))

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[str, None]:
        """The reply as JSON texts of `chat.completion.chunk`: pieces, one with the finish reason, one with usage.

        Closing the iterator early, or cancelling, stops the model and frees its slot. Raises ConfigurationError for a
        request that cannot be served, ContextOverflowError, and APIError where the runtime fails.
        """
        job = self._submit(body)
        try:
            while (chunk := await job.next()) is not None:
                yield dumps(chunk)
        finally:
            self._end(job)

    async def complete(self, body: dict[str, Any]) -> str:
        """The reply as the JSON text of one `chat.completion`, the same values as `stream`. Raises like `stream`."""
        job = self._submit(body)
        try:
            chunks: list[dict[str, Any]] = []
            while (chunk := await job.next()) is not None:
                chunks.append(chunk)
        finally:
            self._end(job)
        return dumps(whole(chunks))

    async def count(self, body: dict[str, Any]) -> int:
        """Prompt tokens of the turn that `complete` would take. Nothing is generated. Raises like `stream`."""
        if self._loaded is None:
            raise ConfigurationError("The engine is closed", hint="Open it again with LlamaEngine.open()")
        request = read_request(body, model=self.model.id)
        counting = self._loaded.worker.submit(prompt_tokens, self._loaded.runtime, request)
        return await anyio.to_thread.run_sync(counting.result, abandon_on_cancel=True)

    async def aclose(self) -> None:
        """Give the model back; the last engine on it frees its memory. Closing twice is harmless.

        Requests of this engine that are still running end with an APIError.
        """
        loaded, self._loaded = self._loaded, None
        for job in self._jobs:
            job.cancel()
        if loaded is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_release, loaded)

    def _submit(self, body: dict[str, Any]) -> _Job:
        if self._loaded is None:
            raise ConfigurationError("The engine is closed", hint="Open it again with LlamaEngine.open()")
        request = read_request(body, model=self.model.id)
        job = _Job(self._loaded, request)
        self._jobs.add(job)
        return job

    def _end(self, job: _Job) -> None:
        job.cancel()
        self._jobs.discard(job)


class _Job:
    """One request on its way through the worker thread, seen from the event loop that asked."""

    def __init__(self, loaded: _Loaded, request: ChatRequest) -> None:
        self._wake = _waker(self._arrived)
        self._chunks: deque[dict[str, Any]] = deque()
        self._event = anyio.Event()
        self._cancelled = threading.Event()
        chat = Chat(loaded.runtime, request, self._emit, self._cancelled.is_set, loaded.verified)
        self._future: Future[None] = loaded.worker.submit(chat.run)
        self._future.add_done_callback(lambda _: self._wake())

    async def next(self) -> dict[str, Any] | None:
        """The next chunk, or None after the last one. Raises what the work raised."""
        await anyio.lowlevel.checkpoint()
        while True:
            self._event = anyio.Event()
            done = self._future.done()
            if self._chunks:
                return self._chunks.popleft()
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

    def _emit(self, chunk: dict[str, Any]) -> None:
        if self._cancelled.is_set():
            raise Cancelled
        self._chunks.append(chunk)
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


def _load(path: Path, n_ctx: int, threads: int | None) -> _Loaded:
    key = (os.getpid(), path, n_ctx, threads)  # a forked child has no worker thread of its parent
    with _lock:
        loaded = _loaded.get(key)
        if loaded is None:
            ready = Runtime(path, n_ctx=n_ctx, threads=threads or _runtime.default_threads())
            loaded = _loaded[key] = _Loaded(key, ready, ThreadPoolExecutor(1, thread_name_prefix="pollux-like-local"))
        loaded.users += 1
        return loaded


def _release(loaded: _Loaded) -> None:
    with _lock:
        loaded.users -= 1
        if loaded.users:
            return
        del _loaded[loaded.key]
    loaded.worker.shutdown(wait=True, cancel_futures=True)
    loaded.runtime.close()
