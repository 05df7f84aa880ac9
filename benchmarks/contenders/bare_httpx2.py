"""Bare httpx2: the same JSON, encoded anew for every turn and posted with one pooled client, decoded with `json`."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from benchmarks import wires
from benchmarks.work import KEY, Mark, address


class Client:
    """One pooled client."""

    def __init__(self, wire: str, url: str) -> None:
        self._wire, self._url = wire, address(wire, url)
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        limits = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100)  # as the SDKs have them
        self._http = httpx2.AsyncClient(headers=headers, limits=limits, timeout=60)

    async def _ask(self, history: list[Any]) -> dict[str, Any]:
        response = await self._http.post(self._url, content=json.dumps(wires.body(self._wire, history)).encode())
        response.raise_for_status()
        answer: dict[str, Any] = json.loads(response.content)
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

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        body = json.dumps(wires.body(self._wire, wires.asked(self._wire), streaming=True)).encode()
        url = self._url.replace(":generateContent", ":streamGenerateContent?alt=sse")
        said: list[str] = []
        async with self._http.stream("POST", url, content=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if piece := wires.text_in(self._wire, line):
                    if not said:
                        mark()
                    said.append(piece)
        return "".join(said)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self._http.aclose()


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, url)
