"""The vendors' own SDKs by their typed calls, the history kept as their documentation does: answers go back as they came."""

from __future__ import annotations

from typing import Any

from benchmarks import wires
from benchmarks.work import INSTRUCTIONS, KEY, MAX_TOKENS, QUESTION, RESULT, TOOL, Mark


class Client:
    """The loop that the wires share; `_ask` is one typed call, `_grow` adds its answer and says whether it goes on."""

    def __init__(self, wire: str) -> None:
        head = wires.body(wire, [])
        self._wire, self._tools = wire, head["tools"]

    def _asked(self) -> list[Any]:
        return [{"role": "user", "content": QUESTION}]

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        raise NotImplementedError

    def _grow(self, history: list[Any], answer: Any) -> bool:
        raise NotImplementedError

    def _text(self, answer: Any) -> str:
        raise NotImplementedError

    def _piece(self, event: Any) -> str:
        raise NotImplementedError

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return self._text(await self._ask(self._asked()))

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        history, answer = self._asked(), None
        for _ in range(turns):
            answer = await self._ask(history)
            going_on = self._grow(history, answer)
            mark()
            if not going_on:
                break
        return self._text(answer)

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        said: list[str] = []
        async for event in await self._ask(self._asked(), stream=True):
            piece = self._piece(event)
            if piece:
                if not said:
                    mark()
                said.append(piece)
        return "".join(said)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self.client.close()

    client: Any


def openai_client(url: str, **options: Any) -> Any:
    """An OpenAI client as an application makes it."""
    import openai

    return openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", **options)


class Responses(Client):
    """`client.responses.create`."""

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        return await self.client.responses.create(
            model="gpt-5.2", instructions=INSTRUCTIONS, input=history, tools=self._tools, store=False, stream=stream
        )

    def _grow(self, history: list[Any], answer: Any) -> bool:
        history += answer.output
        ids = [item.call_id for item in answer.output if item.type == "function_call"]
        history += [{"type": "function_call_output", "call_id": one, "output": RESULT} for one in ids]
        return bool(ids)

    def _text(self, answer: Any) -> str:
        return str(answer.output_text)

    def _piece(self, event: Any) -> str:
        return event.delta if event.type == "response.output_text.delta" else ""


class Chat(Client):
    """`client.chat.completions.create`."""

    def _asked(self) -> list[Any]:
        return [{"role": "developer", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        more = {"stream_options": {"include_usage": True}} if stream else {}
        return await self.client.chat.completions.create(
            model="gpt-5.2", messages=history, tools=self._tools, stream=stream, **more
        )

    def _grow(self, history: list[Any], answer: Any) -> bool:
        message = answer.choices[0].message
        history.append(message)
        calls = message.tool_calls or []
        history += [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]
        return bool(calls)

    def _text(self, answer: Any) -> str:
        return answer.choices[0].message.content or ""

    def _piece(self, event: Any) -> str:
        return (event.choices[0].delta.content or "") if event.choices else ""


class Anthropic(Client):
    """`client.messages.create`."""

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        return await self.client.messages.create(
            model="claude-opus-4-6", max_tokens=MAX_TOKENS, system=INSTRUCTIONS, messages=history, tools=self._tools,
            stream=stream,
        )  # fmt: skip

    def _grow(self, history: list[Any], answer: Any) -> bool:
        history.append({"role": "assistant", "content": answer.content})
        ids = [block.id for block in answer.content if block.type == "tool_use"]
        if ids:
            results = [{"type": "tool_result", "tool_use_id": one, "content": RESULT} for one in ids]
            history.append({"role": "user", "content": results})
        return bool(ids)

    def _text(self, answer: Any) -> str:
        return "".join(block.text for block in answer.content if block.type == "text")

    def _piece(self, event: Any) -> str:
        return event.delta.text if event.type == "content_block_delta" else ""


class Gemini(Client):
    """`client.aio.models.generate_content`."""

    def __init__(self, wire: str, url: str) -> None:
        import httpx2
        from google import genai
        from google.genai import types

        super().__init__(wire)
        self._types = types
        # Named, since the SDK would take aiohttp where that is installed: all raw SDKs are measured on httpx2.
        options = types.HttpOptions(base_url=url, httpx_async_client=httpx2.AsyncClient())
        self.client: Any = genai.Client(vertexai=False, api_key=KEY, http_options=options)
        declared = self._tools[0]["functionDeclarations"][0]
        function = types.FunctionDeclaration(
            name=TOOL, description=declared["description"], parameters_json_schema=declared["parametersJsonSchema"]
        )
        self._config = types.GenerateContentConfig(
            system_instruction=INSTRUCTIONS,
            tools=[types.Tool(function_declarations=[function])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    def _asked(self) -> list[Any]:
        return [self._types.Content(role="user", parts=[self._types.Part(text=QUESTION)])]

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        models = self.client.aio.models
        verb = models.generate_content_stream if stream else models.generate_content
        return await verb(model="gemini-2.5-flash", contents=history, config=self._config)

    def _grow(self, history: list[Any], answer: Any) -> bool:
        types = self._types
        history.append(answer.candidates[0].content)
        calls = answer.function_calls or []
        if calls:
            results = [types.FunctionResponse(id=c.id, name=c.name, response={"output": RESULT}) for c in calls]
            history.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in results]))
        return bool(calls)

    def _text(self, answer: Any) -> str:
        return answer.text or ""

    def _piece(self, event: Any) -> str:
        return event.text or ""

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
        await self.client.aio.aclose()


async def connect(wire: str, url: str, client: Any = None) -> Client:
    """A client for one wire at one address, over the given SDK client or over one as the SDK makes it."""
    if wire == "gemini":
        return Gemini(wire, url)
    made = {"responses": Responses, "chat": Chat, "anthropic": Anthropic}[wire](wire)
    if client is None and wire == "anthropic":
        import anthropic

        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url)
    made.client = client or openai_client(url)
    return made
