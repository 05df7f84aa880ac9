"""The only file that imports the Google SDK, and only when a conversation connects."""

from __future__ import annotations

import os
import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pollux_like.config import Config
from pollux_like.errors import APIError, AuthenticationError, ConfigurationError, missing_extra
from pollux_like.provider import Wire
from pollux_like.sdk import SDKAdapter

from . import inside
from .refusal import refusal

if TYPE_CHECKING:
    import httpx2

_VERSION = re.compile(r"(.+)/(v\d+(?:(?:alpha|beta)\d*)?)")


class GeminiAdapter(SDKAdapter):
    """The raw road through a `google.genai.Client`; the client's own retries are passed by."""

    def __init__(self, sdk: ModuleType, client: Any, http: httpx2.AsyncClient | None) -> None:
        super().__init__("gemini", sdk, client, owned=http is not None, exact=True)
        self._http = http

    async def aclose(self) -> None:
        """Close the client and its connections, unless the application made it."""
        if self._http is not None:
            self._client.close()
            await self._http.aclose()

    async def _post(self, wire: Wire, timeout: httpx2.Timeout) -> httpx2.Response:
        import google.auth.exceptions
        import httpx2

        try:
            return await inside.send(self._client, wire.path, wire.body.encode("utf-8"), dict(wire.headers), timeout)
        except self._sdk.errors.APIError as error:
            raise self._refused(error.response, error.response.text) from None
        except httpx2.TimeoutException:
            raise self._late() from None
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None
        except google.auth.exceptions.GoogleAuthError as error:
            raise AuthenticationError(
                f"the credentials of gemini cannot be used ({type(error).__name__})",
                hint="Check the application default credentials, or give a key",
                provider="gemini",
            ) from None
        except RuntimeError as error:  # so say httpx2, the SDK and the event loops
            raise ConfigurationError(
                f"the client of gemini cannot send ({error})",
                hint="Use a client that is open and was made for this event loop",
            ) from None

    def _refused(self, response: httpx2.Response, body: str) -> APIError:
        return refusal(body, status=response.status_code, headers=response.headers, secret=self._secret())

    def _secret(self) -> str | None:
        return inside.key(self._client)


def connect(config: Config, base_url: str) -> GeminiAdapter:
    """A client for the config. Raises ConfigurationError for a missing package or key."""
    try:
        import httpx2
        from google import genai
        from google.genai import types
    except ImportError as error:  # "from google import genai": google may be another package's
        raise missing_extra("gemini", error, package="google-genai") from None
    if config.client is not None:
        if not isinstance(config.client, genai.Client):
            raise ConfigurationError(
                f"Config.client is {type(config.client).__name__}", hint="Give a google.genai.Client"
            )
        inside.check(config.client)
        return GeminiAdapter(genai, config.client, None)
    key = config.api_key or os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")
    if not key:
        raise ConfigurationError("no key for gemini is set", hint="Set GEMINI_API_KEY, or give Config.api_key")
    http = httpx2.AsyncClient()  # of no event loop, where the SDK's own knows asyncio only
    found = _VERSION.fullmatch(base_url)  # the SDK adds the version by itself
    address, version = (found[1], found[2]) if found else (base_url, None)
    options = types.HttpOptions(base_url=address, api_version=version, httpx_async_client=http)
    client = genai.Client(vertexai=False, api_key=key, http_options=options)
    inside.check(client)
    return GeminiAdapter(genai, client, http)
