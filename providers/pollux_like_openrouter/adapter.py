"""The client of the OpenAI SDK, and the list of models that is read once through it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
from pollux_like_chat import told
from pollux_like_chat.client import connected

from pollux_like import api_errors
from pollux_like.config import Config
from pollux_like.errors import APIError
from pollux_like.output import Event
from pollux_like.provider import Reply, Wire
from pollux_like.sdk import SDKAdapter
from pollux_like.telemetry import logger

from . import vendor
from .models import Listed, ToolWire, check_tools, listed

if TYPE_CHECKING:
    import httpx2

LIST_TIMEOUT_S = 10.0
"""Longest time to wait for the list of models, unless `timeout_s` is shorter."""


def connect(config: Config) -> OpenRouterAdapter:
    """A client for the config. Raises ConfigurationError for a missing package or key."""
    variables = ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL")
    base_url = vendor.endpoint(config)
    return connected(
        config, OpenRouterAdapter, "openrouter", base_url=base_url, variables=variables, extra="openrouter"
    )


class OpenRouterAdapter(SDKAdapter):
    """Asks once per client which models take tools, and only when tools are given."""

    def __init__(self, provider: str, sdk: ModuleType, client: Any, *, owned: bool, exact: bool) -> None:
        super().__init__(provider, sdk, client, owned=owned, exact=exact)
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
