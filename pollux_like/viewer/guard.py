"""Who may ask, and what every answer says to a browser: one ASGI middleware before everything else."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field

import anyio
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""What may be listened on, and the only names that are answered to: one that somebody else resolves is none of them."""

_LOCAL = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
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
    """The secrets of one viewer, all dead when it ends.

    `token`: every read needs it, as a bearer. `ticket`: is exchanged for the token, once. `playground`: the cookie of
    the playground, whose page sends no bearer. A browser sends a cookie to every port of a host, and so to servers of
    others: this one opens nothing that holds a conversation.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    ticket: str | None = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    playground: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def url(self, host: str, port: int) -> str:
        """The link to open, as often as one likes. A browser sends nothing of what is behind the `#`."""
        return f"{_origin(host, port)}/#token={self.token}"

    def url_once(self, host: str, port: int) -> str:
        """A link for a command line, which other users of the machine may see: it opens one browser, once."""
        return f"{_origin(host, port)}/#ticket={self.ticket}"

    def spend(self, given: str) -> bool:
        """Whether it is the ticket, which is then used up."""
        if self.ticket is None or not _same(given, self.ticket):
            return False
        self.ticket = None
        return True


def error(code: str, message: str, hint: str) -> dict[str, dict[str, str]]:
    """The body of an answer that is an error: a code and two sentences."""
    return {"error": {"code": code, "message": message, "hint": hint}}


class Guard:
    """Refuses foreign hosts, foreign pages, reads without the token, and every method but GET outside of `open`.

    The files of the page hold nothing, and are given to everybody. `open`: the path of an application with methods of
    its own, which also sets its own Content-Security-Policy.
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
        inside = scope["path"].startswith(f"{self._open}/")
        cookie = f"pollux_like_view_{(scope.get('server') or ('', ''))[1]}"  # viewers of one host share its cookies
        started = False

        async def answered(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]} if inside else set[bytes]()
                kept = [pair for pair in message["headers"] if inside or pair[0] != b"cache-control"]
                more = [(name.encode(), value.encode()) for name, value in _HEADERS if name.encode() not in own]
                if message["status"] == 200 and scope["path"] == f"/api{self._open}":
                    value = f"{cookie}={self._access.playground}; Path={self._open}/; HttpOnly; SameSite=Strict"
                    more.append((b"set-cookie", value.encode()))
                message = {**message, "headers": [*kept, *more]}
            await send(message)

        response = self._response(scope, cookie, inside)
        try:
            await (self._app if response is None else response)(scope, receive, answered)
        except anyio.get_cancelled_exc_class():
            if started:
                raise
            ended = _no(scope, 503, "ended", "the viewer ends", "Start it again")  # uvicorn logs a cancelled answer
            await ended(scope, receive, answered)
        except Exception:
            if not started:  # here, since what Starlette would say is said outside of this middleware
                failed = _no(scope, 500, "internal", "the viewer failed", "Its log says why")
                await failed(scope, receive, answered)
            raise

    def _response(self, scope: Scope, cookie: str, inside: bool) -> Response | None:
        """What is answered here: a refusal, or the token for the ticket."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path, host = scope["path"], headers.get("host", "")
        if not _LOCAL.fullmatch(host):
            return _no(scope, 421, "wrong_host", "this host name is none of the viewer's", "Use the link as printed")
        if not inside and scope["method"] != "GET":
            refusal = _no(scope, 405, "method_not_allowed", "the viewer only reads", "Use GET")
            refusal.headers["allow"] = "GET"
            return refusal
        foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if path != "/" and (foreign or headers.get("origin", f"http://{host}").lower() != f"http://{host}".lower()):
            return _no(scope, 403, "foreign_page", "a page of another origin asked", "Use the viewer's own page")
        if path in ("/", "/favicon.ico") or path.startswith("/page/"):
            return None
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        bearer = bearer.strip() if kind.lower() == "bearer" else ""
        if path == "/api/open" and self._access.spend(bearer):
            return JSONResponse({"token": self._access.token})
        passed = inside and _same(cookie_parser(headers.get("cookie", "")).get(cookie, ""), self._access.playground)
        if not passed and not _same(bearer, self._access.token):
            hint = "Open the link that pollux-like view printed"
            return _no(scope, 403, "no_token", "this browser has no token of the viewer", hint)
        return None


def _origin(host: str, port: int) -> str:
    """`localhost` could be another server, on the loopback of the other IP version."""
    shown = f"[{host}]" if ":" in host else host.replace("localhost", "127.0.0.1")
    return f"http://{shown}:{port}"


def _no(scope: Scope, status: int, code: str, message: str, hint: str) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse(error(code, message, hint), status_code=status)
    return PlainTextResponse(f"{message[0].upper()}{message[1:]}. {hint}.\n", status_code=status)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
