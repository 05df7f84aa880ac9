"""The raw road through a vendor's SDK client: our bytes out, the provider's bytes in, nothing rebuilt on the way.

The OpenAI and Anthropic SDKs share one generator, so one adapter drives both: `client.post`, cast to httpx2.Response,
keeps their authentication, base URL, headers, proxies and user-made clients, and skips their typed models. Retries of
the SDK are off (`max_retries=0`): `turn._send` owns them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from pollux_like import api_errors, canonical
from pollux_like.continuation import MAX_REPLY_CHARS
from pollux_like.errors import APIError, ConfigurationError, ProviderTimeoutError, StreamInterruptedError
from pollux_like.output import Event
from pollux_like.provider import Reply, Wire

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT_S = 10.0
"""Longest time to reach the provider's host, unless `timeout_s` is shorter."""


class SDKAdapter:
    """An adapter over one async client of an SDK.

    `exact` says that the client is the SDK's own class: it takes ready bytes. Subclasses (Azure, Bedrock, Vertex)
    rewrite the body, so each attempt gives them a fresh dict.
    """

    def __init__(self, provider: str, sdk: ModuleType, client: Any, *, owned: bool, exact: bool) -> None:
        self._provider = provider
        self._sdk = sdk
        self._client = client
        self._owned = owned
        self._exact = exact

    @asynccontextmanager
    async def open(self, wire: Wire, *, timeout_s: float) -> AsyncGenerator[AsyncIterator[Event | Reply], None]:
        """Send once; see `provider.Adapter.open`."""
        response = await self._post(wire, _timeout(timeout_s))
        try:
            async with aclosing(self._items(response, wire)) as items:
                yield items
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the client, unless the application made it."""
        if self._owned:
            await self._client.close()

    async def _post(self, wire: Wire, timeout: httpx2.Timeout) -> httpx2.Response:
        import httpx2

        body: dict[str, Any] = (
            {"content": wire.body.encode("utf-8")} if self._exact else {"body": canonical.loads(wire.body)}
        )
        try:
            response: httpx2.Response = await self._client.post(
                wire.path,
                **body,
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=self._sdk.AsyncStream[object],
                options={"headers": wire.headers, "timeout": timeout, "max_retries": 0},
            )
            return response
        except self._sdk.APIStatusError as error:
            raise self._refused(error.response, error.response.text) from None
        except self._sdk.APITimeoutError as error:
            raise self._late(error.__cause__) from None
        except httpx2.TimeoutException:  # the SDKs let through what befalls the body of a refusal
            raise self._late() from None
        except (self._sdk.APIConnectionError, httpx2.HTTPError) as error:
            raise self._unreachable(error) from None
        except (OSError, ValueError, httpx2.InvalidURL) as error:  # from a transport that the application made
            raise self._unreachable(error) from None
        except RuntimeError as error:  # so say httpx2 and the event loops
            raise ConfigurationError(
                f"the client of {self._provider} cannot send ({error})",
                hint="Use a client that is open and was made for this event loop",
            ) from None

    async def _items(self, response: httpx2.Response, wire: Wire) -> AsyncGenerator[Event | Reply, None]:
        import httpx2

        parser = wire.parser()
        source = self._source(response)
        try:
            if source is None:
                reply = parser.whole(await self._text(response))
            else:
                async with aclosing(source) as events:
                    async for event in events:
                        for item in parser.feed(event.data):
                            yield item
                reply = parser.end()
        except APIError as error:
            raise self._completed(error, response) from None
        except (canonical.JSONPolicyError, ConfigurationError, KeyError, TypeError, AttributeError, ValueError):
            # The provider's answer has another shape than it documents; nothing of it is taken.
            raise self._completed(api_errors.unreadable(self._provider), response) from None
        except httpx2.TimeoutException:
            raise self._late() from None
        except httpx2.HTTPError as error:
            raise StreamInterruptedError(
                f"the connection to {self._provider} broke before the reply was complete ({type(error).__name__})",
                hint="Try again from the same continuation",
                provider=self._provider,
                retryable=True,
                request_id=_request_id(response),
            ) from None
        object.__setattr__(reply, "request_id", _request_id(response))  # it is new, and nobody has seen it
        yield reply

    def _source(self, response: httpx2.Response) -> AsyncGenerator[httpx2.ServerSentEvent] | None:
        """The events of a stream; None where the answer is a body."""
        import httpx2

        kind = (_header(response, b"content-type") or "").lower()
        if kind.startswith("text/event-stream"):
            return cast("AsyncGenerator[httpx2.ServerSentEvent]", aiter(httpx2.EventSource(response, MAX_REPLY_CHARS)))
        if not kind.startswith("application/vnd.amazon.eventstream"):
            return None
        try:
            from botocore.eventstream import ParserError
        except ModuleNotFoundError:
            raise ConfigurationError(
                "streams of Bedrock are read with botocore, which is not installed",
                hint='Run: pip install "anthropic[bedrock]"',
            ) from None
        return self._frames(response, ParserError)

    async def _frames(
        self, response: httpx2.Response, damaged: type[Exception]
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """The events of Bedrock's streams. The decoder is the SDK's own, which it makes in a private method only."""
        try:
            decoder = self._client._make_sse_decoder()
            async with aclosing(decoder.aiter_bytes(response.aiter_bytes())) as events:
                async for event in events:
                    yield event
        except damaged as error:
            raise ValueError("the stream is damaged") from error

    async def _text(self, response: httpx2.Response) -> str:
        if len(await response.aread()) > MAX_REPLY_CHARS:
            raise APIError(
                f"{self._provider} sent more than {MAX_REPLY_CHARS:,} bytes",
                hint="Lower max_tokens",
                provider=self._provider,
            )
        return response.content.decode("utf-8", "replace")  # JSON is UTF-8, whatever the header says (RFC 8259)

    def _completed(self, error: APIError, response: httpx2.Response) -> APIError:
        secret = self._secret()
        error.message = api_errors.masked(error.message, secret)
        error.args = (f"{error.message}. {error.hint}.",)
        error.code = error.code and api_errors.masked(error.code, secret)
        error.type = error.type and api_errors.masked(error.type, secret)
        error.provider = error.provider or self._provider
        error.request_id = error.request_id or _request_id(response)
        return error

    def _refused(self, response: httpx2.Response, body: str) -> APIError:
        return api_errors.api_error(
            self._provider, body, status=response.status_code, headers=response.headers, secret=self._secret()
        )

    def _secret(self) -> str | None:
        """The key, to be cut out of errors."""
        key = getattr(self._client, "api_key", None) or getattr(self._client, "auth_token", None)
        return key if isinstance(key, str) else None

    def _late(self, cause: BaseException | None = None) -> APIError:
        import httpx2

        if isinstance(cause, httpx2.ConnectTimeout):  # aiohttp's word for a refused connection as well
            said, hint = "cannot be reached in time", "Check the network and base_url, then try again"
        else:
            said, hint = "sent nothing in time", "Try again, or raise timeout_s"
        return ProviderTimeoutError(
            f"{self._provider} {said}",
            hint=hint,
            provider=self._provider,
            retryable=True,
        )

    def _unreachable(self, error: Exception) -> APIError:
        cause = type(error.__cause__).__name__ if error.__cause__ is not None else type(error).__name__
        return APIError(
            f"{self._provider} cannot be reached ({cause})",
            hint="Check the network and base_url, then try again",
            provider=self._provider,
            retryable=True,
        )


@cache
def _timeout(timeout_s: float) -> httpx2.Timeout:
    import httpx2

    return httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))


def _request_id(response: httpx2.Response) -> str | None:
    return _header(response, b"x-request-id", b"request-id")


def _header(response: httpx2.Response, *names: bytes) -> str | None:
    """The header of the first name, in lower case, that one has; `Headers.get` reads all of them anew each time."""
    raw = response.headers.raw
    found = (value for name in names for key, value in raw if value and key.lower() == name)
    return next((value.decode("latin-1") for value in found), None)
