"""The ASGI application: one request in, one delivery out, whatever the dialect."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NoReturn

from anyio import to_thread
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from pollux_like.canonical import dumps
from pollux_like.simulator.disturb import Delivery, deliver
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.script_queue import CALM, Recorded, ScriptQueue
from pollux_like.simulator.shapes import is_object
from pollux_like.simulator.wire import Dialect, Exchange, Fault, Looked, Refusal, Route
from pollux_like.testing.script import Answer, answer

_SECRET = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie")


@dataclass(slots=True)
class App:
    """Serves the dialects. `transport` finds the connection of a request, to break it."""

    dialects: tuple[Dialect, ...]
    ledger: Ledger
    queue: ScriptQueue
    transport: Callable[[Any], asyncio.Transport | None]
    closed_early: int = field(default=0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        raw = await request.body()
        path = request.url.path.rstrip("/")
        headers, query, body = dict(request.headers.items()), dict(request.query_params), _object(raw)
        found = self._found(path) if request.method == "POST" else None
        if found is None:
            exchange = Exchange(path, headers, query, body or {}, method=request.method)
            await _send_json(send, *self._looked_up(exchange))
            return
        dialect, route = found
        masked = {name: "***" if name in _SECRET else value for name, value in headers.items()}
        exchange = Exchange(path, headers, query, body or {}, route)
        seen = Recorded(dialect.name, request.method, path, query, masked, body or {}, raw)
        place = self.queue.record(seen)
        if body is None:
            refusal: Refusal | None = dialect.error(Fault(400, "The request body is not a valid JSON object."))
        else:
            refusal = _checked(dialect, exchange)
        delivery, more = Delivery(()), {}
        if refusal is None:
            refusal, delivery = await self._play(seen, exchange, dialect)
        status = 200 if refusal is None else refusal.status
        if refusal is not None:
            delivery, more = Delivery((dumps(refusal.body).encode("utf-8", "replace"),)), dict(refusal.headers)
        self.queue.answered(place, None if delivery.ending == "drop" else status)
        await self._send(scope, receive, send, status, {**dialect.headers(), **more}, delivery)

    async def _play(self, seen: Recorded, exchange: Exchange, dialect: Dialect) -> tuple[Refusal | None, Delivery]:
        self.ledger.begin()
        turn = self.queue.next(seen)
        made: Answer
        if turn is None:
            made = answer(f"You said: {dialect.last_text(exchange)}")
        elif isinstance(turn.source, Refusal):
            return turn.source, Delivery(())
        elif isinstance(turn.source, Fault):
            return dialect.error(turn.source), Delivery(())
        elif callable(turn.source):
            try:
                made = await to_thread.run_sync(turn.source, seen)
            except Exception as error:  # noqa: BLE001  # the test's own code; it is raised again when the simulator stops
                self.queue.failed(error)
                text = f"The scripted function raised {type(error).__name__}."
                return Refusal(500, dialect.error(Fault(500, text)).body, (("x-should-retry", "false"),)), Delivery(())
        else:
            made = turn.source
        draft = dialect.draft(exchange, made)
        events = dialect.stream(draft) if exchange.streaming else None
        body = None if exchange.streaming else dialect.render(draft)
        return None, deliver(body, events, turn.how if turn else CALM, dialect)

    async def _send(
        self, scope: Scope, receive: Receive, send: Send, status: int, headers: dict[str, str], delivery: Delivery
    ) -> None:
        if delivery.ending == "drop":
            await self._break(scope, receive)
            return
        plain = len(delivery.chunks) == 1 and delivery.json and delivery.ending == "end"
        kind = "application/json" if delivery.json else "text/event-stream; charset=utf-8"
        pairs = [("content-type", kind), ("date", time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()))]
        if plain:
            pairs.append(("content-length", str(len(delivery.chunks[0]))))
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in [*pairs, *headers.items()]]
        gone = asyncio.create_task(_disconnected(receive))
        try:
            if delivery.json and delivery.delay_s:
                await asyncio.wait([gone], timeout=delivery.delay_s)
            if not gone.done():
                await send({"type": "http.response.start", "status": status, "headers": raw})
            for chunk in delivery.chunks:
                await asyncio.wait([gone], timeout=delivery.delay_s)
                if gone.done():
                    self.closed_early += 1
                    return
                await send({"type": "http.response.body", "body": chunk, "more_body": not plain})
            if delivery.ending == "cut":
                await self._break(scope, receive, gone)
            elif not plain:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()

    async def _break(self, scope: Scope, receive: Receive, gone: asyncio.Task[None] | None = None) -> None:
        transport = self.transport(scope.get("client"))
        if transport is not None:
            transport.close()
        await (gone if gone is not None else _disconnected(receive))

    def _found(self, path: str) -> tuple[Dialect, Route] | None:
        """The dialect that answers a turn at this path, and what the path says."""
        for dialect in self.dialects:
            route = dialect.route(path)
            if route is not None:
                return dialect, route
        return None

    def _looked_up(self, exchange: Exchange) -> Looked:
        for dialect in self.dialects:
            looked = dialect.look_up(exchange)
            if looked is not None:
                return looked
        error = {"message": f"Invalid URL ({exchange.method} {exchange.path})", "type": "invalid_request_error"}
        return 404, {"error": {**error, "param": None, "code": None}}


def _checked(dialect: Dialect, exchange: Exchange) -> Refusal | None:
    """The dialect's verdict. The rules read a request as if its values had the documented types."""
    try:
        return dialect.check(exchange)
    except (AttributeError, KeyError, TypeError):
        return dialect.error(Fault(400, "The request holds a value of the wrong type."))


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _refused(word: str) -> NoReturn:
    """NaN and the infinities are no JSON."""
    raise ValueError(word)


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _refused(text)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _send_json(send: Send, status: int, body: dict[str, Any]) -> None:
    raw = dumps(body).encode("utf-8", "replace")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": raw, "more_body": False})
