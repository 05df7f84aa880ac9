"""openai-agents: an agent and its runner, tracing off."""

from __future__ import annotations

from typing import Any

import agents

from benchmarks.contenders import raw_sdk
from benchmarks.work import ABOUT, INSTRUCTIONS, MODELS, QUESTION, RESULT, SCHEMA, TOOL, Mark


def nothing() -> None:
    """No mark."""


class Client:
    """One agent at one address."""

    def __init__(self, wire: str, url: str) -> None:
        kind = agents.OpenAIResponsesModel if wire == "responses" else agents.OpenAIChatCompletionsModel
        self._client = raw_sdk.openai_client(url)
        self._model = kind(MODELS[wire], self._client)

    def _agent(self, mark: Mark) -> Any:
        async def invoke(context: Any, arguments: str) -> str:
            mark()
            return RESULT

        tool = agents.FunctionTool(TOOL, ABOUT, SCHEMA, invoke)
        settings = agents.ModelSettings(store=False, include_usage=True)
        return agents.Agent(
            "agent", instructions=INSTRUCTIONS, model=self._model, tools=[tool], model_settings=settings
        )

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return str((await agents.Runner.run(self._agent(nothing), QUESTION)).final_output)

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`. The tool marks the turns."""
        found = await agents.Runner.run(self._agent(mark), QUESTION, max_turns=turns)
        mark()
        return str(found.final_output)

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`. The text is the run's final output."""
        running, seen = agents.Runner.run_streamed(self._agent(nothing), QUESTION), False
        async for event in running.stream_events():
            if not seen and event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                seen = True
                mark()
        return str(running.final_output)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self._client.close()


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    return Client(wire, url)
