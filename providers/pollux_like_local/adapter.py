"""From a rendered chat completion to the embedded engine, or to a server through the OpenAI SDK."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import anyio
from pollux_like_chat.client import connected

from pollux_like import api_errors, canonical
from pollux_like.config import Config
from pollux_like.output import Event
from pollux_like.provider import Adapter, Reply, Wire
from pollux_like.sdk import SDKAdapter

from .engine import LlamaEngine
from .models import COUNT, DEFAULT_MODEL, find_model
from .runtime import import_runtime


def connect(config: Config) -> Adapter:
    """An adapter for the config. Raises ConfigurationError for a missing package or model: no input is kept then."""
    if config.base_url is None and config.client is None:
        model = None if config.model == DEFAULT_MODEL else config.model
        import_runtime()
        find_model(model)
        return EmbeddedAdapter(model)
    return connected(config, SDKAdapter, "local", base_url=config.base_url or "", variables=None, extra="openai")


class EmbeddedAdapter:
    """The engine in this process, loaded at the first turn."""

    def __init__(self, model: str | None) -> None:
        self._model = model
        self._engine: LlamaEngine | None = None
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def open(self, wire: Wire, *, timeout_s: float) -> AsyncGenerator[AsyncIterator[Event | Reply], None]:
        """Run once. `timeout_s` does not apply: nothing is waited for but the computation itself."""
        async with self._lock:
            if self._engine is None:
                self._engine = await LlamaEngine.open(self._model)
        async with aclosing(self._items(self._engine, wire)) as items:
            yield items

    async def _items(self, engine: LlamaEngine, wire: Wire) -> AsyncGenerator[Event | Reply, None]:
        body = canonical.loads(wire.body)
        body["model"] = engine.model.id
        if wire.path == COUNT:
            yield wire.parser().whole(canonical.dumps({"tokens": await engine.count(body)}))
            return
        parser = wire.parser()
        try:
            if not wire.streaming:
                yield parser.whole(await engine.complete(body))
                return
            async with aclosing(engine.stream(body)) as chunks:
                async for chunk in chunks:
                    for event in parser.feed(chunk):
                        yield event
            yield parser.end()
        except canonical.JSONPolicyError:
            raise api_errors.unreadable("local") from None

    async def aclose(self) -> None:
        """Give the model back."""
        if self._engine is not None:
            await self._engine.aclose()
            self._engine = None
