"""Calls: values from the system of record, by a registered function or a URL on the allow-list. No model is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import anyio
import anyio.to_thread

from pollux_like import canonical, checks
from pollux_like.errors import ConfigurationError, SchemaError, missing_extra
from pollux_like.typed.schema import Field

TIMEOUT_S = 10.0
MAX_BYTES = 64 * 1024
"""Of a URL's answer."""


class CallFailed(Exception):
    """The system of record gave no value; the message quotes nothing of it."""


class Calls:
    """The allow-list. Functions take the known values as one dict and return a JSON value; they may be async.

    A URL gets `{"field": …, "values": {…}}` by POST and answers `{"value": …}`; it must be listed to the letter, and
    redirects are not followed. Raises ConfigurationError for what is neither.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]] | None = None, urls: Iterable[str] = ()) -> None:
        self.functions = dict(functions or {})
        self.urls = frozenset(checks.address(url, f"urls[{index}]") for index, url in enumerate(urls))
        for name, function in self.functions.items():
            if not callable(function):
                raise ConfigurationError(f"the call {name!r} is no function", hint="Register a callable")

    def check(self, fields: Iterable[Field]) -> None:
        """Refuse a schema that calls what is not on the list. Raises SchemaError."""
        for one in fields:
            named = [(one.call, f"schema.{one.name}.call")] if one.call else []
            named += [(rule.call, f"schema.{one.name}.{rule.name}.call") for rule in one.rules if rule.call]
            for name, path in named:
                if name not in self.functions and name not in self.urls:
                    raise SchemaError(
                        f"{path} names what is not on the allow-list", hint="Register it with the service", path=path
                    )

    async def value(self, name: str, field: str, values: Mapping[str, Any]) -> Any:
        """Ask. Raises CallFailed."""
        try:
            with anyio.fail_after(TIMEOUT_S):
                if name in self.functions:
                    found = await self._function(self.functions[name], values)
                else:
                    found = await self._post(name, field, values)
            canonical.check_value(found)
        except TimeoutError:
            raise CallFailed(f"the system of record did not answer in {TIMEOUT_S:g} s") from None
        except canonical.JSONPolicyError:
            raise CallFailed("the system of record answered what JSON cannot carry") from None
        return found

    async def _function(self, function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        try:
            if inspect.iscoroutinefunction(function):
                return await function(dict(values))
            found = await anyio.to_thread.run_sync(function, dict(values), abandon_on_cancel=True)
            return await found if inspect.isawaitable(found) else found
        except TimeoutError:
            raise
        except Exception as error:  # the user's own code; its message may hold data
            raise CallFailed(f"the registered function raised {type(error).__name__}") from error

    async def _post(self, url: str, field: str, values: Mapping[str, Any]) -> Any:
        try:
            import httpx2
        except ModuleNotFoundError as error:
            raise missing_extra("typed", error) from None
        try:
            async with (
                httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client,
                client.stream("POST", url, json={"field": field, "values": dict(values)}) as response,
            ):
                body = b""
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > MAX_BYTES:
                        raise CallFailed(f"the system of record answered more than {MAX_BYTES:,} bytes")
        except httpx2.HTTPError as error:
            raise CallFailed(f"the system of record could not be asked ({type(error).__name__})") from None
        if response.status_code != 200:
            raise CallFailed(f"the system of record answered {response.status_code}")
        try:
            answer = canonical.loads(body.decode())
        except (UnicodeDecodeError, canonical.JSONPolicyError):
            raise CallFailed("the system of record answered no JSON") from None
        if not isinstance(answer, dict) or "value" not in answer:
            raise CallFailed('the system of record answered no object with "value"')
        return cast("dict[str, Any]", answer)["value"]
