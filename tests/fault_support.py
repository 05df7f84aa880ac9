"""What the tests of faults share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pollux_like import (
    Config,
    Continuation,
    Environment,
    Input,
    interact,
    stream,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import say
from pollux_like.testing.conversations import TOOLS

PROVIDERS = {
    "openai": "gpt-5.2", "chat": "gpt-4o", "anthropic": "claude-opus-4-6", "gemini": "gemini-3-flash-preview",
    "openrouter": "anthropic/claude-haiku-4.5", "deepseek": "deepseek-v4-flash",
}  # fmt: skip
ENV = Environment(instructions="Be brief.", tools=TOOLS)


def provider_of(dialect: str) -> str:
    """Who speaks a dialect."""
    return {"chat": "openai", "deepseek": "local"}.get(dialect, dialect)


async def begun(sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]) -> Continuation:
    """A conversation of one turn."""
    sim.reply(say("Hello."))
    output = await interact(ENV, Input("Hi", history=[]), to(), **arguments)
    assert output.continuation is not None
    return output.continuation


async def goes_on(sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], old: Continuation) -> None:
    """The old continuation still works."""
    sim.clear()
    # A request that was left while it was on its way may still arrive, and must not take this answer.
    sim.reply(say("Still here."), when=lambda request: "Go on" in json.dumps(request.body))
    output = await interact(ENV, Input("Go on", continuation=old), to(), **arguments)
    assert output.text == "Still here."


async def both(config: Config, brought: Input, arguments: dict[str, Any], *, streamed: bool) -> None:
    if not streamed:
        await interact(ENV, brought, config, **arguments)
        return
    async for _ in stream(ENV, brought, config, **arguments):
        pass
