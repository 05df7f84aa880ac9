"""What litellm and any-llm share: one function in the shape of OpenAI's chat completions for every vendor."""

from __future__ import annotations

from typing import Any

from benchmarks.work import INSTRUCTIONS, QUESTION, RESULT, Mark


class Client:
    """The loop over `complete`, which gives a completion or, streamed, an async iterator of its chunks."""

    def _asked(self) -> list[Any]:
        return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]

    async def complete(self, messages: list[Any], *, stream: bool = False) -> Any:
        """One request."""
        raise NotImplementedError

    async def turn(self) -> str:
        """See `benchmarks.work.Client`."""
        return (await self.complete(self._asked())).choices[0].message.content or ""

    async def loop(self, turns: int, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        messages, text = self._asked(), ""
        for _ in range(turns):
            message = (await self.complete(messages)).choices[0].message
            calls, text = message.tool_calls or [], message.content or ""
            messages.append(message)
            messages += [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]
            mark()
            if not calls:
                break
        return text

    async def stream(self, mark: Mark) -> str:
        """See `benchmarks.work.Client`."""
        said: list[str] = []
        async for chunk in await self.complete(self._asked(), stream=True):
            piece = (chunk.choices[0].delta.content or "") if chunk.choices else ""
            if piece:
                if not said:
                    mark()
                said.append(piece)
        return "".join(said)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""
