"""This library with a Session, which `interact()` by itself may not be slower than."""

from __future__ import annotations

from benchmarks.contenders import ours
from pollux_like import Config, Input, Output, Session


class Client(ours.Client):
    """`session.interact()`."""

    def __init__(self, wire: str, config: Config) -> None:
        super().__init__(wire, config)
        self._session = Session(config)

    async def interact(self, input: Input) -> Output:
        """One turn."""
        return await self._session.interact(ours.ENVIRONMENT, input, **self._arguments)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self._session.aclose()


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, ours.config(wire, url))
