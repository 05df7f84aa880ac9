"""litellm: `acompletion`, and on the Responses wire `aresponses`."""

from __future__ import annotations

from typing import Any

import litellm

from benchmarks import wires
from benchmarks.contenders import completions, raw_sdk
from benchmarks.work import INSTRUCTIONS, KEY, MAX_TOKENS, MODELS

MODEL = {"chat": f"openai/{MODELS['chat']}", "responses": f"openai/{MODELS['responses']}",
         "anthropic": f"anthropic/{MODELS['anthropic']}", "gemini": f"gemini/{MODELS['gemini']}"}  # fmt: skip


class Completions(completions.Client):
    """One address."""

    def __init__(self, wire: str, base: str) -> None:
        self._arguments = {
            "model": MODEL[wire],
            "api_base": base,
            "api_key": KEY,
            "tools": wires.body("chat", [])["tools"],
        }
        if wire == "anthropic":
            self._arguments["max_tokens"] = MAX_TOKENS

    async def complete(self, messages: list[Any], *, stream: bool = False) -> Any:
        """One request."""
        return await litellm.acompletion(messages=messages, stream=stream, **self._arguments)


class Responses(raw_sdk.Responses):
    """The same loop as the raw SDK's over `aresponses`."""

    def __init__(self, base: str) -> None:
        super().__init__("responses")
        self._base = base

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        return await litellm.aresponses(
            model=MODEL["responses"], instructions=INSTRUCTIONS, input=history, tools=self._tools, store=False,
            stream=stream, api_base=self._base, api_key=KEY,
        )  # fmt: skip

    def _text(self, answer: Any) -> str:
        return "".join(part.text for item in answer.output if item.type == "message" for part in item.content)

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""


async def connect(wire: str, url: str) -> Any:
    """A client for one wire at one address."""
    if wire == "responses":
        return Responses(f"{url}/v1")
    tail = {"chat": "/v1", "anthropic": "", "gemini": f"/v1beta/models/{MODELS['gemini']}"}[wire]
    return Completions(wire, url + tail)
