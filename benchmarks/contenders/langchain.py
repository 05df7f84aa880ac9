"""langchain: the vendor's chat model with the tool bound, its messages kept in a list."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

from benchmarks import wires
from benchmarks.work import INSTRUCTIONS, KEY, MAX_TOKENS, MODELS, QUESTION, RESULT, Mark


class Client:
    """One model at one address."""

    def __init__(self, model: Any) -> None:
        self._model = model.bind_tools(wires.body("chat", [])["tools"])

    def _asked(self) -> list[Any]:
        return [SystemMessage(INSTRUCTIONS), HumanMessage(QUESTION)]

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return str((await self._model.ainvoke(self._asked())).text)

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        messages, text = self._asked(), ""
        for _ in range(turns):
            answer = await self._model.ainvoke(messages)
            text = str(answer.text)
            messages += [answer, *(ToolMessage(RESULT, tool_call_id=call["id"]) for call in answer.tool_calls)]
            mark()
            if not answer.tool_calls:
                break
        return text

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        said: list[str] = []
        async for chunk in self._model.astream(self._asked()):
            piece = str(chunk.text)
            if piece:
                if not said:
                    mark()
                said.append(piece)
        return "".join(said)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""


async def connect(wire: str, url: str) -> Client:
    """A client for one wire at one address."""
    if wire == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return Client(ChatAnthropic(model=MODELS[wire], api_key=KEY, base_url=url, max_tokens=MAX_TOKENS))
    from langchain_openai import ChatOpenAI

    responses = wire == "responses"
    more = {"output_version": "responses/v1", "store": False} if responses else {}
    model = ChatOpenAI(model=MODELS[wire], api_key=KEY, base_url=f"{url}/v1", use_responses_api=responses, **more)
    return Client(model)
