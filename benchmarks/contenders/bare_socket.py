"""A bare socket: the same JSON over asyncio's streams, which shows what the server and the loop cost by themselves."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

from benchmarks import wires
from benchmarks.work import Mark, address


class Client:
    """Connections, kept while they are idle."""

    def __init__(self, wire: str, url: str) -> None:
        self._wire, self._url = wire, address(wire, url)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def _ask(self, history: list[Any]) -> dict[str, Any]:
        parts = urlsplit(self._url)
        body = json.dumps(wires.body(self._wire, history)).encode()
        head = f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: {len(body)}\r\n\r\n"
        pair = self._idle.pop() if self._idle else await asyncio.open_connection(parts.hostname, parts.port)
        reader, writer = pair
        writer.write(head.encode() + body)
        answered = await reader.readuntil(b"\r\n\r\n")
        length = int(answered.partition(b"content-length: ")[2].split(b"\r\n")[0])
        answer: dict[str, Any] = json.loads(await reader.readexactly(length))
        self._idle.append(pair)
        return answer

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return wires.text_of(self._wire, await self._ask(wires.asked(self._wire)))

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        history = wires.asked(self._wire)
        answer: dict[str, Any] = {}
        for _ in range(turns):
            answer = await self._ask(history)
            going_on = wires.grown(self._wire, history, answer)
            mark()
            if not going_on:
                break
        return wires.text_of(self._wire, answer)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        for _, writer in self._idle:
            writer.close()


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, url)
