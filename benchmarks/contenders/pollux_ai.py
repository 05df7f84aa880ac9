"""pollux-ai: a Session. It takes the vendors' addresses from the SDKs' own variables."""

from __future__ import annotations

import os

from pollux import Config, Environment, Input, Output, Session, ToolDeclaration, ToolResult

from benchmarks.work import ABOUT, INSTRUCTIONS, KEY, MAX_TOKENS, MODELS, QUESTION, RESULT, SCHEMA, TOOL, Mark

ENVIRONMENT = Environment(instructions=INSTRUCTIONS, tools=[ToolDeclaration(TOOL, ABOUT, SCHEMA)])
ADDRESS = {"responses": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "gemini": "GOOGLE_GEMINI_BASE_URL"}


class Client:
    """One session at one address."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def _interact(self, input: Input) -> Output:
        return await self._session.interact(ENVIRONMENT, input, max_tokens=MAX_TOKENS)

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return (await self._interact(Input(QUESTION, history=[]))).text

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        output = await self._interact(Input(QUESTION, history=[]))
        mark()
        for _ in range(turns - 1):
            if not output.tool_calls:
                break
            results = [ToolResult(call.id, RESULT) for call in output.tool_calls]
            output = await self._interact(Input(continuation=output.continuation, tool_results=results))
            mark()
        return output.text

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`. The text is the final output's."""
        seen, text = False, ""
        asked = Input(QUESTION, history=[])
        async for event in self._session.stream(ENVIRONMENT, asked, max_tokens=MAX_TOKENS):
            if event.type == "text_delta" and not seen:
                seen = True
                mark()
            elif event.output is not None:
                text = event.output.text
        return text

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self._session.aclose()


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address. The SDK's client is made at the first turn, so that is taken here."""
    os.environ[ADDRESS[wire]] = f"{url}/v1" if wire == "responses" else url
    provider = "openai" if wire == "responses" else wire
    session = Session(Config(provider, MODELS[wire], api_key=KEY, request_concurrency=1_000))
    client = Client(session)
    await (client.stream(lambda: None) if "/stream" in url else client.turn())
    return client
