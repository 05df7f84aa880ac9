"""The simulator as a program: a loopback server in a thread of its own, and what a test says to it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from email.utils import format_datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import uvicorn
from anyio import to_thread
from uvicorn.protocols.http.h11_impl import H11Protocol

from pollux_like.errors import ConfigurationError
from pollux_like.simulator.adopt import adopt_exchange
from pollux_like.simulator.app import App
from pollux_like.simulator.dialects import dialects
from pollux_like.simulator.disturb import Disturbance
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.options import Options
from pollux_like.simulator.script_queue import Recorded, ScriptQueue, Turn
from pollux_like.simulator.wire import Fault
from pollux_like.testing.script import Answer, Part, answer

Scripted: TypeAlias = Part | str | Answer | Callable[[Recorded], Answer]


class Simulator:
    """A strict stand-in for the vendors' APIs on 127.0.0.1.

        with Simulator() as sim:
            sim.reply(say("Hello"))
            client = OpenAI(base_url=sim.base_url("openai"), api_key="sim-key")

    Use it with `with`, with `async with`, or by `start` and `stop`. `strict=False` answers anything that is JSON.
    `models`: the names that exist (None: every name). `api_key`: the only accepted key (None: any key). `key`: 32
    secret bytes under which signatures are made; two simulators with the same key know each other's. `seed` makes
    every id and signature the same in each run, for golden tests. Further switches
    are those of `options.Options`. Raises ConfigurationError for options that make no sense, OSError where the port
    is taken.
    """

    def __init__(
        self,
        *,
        strict: bool = True,
        models: Iterable[str] | None = None,
        api_key: str | None = None,
        tools_required: bool = True,
        binding: Literal["error", "drop_block"] = "error",
        max_input_tokens: int | None = None,
        shared_signatures: bool = True,
        key: bytes | None = None,
        seed: int | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        if binding not in ("error", "drop_block"):
            raise ConfigurationError(f"binding is {binding!r}", hint='Use "error" or "drop_block"')
        if key is not None and len(key) < 16:
            raise ConfigurationError("key is shorter than 16 bytes", hint="Give 32 random bytes, or leave it out")
        named = None if models is None else frozenset(models)
        self.options = Options(strict, named, api_key, tools_required, binding, max_input_tokens, shared_signatures)
        if seed is not None and key is None:
            key = seed.to_bytes(32, "big", signed=True)
        self.ledger = Ledger(seed=seed) if key is None else Ledger(key, seed)
        self._queue = ScriptQueue()
        self._host, self._wanted_port = host, port
        self._port: int | None = None
        self._transports: dict[Any, asyncio.Transport] = {}
        self._spoken = dialects(self.ledger, self.options)
        self._app = App(self._spoken, self.ledger, self._queue, self._transports.get)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Listen. Returns when the server accepts connections."""
        if self._thread is not None:
            raise ConfigurationError("the simulator is already running", hint="Call stop first")
        sock, server = self.listen()
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [sock]}, name="pollux-like-simulator", daemon=True
        )
        self._thread.start()
        while not server.started:
            if not self._thread.is_alive():
                raise ConfigurationError("the simulator did not start", hint="Look at the output of its thread")
            self._thread.join(0.005)
        return self

    def listen(self) -> tuple[socket.socket, uvicorn.Server]:
        """Take the port; the caller runs the server on the socket."""
        # asyncio sets TCP_NODELAY only where the protocol is named, and without it every reply waits 40 ms for an ACK.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self._host, self._wanted_port))
        except OSError:
            sock.close()
            raise
        self._port = int(sock.getsockname()[1])
        transports = self._transports

        class Protocol(H11Protocol):
            """Keeps each connection at hand, so that a fault can break it."""

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                transports[transport.get_extra_info("peername")] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                transports.pop(self.transport.get_extra_info("peername"), None)
                super().connection_lost(exc)

        config = uvicorn.Config(
            self._app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=30,
        )
        self._server = uvicorn.Server(config)
        return sock, self._server

    def stop(self) -> None:
        """Close every connection and end the thread.

        An exception that a scripted function raised is raised here, so that it is not lost.
        """
        server, thread = self._server, self._thread
        if server is not None and thread is not None:
            server.should_exit = True
            thread.join()
        self._server = self._thread = self._port = None
        failures = self._queue.failures()
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close(error)

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await to_thread.run_sync(self._close, error)

    def _close(self, error: BaseException | None) -> None:
        try:
            self.stop()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"A scripted function raised {failure!r}")

    def reply(
        self,
        *parts: Scripted,
        times: int = 1,
        when: Callable[[Recorded], bool] | None = None,
    ) -> None:
        """Queue one answer: its parts, a whole `Answer`, or a function of the recorded request that returns one.

        Answers are served in order; `when` keeps one for the first request that it accepts. A refused request takes
        none. With an empty queue the last user text is echoed.
        """
        self._queue.put(Turn(_source(parts), when=when), times)

    def fail(
        self,
        status: int,
        *,
        message: str | None = None,
        code: str | None = None,
        type: str | None = None,
        retry_after: float | datetime | None = None,
        times: int = 1,
        when: Callable[[Recorded], bool] | None = None,
    ) -> None:
        """Queue an error response in the vendor's own envelope.

        `retry_after` is seconds, or a moment that is sent as an HTTP date. Raises ConfigurationError for a status
        that is no error.
        """
        if not 400 <= status <= 599:
            raise ConfigurationError(f"status {status} is no error", hint="Use one from 400 to 599")
        wait: str | None = None
        if isinstance(retry_after, datetime):
            wait = format_datetime(retry_after.astimezone(UTC), usegmt=True)
        elif retry_after is not None:
            wait = f"{retry_after:g}"
        self._queue.put(Turn(Fault(status, message, code, type, retry_after=wait), when=when), times)

    def fault(
        self,
        *parts: Scripted,
        cut_after: int | None = None,
        cut_after_bytes: int | None = None,
        end_after: int | None = None,
        garble_after: int | None = None,
        error_after: int | None = None,
        error_body: bool = False,
        double_finish: bool = False,
        drop: bool = False,
        delay_s: float = 0.0,
        error: Fault | None = None,
        times: int = 1,
        when: Callable[[Recorded], bool] | None = None,
    ) -> None:
        """Queue an answer that goes wrong on its way; `Disturbance` says what each word means.

        At most one disturbance, and `delay_s` beside it. `error` is what `error_after` and `error_body` send (default:
        status 500's). Raises ConfigurationError otherwise.
        """
        how = Disturbance(
            cut_after,
            cut_after_bytes,
            end_after,
            garble_after,
            error_after,
            error_body,
            double_finish,
            drop,
            delay_s,
            error or Fault(500),
        )
        if len(how.named) > 1:
            raise ConfigurationError(f"{' and '.join(how.named)} at once", hint="A reply can go wrong in one way only")
        self._queue.put(Turn(_source(parts), how, when=when), times)

    def adopt(self, request: dict[str, Any], response: dict[str, Any]) -> None:
        """Take what another server issued in this exchange as issued here: signatures, blobs, item and response ids.

        `request` is the body that was sent, `response` the whole body that came back.
        """
        adopt_exchange(self.ledger, request, response)

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far, in order of arrival."""
        return self._queue.requests()

    @property
    def left(self) -> int:
        """Scripted turns that no request has taken yet."""
        return self._queue.left()

    @property
    def closed_early(self) -> int:
        """How often a client went away before its reply ended."""
        return self._app.closed_early

    def clear(self) -> None:
        """Forget the queue and the recorded requests; what was issued stays valid."""
        self._queue.clear()
        self._app.closed_early = 0

    def reset(self) -> None:
        """As if newly started, on the same port: `clear`, and nothing that was issued is known any more.

        For fixtures: one server per test run, one reset per test. No request may be under way.
        """
        self.clear()
        self.ledger.forget()

    def base_url(self, dialect: str) -> str:
        """The base URL for an SDK, by the dialect's name: "openai", "chat" (chat completions), "anthropic", ..."""
        if self._port is None:
            raise ConfigurationError("the simulator is not running", hint="Enter it with `with`, or call start")
        bases = {one.name: one.base for one in self._spoken}
        if dialect not in bases:
            raise ConfigurationError(f"no dialect {dialect!r}", hint=f"Use one of {', '.join(bases)}")
        return f"http://{self._host}:{self._port}{bases[dialect]}"

    def base_urls(self) -> dict[str, str]:
        """Every dialect's base URL, by its name."""
        return {dialect.name: self.base_url(dialect.name) for dialect in self._spoken}

    def environ(self) -> dict[str, str]:
        """Environment variables that point the vendors' SDKs here."""
        key = self.options.api_key or "sim-key"
        found: dict[str, str] = {}
        for dialect in self._spoken:
            if dialect.variables is not None:
                found |= dict(zip(dialect.variables, (self.base_url(dialect.name), key), strict=True))
        return found


def _source(parts: tuple[Scripted, ...]) -> Answer | Callable[[Recorded], Answer]:
    pieces: list[Part | str] = []
    for part in parts:
        if isinstance(part, Part | str):
            pieces.append(part)
        elif len(parts) == 1:
            return part
        else:
            raise ConfigurationError("a whole answer stands beside other parts", hint="One call queues one answer")
    return answer(*pieces)


def serve(
    host: str = "127.0.0.1", port: int = 8399, *, ready: Callable[[Simulator], None] | None = None, **options: Any
) -> None:
    """Serve until interrupted. Options: `Simulator`'s.

    `ready` is called when the port is taken; without it, the environment lines for the vendors' SDKs are printed, and
    the base URLs of all dialects as comments. Raises ConfigurationError, and OSError where the port cannot be had.
    """
    simulator = Simulator(host=host, port=port, **options)
    sock, server = simulator.listen()
    (ready or _printed)(simulator)
    server.run(sockets=[sock])


def _printed(simulator: Simulator) -> None:
    for name, value in simulator.environ().items():
        print(f"export {name}={value}", flush=True)
    for dialect, address in simulator.base_urls().items():
        print(f"# {dialect}: {address}", flush=True)
