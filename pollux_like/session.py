"""Session: one client and one concurrency limit for many conversations, closed on exit. It holds no conversation."""

from __future__ import annotations

from types import TracebackType
from typing import Unpack

import anyio

from pollux_like import checks, registry
from pollux_like.config import Config
from pollux_like.counting import count
from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError
from pollux_like.input import Input
from pollux_like.output import Output
from pollux_like.registry import Connection
from pollux_like.settings import Arguments
from pollux_like.turn import Stream, events, turn


class Session:
    """`async with Session(config) as session: await session.interact(environment, input, ...)`.

    The client is made at the first turn and closed on exit. Raises ConfigurationError when used after that.
    """

    def __init__(self, config: Config) -> None:
        if not isinstance(config, Config):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"config is {checks.kind(config)}", hint="Pass Config(...)")
        self._config = config
        self._connection: Connection | None = None
        self._lock = anyio.Lock()
        self._closed = False

    @property
    def config(self) -> Config:
        """The config of every turn here."""
        return self._config

    def __repr__(self) -> str:
        return f"Session({self._config!r}{', closed' if self._closed else ''})"

    async def interact(self, environment: Environment, input: Input, **arguments: Unpack[Arguments]) -> Output:
        """One turn; see `pollux_like.interact`."""
        return await turn(environment, input, self._config, self._connect, dict(arguments))

    async def count_tokens(self, environment: Environment, input: Input, **arguments: Unpack[Arguments]) -> int:
        """Input tokens of a turn; see `pollux_like.count_tokens`."""
        return await count(environment, input, self._config, self._connect, dict(arguments))

    def stream(self, environment: Environment, input: Input, **arguments: Unpack[Arguments]) -> Stream:
        """One turn as events; see `pollux_like.stream`."""
        return Stream(events(environment, input, self._config, self._connect, dict(arguments)))

    async def aclose(self) -> None:
        """Close the client. A client that the application gave in Config stays open."""
        self._closed = True
        async with self._lock:
            if self._connection is not None:
                connection, self._connection = self._connection, None
                await connection.adapter.aclose()

    async def _connect(self, config: Config) -> Connection:
        async with self._lock:
            if self._closed:
                raise ConfigurationError("the session is closed", hint="Open a new Session")
            if self._connection is None:
                self._connection = await registry.connect(config)
            return self._connection

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
