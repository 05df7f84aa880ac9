"""The embedded chat engine: a small model in this process that answers OpenAI-chat-shaped requests, offline.

One worker thread per loaded model owns its slot: requests wait there in order, and a cancelled one gives way within
one evaluation step. Works on asyncio and on trio, from any number of event loops.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from pollux_like.canonical import dumps
from pollux_like.errors import ConfigurationError
from pollux_like_local.chat import Chat, prompt_tokens, whole
from pollux_like_local.models import ModelInfo, find_model
from pollux_like_local.request import read_request
from pollux_like_local.worker import Job, Loaded, load, release

DEFAULT_N_CTX = 8192
"""Window in tokens. SmolLM2 was trained for 8,192; a larger one costs memory (23 kB a token) and gives no sense."""


class LlamaEngine:
    """A chat engine on a local GGUF model; make one with `open`.

    `stream` and `complete` take the body of an OpenAI chat completion: messages (system first, user, assistant, tool;
    text only), tools, tool_choice, parallel_tool_calls (accepted; one call per turn is made), response_format,
    max_tokens (default 512), temperature (default 0), top_p, seed, stop, stream, model. Anything else is refused.

    `usage.prompt_tokens_details.cached_tokens` counts the prompt tokens that were in the model's cache already: from
    turn to turn only the new text is evaluated.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded: Loaded | None = loaded
        self._jobs: set[Job[dict[str, Any]]] = set()
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
        return cls(await anyio.to_thread.run_sync(load, path, n_ctx, threads))

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
                await anyio.to_thread.run_sync(release, loaded)

    def _submit(self, body: dict[str, Any]) -> Job[dict[str, Any]]:
        if self._loaded is None:
            raise ConfigurationError("The engine is closed", hint="Open it again with LlamaEngine.open()")
        request = read_request(body, model=self.model.id)
        loaded = self._loaded

        def work(emit: Callable[[dict[str, Any]], None], cancelled: Callable[[], bool]) -> None:
            Chat(loaded.runtime, request, emit, cancelled, loaded.verified).run()

        job = Job(loaded, work)
        self._jobs.add(job)
        return job

    def _end(self, job: Job[dict[str, Any]]) -> None:
        job.cancel()
        self._jobs.discard(job)
