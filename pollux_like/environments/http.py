"""Requests to an environment server: which are sent again, how often, and what a refusal becomes."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import anyio
import httpx2

from pollux_like import canonical, checks
from pollux_like.errors import EnvironmentServerError

RETRIED: Final = frozenset({429, 502, 503, 504})
"""Answers after which a request is sent again: the server says that it did nothing."""
STARTING = "x-backend-state"
SHOWN = 500
"""Most characters of a server's own words in an error."""
SAID = 16_384
"""Most characters of what a tool says of its failure; a model reads it."""
MAX_ANSWER = 256 * 1024 * 1024
"""Largest answer that is read, in bytes, after decompression."""


@dataclass(frozen=True, slots=True)
class Patience:
    """`attempts` per request; `start_s` for a server that says it is starting; `silence_s` of a stream before it is
    taken up again, at most `reconnects` times per call. Waits double from `first_wait_s` up to `longest_wait_s`, which
    bounds Retry-After too."""

    attempts: int = 3
    start_s: float = 600.0
    silence_s: float = 30.0
    reconnects: int = 20
    first_wait_s: float = 0.25
    longest_wait_s: float = 10.0

    def wait_s(self, attempt: int, answer: httpx2.Response | None = None) -> float:
        """Seconds before the attempt after this one; Retry-After in seconds counts."""
        said = "" if answer is None else answer.headers.get("retry-after", "").strip()
        if said.isascii() and said.isdigit():
            return min(float(said[:6]), self.longest_wait_s)
        return min(self.first_wait_s * 2.0 ** min(attempt, 20), self.longest_wait_s)


@dataclass(slots=True)
class Wire:
    """One client and what every request carries. `token` goes to this server and nowhere else."""

    client: httpx2.AsyncClient
    base_url: str
    token: str | None = field(repr=False)
    patience: Patience

    def _headers(self, sid: str | None, more: Mapping[str, str]) -> dict[str, str]:
        headers = {"User-Agent": "pollux_like", **more}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if sid is not None:
            headers["X-Session-ID"] = sid
        return headers

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        sid: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[httpx2.Response, bool]:
        """The answer, whatever its status, and whether an earlier attempt was lost on the way.

        Sent again after transport errors and RETRIED; every route that this is used for may be asked twice.
        Raises EnvironmentServerError where the server cannot be reached.
        """
        lost = False
        attempt = 0
        deadline = anyio.current_time() + self.patience.start_s
        while True:
            attempt += 1
            last = attempt >= self.patience.attempts
            try:
                async with self.client.stream(
                    method,
                    self.base_url + path,
                    content=None if body is None else canonical.dumps(body),
                    headers=self._headers(sid, {"Content-Type": "application/json", **(headers or {})}),
                ) as arriving:
                    answer = await whole(arriving)
            except httpx2.TransportError as error:
                lost = True
                if last:
                    raise unreachable(error) from None
                await anyio.sleep(self.patience.wait_s(attempt))
                continue
            except httpx2.RequestError as error:
                raise unreachable(error) from None
            starting = answer.status_code == 503 and answer.headers.get(STARTING) == "starting"
            if answer.status_code not in RETRIED or (last and not starting) or anyio.current_time() > deadline:
                return answer, lost
            await anyio.sleep(self.patience.wait_s(attempt, answer))

    @asynccontextmanager
    async def stream(
        self, path: str, body: Mapping[str, Any], *, sid: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[httpx2.Response, None]:
        """One POST whose answer is read as it comes. Not sent again here."""
        async with self.client.stream(
            "POST",
            self.base_url + path,
            content=canonical.dumps(body),
            headers=self._headers(sid, {"Content-Type": "application/json", "Accept": "text/event-stream", **headers}),
            timeout=httpx2.Timeout(self.patience.silence_s),
        ) as answer:
            yield answer


async def whole(arriving: httpx2.Response) -> httpx2.Response:
    """The answer with its body. Raises EnvironmentServerError above MAX_ANSWER and for what cannot be decompressed."""
    body = bytearray()
    try:
        async for chunk in arriving.aiter_bytes():
            body += chunk
            if len(body) > MAX_ANSWER:
                raise malformed(f"it has more than {MAX_ANSWER} bytes")
    except httpx2.DecodingError:
        raise malformed("its compression is broken") from None
    kept = [(name, value) for name, value in arriving.headers.multi_items() if name not in _OF_THE_WAY]
    return httpx2.Response(arriving.status_code, headers=kept, content=bytes(body))


_OF_THE_WAY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def unreachable(error: Exception) -> EnvironmentServerError:
    """No answer came."""
    return EnvironmentServerError(
        f"the environment server cannot be reached: {type(error).__name__}", hint="Check base_url and the server"
    )


def refusal(answer: httpx2.Response) -> EnvironmentServerError:
    """The error of an answer that is no success."""
    hints = {
        401: "Give the server's token as token=",
        404: "Check the environment's name, and whether the session is still open",
        410: "Open a new session",
        429: "Close sessions, or wait",
        503: "Wait: the environment is still starting",
    }
    status = answer.status_code
    return EnvironmentServerError(
        f"the environment server answered {status}: {detail_of(answer)}",
        hint=hints.get(status, "Look at the server's log"),
        status=status,
    )


def detail_of(answer: httpx2.Response) -> str:
    """The server's own words, shortened."""
    try:
        value: object = canonical.loads(answer.content.decode())
    except ValueError:
        return "no reason given"
    detail = cast("dict[str, object]", value).get("detail") if isinstance(value, dict) else value
    return shortened(detail if isinstance(detail, str) else json.dumps(detail))


def shortened(text: str, most: int = SHOWN) -> str:
    """A server's own words, at most `most` characters of them."""
    return text if len(text) <= most else f"{text[:most]}…"


def value_of(answer: httpx2.Response) -> Any:
    """The JSON of a success. Raises EnvironmentServerError for another status and for what is no JSON."""
    if answer.status_code != 200:
        raise refusal(answer)
    try:
        return canonical.loads(answer.content.decode())
    except canonical.JSONPolicyError as error:
        raise malformed(str(error)) from None
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None


def object_of(value: object, what: str) -> dict[str, Any]:
    """A JSON object out of an answer."""
    if not isinstance(value, dict):
        raise malformed(f"{what} is {checks.kind(value)}, not an object")
    return cast("dict[str, Any]", value)


def list_of(value: object, what: str) -> list[Any]:
    """A JSON list out of an answer."""
    if not isinstance(value, list):
        raise malformed(f"{what} is {checks.kind(value)}, not a list")
    return cast("list[Any]", value)


def text_of(value: object, what: str) -> str:
    """A text out of an answer."""
    if not isinstance(value, str):
        raise malformed(f"{what} is {checks.kind(value)}, not a text")
    return value


def malformed(what: str) -> EnvironmentServerError:
    """An answer that is not of the protocol."""
    return EnvironmentServerError(
        f"the environment server's answer is not of the protocol: {what}",
        hint="Check that base_url leads to an environment server",
    )


def secrets_header(secrets: Mapping[str, str] | None) -> dict[str, str]:
    """`X-Secrets` as the protocol wants it; nothing but what the caller gave."""
    if not secrets:
        return {}
    named: dict[str, Any] = {
        checks.filled(name, "name of a secret"): {"value": checks.text(value, "a secret"), "allowed_domains": []}
        for name, value in secrets.items()
    }
    return {"X-Secrets": base64.b64encode(canonical.dumps(named).encode()).decode()}
