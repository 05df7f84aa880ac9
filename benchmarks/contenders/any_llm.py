"""any-llm: `acompletion`, and on the Responses wire `aresponses`."""

from __future__ import annotations

from typing import Any

from any_llm import AnyLLM

from benchmarks import wires
from benchmarks.contenders import completions, raw_sdk
from benchmarks.work import INSTRUCTIONS, KEY, MAX_TOKENS, MODELS


class Completions(completions.Client):
    """One vendor at one address."""

    def __init__(self, wire: str, vendor: AnyLLM) -> None:
        self._vendor = vendor
        self._arguments: dict[str, Any] = {"model": MODELS[wire], "tools": wires.body("chat", [])["tools"]}
        if wire == "anthropic":
            self._arguments["max_tokens"] = MAX_TOKENS

    async def complete(self, messages: list[Any], *, stream: bool = False) -> Any:
        """One request."""
        return await self._vendor.acompletion(messages=messages, stream=stream, **self._arguments)


class Responses(raw_sdk.Responses):
    """The same loop as the raw SDK's over `aresponses`."""

    def __init__(self, vendor: AnyLLM) -> None:
        super().__init__("responses")
        self._vendor = vendor

    async def _ask(self, history: list[Any], *, stream: bool = False) -> Any:
        return await self._vendor.aresponses(
            model=MODELS["responses"], instructions=INSTRUCTIONS, input_data=history, tools=self._tools, store=False,
            stream=stream,
        )  # fmt: skip

    def _grow(self, history: list[Any], answer: Any) -> bool:
        start = len(history)
        going_on = super()._grow(history, answer)
        history[start:] = [item if isinstance(item, dict) else item.model_dump() for item in history[start:]]
        return going_on

    async def aclose(self) -> None:
        """See `benchmarks.work.Client`."""


async def connect(wire: str, url: str) -> Any:
    """A client for one wire at one address."""
    name = {"responses": "openai", "chat": "openai"}.get(wire, wire)
    vendor = AnyLLM.create(name, api_key=KEY, api_base=f"{url}/v1" if name == "openai" else url)
    return Responses(vendor) if wire == "responses" else Completions(wire, vendor)
