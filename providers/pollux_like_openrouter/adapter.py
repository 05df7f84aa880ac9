"""The only file that imports the OpenAI SDK, and only when a conversation connects."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
from pollux_like_chat import told

from pollux_like import api_errors, checks
from pollux_like.config import Config
from pollux_like.errors import APIError, ConfigurationError
from pollux_like.output import Event
from pollux_like.provider import Reply, Wire
from pollux_like.sdk import SDKAdapter
from pollux_like.telemetry import logger

from .models import Listed, ToolWire, check_tools, listed

if TYPE_CHECKING:
    import httpx2

LIST_TIMEOUT_S = 10.0
"""Longest time to wait for the list of models, unless `timeout_s` is shorter."""


def connect(config: Config) -> SDKAdapter:
    """A client for the config. Raises ConfigurationError for a missing package or key."""
    try:
        import openai
    except ModuleNotFoundError:
        raise ConfigurationError(
            "OpenRouter is reached through the package openai, which is not installed",
            hint='Run: pip install "pollux-like[openrouter]"',
        ) from None
    if config.client is not None:
        if not isinstance(config.client, openai.AsyncOpenAI):
            raise ConfigurationError(
                f"Config.client is {type(config.client).__name__}", hint="Give an openai.AsyncOpenAI client"
            )
        exact = type(config.client) is openai.AsyncOpenAI
        return OpenRouterAdapter(openai, config.client, owned=False, exact=exact)
    key = config.api_key or os.environ.get("OPENROUTER_API_KEY")
    if not key:
        raise ConfigurationError("no key for openrouter is set", hint="Set OPENROUTER_API_KEY, or give Config.api_key")
    checks.key(key, "OPENROUTER_API_KEY")
    if config.base_url is None and os.environ.get("OPENROUTER_BASE_URL"):
        checks.address(os.environ["OPENROUTER_BASE_URL"], "OPENROUTER_BASE_URL")
    from . import vendor

    client = openai.AsyncOpenAI(api_key=key, base_url=vendor.endpoint(config), max_retries=0)
    client.organization = client.project = None  # read from the variables of an OpenAI account, which stays private
    return OpenRouterAdapter(openai, client, owned=True, exact=True)


class OpenRouterAdapter(SDKAdapter):
    """Asks once per client which models take tools, and only when tools are given."""

    def __init__(self, sdk: ModuleType, client: Any, *, owned: bool, exact: bool) -> None:
        super().__init__("openrouter", sdk, client, owned=owned, exact=exact)
        self._listed: Listed | None = None
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def open(self, wire: Wire, *, timeout_s: float) -> AsyncGenerator[AsyncIterator[Event | Reply], None]:
        """Send once; see `provider.Adapter.open`. Raises ConfigurationError for tools that the model does not take."""
        if isinstance(wire, ToolWire):
            async with self._lock:
                if self._listed is None:
                    self._listed = await self._list(min(LIST_TIMEOUT_S, timeout_s))
            check_tools(wire.model, self._listed)
        async with super().open(wire, timeout_s=timeout_s) as items:
            yield items

    async def _list(self, timeout_s: float) -> Listed:
        """What models advertise; nothing where it cannot be read, and OpenRouter itself decides then."""
        import httpx2

        try:
            with anyio.fail_after(timeout_s):
                response: httpx2.Response = await self._client.get(
                    "/models", cast_to=httpx2.Response, options={"timeout": timeout_s, "max_retries": 0}
                )
            return listed(response.text)
        except (self._sdk.APIError, APIError, httpx2.HTTPError, TimeoutError, RuntimeError) as error:
            logger.info("the list of models cannot be read (%s), so tools are not checked", type(error).__name__)
            return {}

    def _refused(self, response: httpx2.Response, body: str) -> APIError:
        return api_errors.api_error(
            self._provider, told(body), status=response.status_code, headers=response.headers, secret=self._secret()
        )
