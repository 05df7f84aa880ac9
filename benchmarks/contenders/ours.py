"""This library, by its public face: `interact` and `stream` as the first page of the README uses them."""

from __future__ import annotations

from typing import Any

import pollux_like
from benchmarks.work import ABOUT, INSTRUCTIONS, KEY, MAX_TOKENS, MODELS, QUESTION, RESULT, SCHEMA, TOOL, Mark
from pollux_like import Config, Environment, Input, Output, ToolDeclaration, ToolResult

ENVIRONMENT = Environment(instructions=INSTRUCTIONS, tools=[ToolDeclaration(TOOL, ABOUT, SCHEMA)])


def config(wire: str, url: str, client: Any = None) -> Config:
    """The config of a wire at an address."""
    provider = "openai" if wire in ("responses", "chat") else wire
    if client is not None:
        return Config(provider, MODELS[wire], client=client)
    base = f"{url}/v1" if provider == "openai" else url
    return Config(provider, MODELS[wire], api_key=KEY, base_url=base)


class Client:
    """`interact()` over the connection that the library keeps for the event loop."""

    def __init__(self, wire: str, config: Config) -> None:
        self._config = config
        self._arguments: dict[str, Any] = {}
        if wire == "chat":
            self._arguments["provider_options"] = {"openai": {"api": "chat"}}
        if wire == "anthropic":
            self._arguments["max_tokens"] = MAX_TOKENS

    async def interact(self, input: Input) -> Output:
        """One turn."""
        return await pollux_like.interact(ENVIRONMENT, input, self._config, **self._arguments)

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return (await self.interact(Input(QUESTION, history=[]))).text

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        output = await self.looped(turns, mark)
        return output.text

    async def looped(self, turns: int, mark: Mark) -> Output:
        """The loop's last output."""
        output = await self.interact(Input(QUESTION, history=[]))
        mark()
        for _ in range(turns - 1):
            if not output.tool_calls:
                break
            results = [ToolResult(call.id, RESULT) for call in output.tool_calls]
            output = await self.interact(Input(continuation=output.continuation, tool_results=results))
            mark()
        return output

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`. The text is the final Output's."""
        seen, text = False, ""
        asked = Input(QUESTION, history=[])
        async with pollux_like.stream(ENVIRONMENT, asked, self._config, **self._arguments) as events:
            async for event in events:
                if event.type == "text_delta" and not seen:
                    seen = True
                    mark()
                elif event.output is not None:
                    text = event.output.text
        return text

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`. The connection is closed with the event loop."""


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, config(wire, url))
