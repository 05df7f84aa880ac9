"""This library over clients made with the SDKs' own aiohttp option."""

from __future__ import annotations

from typing import Any

from benchmarks.contenders import ours, raw_sdk
from benchmarks.work import KEY


def client(wire: str, url: str) -> Any:
    """The SDK's client over aiohttp."""
    if wire == "anthropic":
        import anthropic

        return anthropic.AsyncAnthropic(api_key=KEY, base_url=url, http_client=anthropic.DefaultAioHttpClient())
    import openai

    return raw_sdk.openai_client(url, http_client=openai.DefaultAioHttpClient())


class Client(ours.Client):
    """The SDK's client is the application's own, so it closes it."""

    def __init__(self, wire: str, made: Any) -> None:
        super().__init__(wire, ours.config(wire, "", made))
        self._made = made

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self._made.close()


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, client(wire, url))
