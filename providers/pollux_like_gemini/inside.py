"""The private parts of google-genai that are used, all of them here, checked when a client is connected.

The SDK's public road parses every answer into models that drop unknown fields and respell signatures, so a raw one is
needed, and the SDK has none for streams. What is used: `Client._api_client` with `_build_request` (address, version,
headers) and `_async_request_once` (credentials, sending, refusals; no retries).
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pollux_like.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx2


def address(client: Any) -> str:
    """Where a client sends to; "client" where that is not known."""
    options = getattr(getattr(client, "_api_client", None), "_http_options", None)
    return str(getattr(options, "base_url", None) or "client").rstrip("/")


def key(client: Any) -> str | None:
    """The client's key, to be cut out of messages."""
    found = getattr(getattr(client, "_api_client", None), "api_key", None)
    return found if isinstance(found, str) and found else None


def check(client: Any) -> None:
    """Raises ConfigurationError where this SDK, or the way this client sends, is not as `send` needs it."""
    import httpx2

    api = getattr(client, "_api_client", None)
    expected = {
        "_build_request": ("http_method", "path", "request_dict"),
        "_async_request_once": ("http_request", "stream", "implicit_retry"),
    }
    for name, parameters in expected.items():
        method = getattr(api, name, None)
        if not callable(method) or not set(parameters) <= inspect.signature(method).parameters.keys():
            raise ConfigurationError(
                "this version of google-genai has another inside than the one that is known",
                hint='Run: pip install "pollux-like[gemini]"',
            )
    sender = getattr(api, "_async_httpx_client", None)
    aiohttp = getattr(api, "_use_aiohttp", lambda: False)()
    if aiohttp or not isinstance(sender, httpx2.AsyncClient):
        raise ConfigurationError(
            "Config.client does not send with httpx2",
            hint="Make it with http_options=HttpOptions(httpx_async_client=httpx2.AsyncClient())",
        )


async def send(
    client: Any, path: str, body: bytes, headers: dict[str, str], timeout: httpx2.Timeout
) -> httpx2.Response:
    """Post once and give the open response. Raises what the SDK and httpx2 raise."""
    api = client._api_client
    if api.vertexai and path.startswith("models/"):
        path = f"publishers/google/{path}"
    request = api._build_request("post", path, {})
    if request.data:
        raise ConfigurationError(
            "Config.client adds a body of its own (extra_body)", hint="Give it as provider_options instead"
        )
    request.data, request.timeout = body, timeout
    request.headers.update(headers)
    answer = await api._async_request_once(request, stream=True, implicit_retry=False)
    response: httpx2.Response = answer.response_stream
    return response
