"""The SDKs' own aiohttp option, given as `Config.client`: the same turns, and the same typed errors."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import anyio
import openai
import pytest
from fault_support import ENV, begun, goes_on

from pollux_like import (
    APIError,
    Config,
    Input,
    ProviderTimeoutError,
    StreamInterruptedError,
    ToolResult,
    interact,
    stream,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import answer, call, say

pytestmark = pytest.mark.anyio
Made = Callable[..., Config]


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp knows asyncio only."""
    return "asyncio"


@pytest.fixture(params=["openai", "chat", "anthropic"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def to(sim: Simulator, dialect: str) -> AsyncIterator[Made]:
    async with contextlib.AsyncExitStack() as opened:

        def make(base_url: str = sim.base_url(dialect), **more: Any) -> Config:
            if dialect == "anthropic":
                one: Any = anthropic.AsyncAnthropic(
                    api_key="sim-key", base_url=base_url, http_client=anthropic.DefaultAioHttpClient()
                )
                name, model = "anthropic", "claude-opus-4-6"
            else:
                one = openai.AsyncOpenAI(
                    api_key="sim-key", base_url=base_url, http_client=openai.DefaultAioHttpClient()
                )
                name, model = "openai", "gpt-5.2" if dialect == "openai" else "gpt-4o"
            opened.push_async_callback(one.close)
            return Config(name, model, client=one, **more)

        yield make
    await anyio.sleep(0.05)  # aiohttp closes its sockets some steps later, and leaves some to the collector
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def test_a_tool_loop_streamed_and_not(sim: Simulator, to: Made, arguments: dict[str, Any]) -> None:
    config = to()
    sim.reply(say("I look."), call("get_time", id="call_1"))
    first = await interact(ENV, Input("What time is it?", history=[]), config, **arguments)
    results = [ToolResult(call.id, "noon") for call in first.tool_calls]
    sim.reply(say("It is noon."))
    shown: list[str] = []
    output = None
    async with stream(ENV, Input(continuation=first.continuation, tool_results=results), config, **arguments) as events:
        async for event in events:
            shown.append(event.text)
            output = event.output or output
    assert output is not None
    assert "".join(shown) == output.text == "It is noon."


async def test_a_refusal_is_retried(sim: Simulator, to: Made, arguments: dict[str, Any]) -> None:
    sim.fail(529, retry_after=0.01)
    sim.reply(say("Yes."))
    output = await interact(ENV, Input("There?", history=[]), to(), **arguments)
    assert (output.text, output.metrics.attempts) == ("Yes.", 2)


@pytest.mark.parametrize("fault", [{"cut_after": 4}, {"cut_after_bytes": 700}, {"end_after": 5}])
async def test_a_broken_stream_is_no_turn(
    sim: Simulator, to: Made, arguments: dict[str, Any], fault: dict[str, Any]
) -> None:
    old = await begun(sim, to, arguments)
    sim.clear()
    sim.fault(answer(say("One two three four five six seven eight")), **fault)
    with pytest.raises(StreamInterruptedError):
        async for _ in stream(ENV, Input("Next", continuation=old), to(max_attempts=1), **arguments):
            pass
    await goes_on(sim, to, arguments, old)


async def test_silence_is_a_timeout(sim: Simulator, to: Made, arguments: dict[str, Any]) -> None:
    sim.fault(answer(say("Late.")), delay_s=5)
    with pytest.raises(ProviderTimeoutError) as caught:
        await interact(ENV, Input("Hi", history=[]), to(max_attempts=1, timeout_s=0.2), **arguments)
    assert caught.value.retryable


async def test_nobody_there_is_an_api_error(to: Made, arguments: dict[str, Any]) -> None:
    with pytest.raises(APIError, match="cannot be reached") as caught:
        await interact(ENV, Input("Hi", history=[]), to("http://127.0.0.1:9/v1", max_attempts=1), **arguments)
    assert caught.value.retryable
    assert "sim-key" not in str(caught.value)


async def test_a_cancelled_turn_leaves_the_client_good(sim: Simulator, to: Made, arguments: dict[str, Any]) -> None:
    config = to()
    old = await begun(sim, lambda **_: config, arguments)
    sim.clear()
    sim.fault(answer(say("Late.")), delay_s=5)
    with anyio.move_on_after(0.2) as scope:
        await interact(ENV, Input("Next", continuation=old), config, **arguments)
    assert scope.cancelled_caught
    await goes_on(sim, lambda **_: config, arguments, old)
