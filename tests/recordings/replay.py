"""The provider's side: the real SDK clients over a transport that gives recorded answers and keeps what was asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai
from google import genai

from pollux_like import Config

from .collection import Exchange
from .compatible import ADDRESSES

CHUNK = 1021
"""Bytes per piece of a stream: lines and characters are cut anywhere, as on a network."""
KEY = "invalid-key"
"""The key that one recorded refusal quotes, so that it shows whether the library lets a key through."""


@dataclass
class Replay:
    """Answers every request with the recorded answer that stands in `exchange`."""

    exchange: Exchange
    asked: list[httpx2.Request] = field(default_factory=list)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        """One request. OpenRouter's list of models was not recorded."""
        if request.method == "GET":
            return httpx2.Response(404)
        self.asked.append(request)
        content = self.exchange.content()
        kept = ("content-type", "request-id", "x-request-id", "retry-after")
        headers = {key: value for key, value in self.exchange.headers.items() if key in kept}
        if self.exchange.sse is not None:
            return httpx2.Response(self.exchange.status, headers=headers, content=_pieces(content))
        return httpx2.Response(self.exchange.status, headers=headers, content=content)

    def config(self, provider: str, model: str) -> Config:
        """A config whose SDK client speaks to this replay."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self.handle))
        if provider == "gemini":
            unused = httpx2.Client(transport=httpx2.MockTransport(self.handle))  # its own reads the trust store
            options = genai.types.HttpOptions(httpx_async_client=http, httpx_client=unused)
            return Config(provider, model, client=genai.Client(api_key=KEY, http_options=options), max_attempts=2)
        if provider == "local":
            base_url = next(at for name, at in ADDRESSES.items() if self.exchange.where.startswith(name))
            client = openai.AsyncOpenAI(api_key=KEY, base_url=base_url, http_client=http)
            return Config(provider, model, client=client, max_attempts=2)
        sdk: Any = anthropic.AsyncAnthropic if provider == "anthropic" else openai.AsyncOpenAI
        return Config(provider, model, client=sdk(api_key=KEY, http_client=http), max_attempts=2)

    @property
    def text(self) -> str:
        """The body of the last request as it was sent."""
        return self.asked[-1].content.decode()

    @property
    def body(self) -> dict[str, Any]:
        """The body of the last request."""
        body: dict[str, Any] = json.loads(self.text)
        return body


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), CHUNK):
        yield content[start : start + CHUNK]
