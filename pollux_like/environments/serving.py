"""A uvicorn server on a socket that is taken first, in a thread or in the foreground."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from pollux_like.errors import ConfigurationError

log = logging.getLogger("pollux_like.environments")

HEADERS = 256 * 1024
"""Most bytes of a request's headers; `X-Secrets` may be long."""
HEAD_S = 30.0
"""Seconds after which a connection is closed that brings no request; at most twice as many."""


class _Protocol(H11Protocol):
    """Without it a client that never ends its headers is waited for without end."""

    _look: asyncio.TimerHandle | None = None
    _idle: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(HEAD_S, self._looked)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _looked(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # before the first request there is none
        waiting = cycle is None or cycle.response_complete
        if waiting and cycle is self._idle:
            self.transport.close()
            return
        self._idle = cycle if waiting else self
        self._look = self.loop.call_later(HEAD_S, self._looked)


class Serving:
    """`start` and `stop` for a thread of its own, `run` for the foreground."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        # asyncio sets TCP_NODELAY only where the protocol is named, and without it every reply waits 40 ms for an ACK.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise ConfigurationError(
                f"port {port} of {host} cannot be had: {error.strerror}", hint="Take another port; 0 takes a free one"
            ) from None
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            app, http=_Protocol, ws="none", lifespan="on", log_config=None, log_level="warning", access_log=False,
            server_header=False, backlog=4096, timeout_graceful_shutdown=1, timeout_keep_alive=30,
            h11_max_incomplete_event_size=HEADERS,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until interrupted."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread; returns when connections are accepted."""
        self._thread = threading.Thread(target=self.run, name="pollux-like-environments", daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise ConfigurationError("the server did not start", hint="Look at the output of its thread")
            self._thread.join(0.005)

    def stop(self, within_s: float) -> None:
        """End the thread; open sessions are torn down first. One that does not end in time is left behind."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join(within_s)
            if self._thread.is_alive():
                log.warning("the server's thread does not end: code of an environment does not let itself be cancelled")
            self._thread = None
