"""A conversation with a real llama-server: the embedded runtime's own listener, on loopback, with the packaged model.

Its chat template has no tools, and llama-server drops declared ones without a word; a tool round comes from history.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from pollux_like_local.models import packaged_model

from pollux_like import (
    AuthenticationError,
    Config,
    ContextOverflowError,
    Continuation,
    Environment,
    Event,
    Input,
    Message,
    ToolCall,
    interact,
    stream,
)
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio

ENV = Environment(instructions="You are a helpful assistant.")
KEY = "a-key-of-this-server"
SHORT: dict[str, Any] = {"max_tokens": 12, "temperature": 0.0}
CHOICE = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "capital": {"type": "boolean"}},
    "required": ["city", "capital"],
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server's address for a Config."""
    path = packaged_model()
    if importlib.util.find_spec("xllamacpp") is None or path is None:
        pytest.skip("the embedded runtime and model are not installed: pollux-like local setup")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read as the runtime loads
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = 512, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [KEY]
    params.ui, params.fit_params, params.verbosity = False, False, -1
    server: Any = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def at(address: str, **more: Any) -> Config:
    return Config("local", "smollm2", base_url=address, **{"api_key": KEY, **more})


async def test_a_chat_goes_on_streamed_and_saved(address: str) -> None:
    first = await interact(ENV, Input("What is the capital of France?", history=[]), at(address), **SHORT)
    assert "Paris" in first.text
    assert first.continuation is not None
    state = Continuation.from_jsonable(json.loads(json.dumps(first.continuation.to_jsonable())))
    events: list[Event] = []
    async with stream(ENV, Input("And of Italy?", continuation=state), at(address), **SHORT) as running:
        events.extend([event async for event in running])
    second = events[-1].output
    assert second is not None
    assert "".join(event.text for event in events if event.type == "text_delta") == second.text != ""
    assert second.usage.input_tokens > first.usage.input_tokens
    assert second.usage.cached_tokens > first.usage.input_tokens, "the request began as the one before it"
    third = await interact(ENV, Input("Thanks.", continuation=second.continuation), at(address), **SHORT)
    assert [message.role for message in third.messages] == ["user", "assistant"]
    assert third.finish.status in ("stop", "length")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_typed_answer_is_held_to_its_schema(address: str, streamed: bool) -> None:
    brought = Input("Is Paris the capital of France?", history=[])
    if streamed:
        outputs = [
            event.output
            async for event in stream(ENV, brought, at(address), output=CHOICE, max_tokens=100, temperature=0.0)
        ]
        output = outputs[-1]
    else:
        output = await interact(ENV, brought, at(address), output=CHOICE, max_tokens=100, temperature=0.0)
    assert output is not None
    assert set(output.structured) == {"city", "capital"}
    assert output.structured["city"] in ("Paris", "Rome")


async def test_a_tool_round_in_the_history_is_taken(address: str) -> None:
    history = [
        Message("user", "What is the weather in Paris?"),
        Message("assistant", "", (ToolCall("c1", "get_weather", '{"city":"Paris"}'),)),
        Message("tool", "It is sunny in Paris.", tool_call_id="c1"),
    ]
    output = await interact(
        Environment(instructions="Be brief.", tools=TOOLS), Input(history=history), at(address), **SHORT
    )
    assert output.text.strip()
    assert output.tool_calls == ()
    further = Input("Thanks.", continuation=output.continuation)
    assert (await interact(Environment(instructions="Be brief.", tools=TOOLS), further, at(address), **SHORT)).text


async def test_refusals_are_typed(address: str) -> None:
    with pytest.raises(ContextOverflowError) as overflow:
        await interact(ENV, Input("word " * 2000), at(address), **SHORT)
    assert not overflow.value.retryable
    with pytest.raises(AuthenticationError):
        await interact(ENV, Input("Hi"), at(address, api_key="another-key"), **SHORT)
