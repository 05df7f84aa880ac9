"""A uvicorn server on a socket that is taken first, in a thread or in the foreground."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from pollux_like.errors import ConfigurationError

HEADERS = 256 * 1024
"""Most bytes of a request's headers; `X-Secrets` may be long."""


class Serving:
    """`start` and `stop` for a thread of its own, `run` for the foreground."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        # asyncio sets TCP_NODELAY only where the protocol is named, and without it every reply waits 40 ms for an ACK.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError:
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            app, http="h11", ws="none", lifespan="on", log_config=None, log_level="warning", access_log=False,
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

    def stop(self) -> None:
        """End the thread; open sessions are torn down first."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            self._thread = None
