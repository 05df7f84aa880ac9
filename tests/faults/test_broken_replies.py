"""A reply that breaks on its way is no turn: a typed error, no retry once something was shown, the old state goes on."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from fault_support import ENV, PROVIDERS, begun, both, goes_on, provider_of

from pollux_like import (
    APIError,
    Config,
    Input,
    ProviderTimeoutError,
    StreamInterruptedError,
    interact,
    stream,
)
from pollux_like.simulator import Fault, Simulator
from pollux_like.testing import answer, call, say, think

pytestmark = pytest.mark.anyio


REPLY = answer(think("Hm, let me see"), say("One two three four five"), call("get_time", id="call_1"))
FAULTS: dict[str, dict[str, Any]] = {
    "cut after the first event": {"cut_after": 1},
    "cut in the middle": {"cut_after": 4},
    "cut late": {"cut_after": 9},
    "ended without terminal event": {"end_after": 5},
    "malformed event": {"garble_after": 3},
    "error event": {"error_after": 3, "error": Fault(529)},
    "dropped": {"drop": True},
}


@pytest.mark.parametrize("fault", list(FAULTS))
async def test_broken_streams(sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], fault: str) -> None:
    old = await begun(sim, to, arguments)
    sim.clear()
    sim.fault(REPLY, **FAULTS[fault], times=9)
    shown: list[str] = []
    kinds: list[str] = []
    with pytest.raises(APIError) as caught:
        async for event in stream(ENV, Input("Next", continuation=old), to(max_attempts=1), **arguments):
            kinds.append(event.type)
            if event.type == "text_delta":
                shown.append(event.text)
    assert "done" not in kinds
    assert len(sim.requests) == 1
    if isinstance(caught.value, StreamInterruptedError):
        assert caught.value.partial_text == "".join(shown)
    await goes_on(sim, to, arguments, old)


async def test_a_stream_without_its_end_is_interrupted_and_keeps_the_text_for_display(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fault(answer(say("alpha beta gamma delta epsilon zeta")), end_after=6)
    with pytest.raises(StreamInterruptedError) as caught:
        async for _ in stream(ENV, Input("Hi", history=[]), to(max_attempts=1), **arguments):
            pass
    assert "alpha" in caught.value.partial_text
    assert "alpha" not in str(caught.value)


async def test_nothing_is_retried_after_the_first_visible_event(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fault(answer(say("alpha beta gamma delta epsilon zeta")), end_after=6)
    sim.reply(say("never sent"))
    texts: list[str] = []
    with pytest.raises(StreamInterruptedError):
        async for event in stream(ENV, Input("Hi"), to(max_attempts=5), **arguments):
            texts.append(event.text)
    assert len(sim.requests) == 1
    assert "".join(texts).count("alpha") == 1


async def test_a_connection_lost_before_anything_was_shown_is_retried(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fault(answer(say("x")), drop=True)
    sim.reply(say("Second time."))
    output = await interact(ENV, Input("Hi"), to(), **arguments)
    assert (output.text, output.metrics.attempts) == ("Second time.", 2)


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_error_body_under_status_200(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], streamed: bool
) -> None:
    old = await begun(sim, to, arguments)
    sim.clear()
    sim.fault(answer(say("x")), error_body=True, error=Fault(500))
    with pytest.raises(APIError):
        await both(to(max_attempts=1), Input("Next", continuation=old), arguments, streamed=streamed)
    await goes_on(sim, to, arguments, old)


@pytest.mark.parametrize("dialect", ["chat", "gemini", "openrouter", "deepseek"])
async def test_two_finish_reasons_are_one_end(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fault(answer(say("Once."), call("get_time", id="call_1")), double_finish=True)
    calls = 0
    async for event in stream(ENV, Input("Hi"), to(), **arguments):
        calls += event.type == "tool_call"
    assert calls == 1


async def test_slow_bytes_are_waited_for_and_silence_is_not(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fault(answer(say("slow but steady")), delay_s=0.03)
    assert (await interact(ENV, Input("Hi"), to(), **arguments)).text == "slow but steady"
    sim.fault(answer(say("too slow")), delay_s=5)
    with pytest.raises(ProviderTimeoutError):
        await interact(ENV, Input("Hi"), to(max_attempts=1), timeout_s=0.2, **arguments)


async def test_connection_refused_is_retryable(dialect: str, arguments: dict[str, Any]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base_url = f"http://127.0.0.1:{port}"
    config = Config(provider_of(dialect), PROVIDERS[dialect], api_key="k", base_url=base_url, max_attempts=1)
    with pytest.raises(APIError, match="cannot be reached") as caught:
        await interact(ENV, Input("Hi"), config, **arguments)
    assert caught.value.retryable
    assert caught.value.status is None
