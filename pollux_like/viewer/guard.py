"""Who may ask, and what every answer says to a browser: one ASGI middleware before everything else."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""The only host names that are answered to: a name that somebody else resolves to loopback is none of them."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    ("cache-control", "no-store"), ("content-security-policy", _POLICY), ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"), ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
)  # fmt: skip


@dataclass(slots=True)
class Access:
    """The secrets of one viewer: `ticket` opens one browser, once; `token` is its cookie, or a program's bearer."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    ticket: str | None = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def url(self, host: str, port: int) -> str:
        """The link to open. Its ticket is spent by the first browser that opens it."""
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/?ticket={self.ticket}"

    def spend(self, given: str) -> bool:
        """Whether it is the ticket, which is then used up."""
        if self.ticket is None or not _same(given, self.ticket):
            return False
        self.ticket = None
        return True

    def knows(self, given: Iterable[str]) -> bool:
        """Whether one of them is the token."""
        return any(_same(one, self.token) for one in given)


def error(code: str, message: str, hint: str) -> dict[str, dict[str, str]]:
    """The body of an answer that is an error: a code and two sentences."""
    return {"error": {"code": code, "message": message, "hint": hint}}


class Guard:
    """Refuses foreign hosts, foreign pages, whoever has no token, and every method but GET outside of `open`.

    `open`: the path of an application with methods of its own, which also sets its own Content-Security-Policy.
    """

    def __init__(self, app: ASGIApp, access: Access, open: str) -> None:
        self._app, self._access, self._open = app, access, open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        cookie = f"pollux_like_view_{scope['server'][1]}"  # a cookie belongs to a host, whatever the port
        inside = scope["path"].startswith(f"{self._open}/")
        refusal, cookies = self._checked(scope, headers, cookie, inside)

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]} if inside else set[bytes]()
                kept = [pair for pair in message["headers"] if inside or pair[0] != b"cache-control"]
                more = [(name.encode(), value.encode()) for name, value in _HEADERS if name.encode() not in own]
                message = {**message, "headers": [*kept, *more, *((b"set-cookie", one.encode()) for one in cookies)]}
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, answered)

    def _checked(
        self, scope: Scope, headers: dict[str, str], cookie: str, inside: bool
    ) -> tuple[Response | None, list[str]]:
        """The refusal, or None and the cookies to set."""
        if _host(headers.get("host", "")) not in LOOPBACK:
            return _no(
                scope, 421, "wrong_host", "this host name is none of the viewer's", "Use the link as printed"
            ), []
        if not inside and scope["method"] != "GET":
            refusal = _no(scope, 405, "method_not_allowed", "the viewer only reads", "Use GET")
            refusal.headers["allow"] = "GET"
            return refusal, []
        tickets = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", []) if scope["path"] == "/" else []
        bearer = headers.get("authorization", "").partition(" ")
        given = [cookie_parser(headers.get("cookie", "")).get(cookie, "")]
        if bearer[0].lower() == "bearer":
            given.append(bearer[2])
        known = self._access.knows(given)
        if not known and tickets and self._access.spend(tickets[0]):
            return None, [f"{cookie}={self._access.token}; Path=/; HttpOnly; SameSite=Strict"]
        if not known:
            hint = "Open the link that pollux-like view printed: it opens one browser, once"
            return _no(scope, 403, "no_token", "this browser has no token of the viewer", hint), []
        if scope["path"] != "/" and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _no(scope, 403, "foreign_page", "a page of another origin asked", "Use the viewer's own page"), []
        return None, []


def _no(scope: Scope, status: int, code: str, message: str, hint: str) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse(error(code, message, hint), status_code=status)
    return PlainTextResponse(f"{message[0].upper()}{message[1:]}. {hint}.\n", status_code=status)


def _host(value: str) -> str | None:
    try:
        return urlsplit(f"//{value}").hostname
    except ValueError:
        return None


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
