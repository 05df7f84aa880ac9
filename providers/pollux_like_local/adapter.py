"""From a rendered chat completion to the embedded engine, or to a server through the OpenAI SDK."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import anyio

from pollux_like import api_errors, canonical
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError
from pollux_like.output import Event
from pollux_like.provider import Adapter, Reply, Wire
from pollux_like.sdk import SDKAdapter

from .engine import LlamaEngine
from .models import DEFAULT_MODEL


def connect(config: Config) -> Adapter:
    """An adapter for the config. Raises ConfigurationError for a missing package."""
    if config.base_url is None and config.client is None:
        model = None if config.model == DEFAULT_MODEL else config.model
        return EmbeddedAdapter(model)
    try:
        import openai
    except ModuleNotFoundError:
        raise ConfigurationError(
            "servers of local models are reached through the package openai, which is not installed",
            hint='Run: pip install "pollux-like[openai]"',
        ) from None
    if config.client is not None:
        if not isinstance(config.client, openai.AsyncOpenAI):
            raise ConfigurationError(
                f"Config.client is {type(config.client).__name__}", hint="Give an openai.AsyncOpenAI client"
            )
        exact = type(config.client) is openai.AsyncOpenAI
        return SDKAdapter("local", openai, config.client, owned=False, exact=exact)
    client = openai.AsyncOpenAI(api_key=config.api_key or "local", base_url=config.base_url, max_retries=0)
    return SDKAdapter("local", openai, client, owned=True, exact=True)


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
