"""pydantic-ai: an agent and its run."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, Tool, UsageLimits

from benchmarks.work import ABOUT, INSTRUCTIONS, KEY, MAX_TOKENS, MODELS, QUESTION, RESULT, SCHEMA, TOOL, Mark


def nothing() -> None:
    """No mark."""


def model_of(wire: str, url: str) -> Any:
    """The model class of a wire, at an address."""
    match wire:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(MODELS[wire], provider=AnthropicProvider(api_key=KEY, base_url=url))
        case "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(MODELS[wire], provider=GoogleProvider(api_key=KEY, base_url=url))
        case _:
            from pydantic_ai.models import openai
            from pydantic_ai.providers.openai import OpenAIProvider

            kind: Any = openai.OpenAIResponsesModel if wire == "responses" else openai.OpenAIChatModel
            return kind(MODELS[wire], provider=OpenAIProvider(api_key=KEY, base_url=f"{url}/v1"))


class Client:
    """One agent at one address."""

    def __init__(self, wire: str, url: str) -> None:
        self._mark: Mark = nothing

        async def get_weather(city: str) -> str:
            self._mark()
            return RESULT

        tool = Tool.from_schema(get_weather, TOOL, ABOUT, SCHEMA)
        settings: Any = {"max_tokens": MAX_TOKENS}
        self._agent = Agent(model_of(wire, url), instructions=INSTRUCTIONS, tools=[tool], model_settings=settings)

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return (await self._agent.run(QUESTION)).output

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`. The tool marks the turns."""
        self._mark = mark
        found = await self._agent.run(QUESTION, usage_limits=UsageLimits(request_limit=turns))
        mark()
        return found.output

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`. The text is the run's output."""
        seen = False
        async with self._agent.run_stream(QUESTION) as running:
            async for _ in running.stream_text(delta=True, debounce_by=None):
                if not seen:
                    seen = True
                    mark()
            return await running.get_output()

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, url)
