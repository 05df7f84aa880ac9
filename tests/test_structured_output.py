"""Structured output: fits, or is a typed error that carries the text and loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from pollux_like import Config, Environment, Input, StructuredOutputError, interact, stream
from pollux_like.simulator import Simulator
from pollux_like.testing import Scripted, answer, call, refuse, say
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio


class Inner(BaseModel):
    label: str
    note: str | None = None


class Place(BaseModel):
    city: str
    population: int
    tags: list[Inner] = []


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "note": {"type": "string"}},
    "required": ["city"],
}
FIT = '{"city":"Rome","population":3,"tags":[{"label":"old","note":null}]}'
TARGETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai": ("openai", "gpt-5.2", {}),
    "chat": ("openai", "gpt-4o", {"provider_options": {"openai": {"api": "chat"}}}),
    "anthropic": ("anthropic", "claude-opus-4-6", {}),
    "gemini": ("gemini", "gemini-2.5-flash", {}),
}


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


@pytest.mark.parametrize("name", list(TARGETS))
async def test_a_model_and_a_schema_on_the_wire_of_each_provider(sim: Simulator, name: str) -> None:
    sim.reset()
    provider, model, arguments = TARGETS[name]
    to = Config(provider, model, api_key="sim-key", base_url=sim.base_url(name))
    sim.reply(say(FIT))
    output = await interact(Environment(), Input("Where?", history=[]), to, output=Place, **arguments)
    assert output.structured == Place(city="Rome", population=3, tags=[Inner(label="old")])
    sim.reply(say('{"city":"Bern","note":null}'))
    output = await interact(
        Environment(), Input("And?", continuation=output.continuation), to, output=SCHEMA, **arguments
    )
    assert output.structured == {"city": "Bern"}
    assert [request.status for request in sim.requests] == [200, 200]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rome, of course", "no JSON"),
        ('```json\n{"city":"Rome","population":3}\n```', "no JSON"),
        ('{"city":"Rome"}', "missing at population"),
        ('{"city":"Rome","population":"many"}', "int_parsing at population"),
        ('{"city":NaN,"population":1}', "NaN"),
        ("[" * 5000, "nested"),
        ("[]", "Place"),
    ],
)
async def test_what_does_not_fit_raises_and_the_turn_is_kept(text: str, words: str) -> None:
    model = Scripted([say(text)], [say("Sorry.")])
    with pytest.raises(StructuredOutputError) as caught:
        await interact(Environment(), Input("Where?", history=[]), model.config, output=Place)
    error = caught.value
    assert error.text == error.output.text == text
    assert words in str(error) or "JSON" in str(error)
    assert "Rome" not in str(error)
    assert error.output.structured is None
    again = await interact(Environment(), Input("Properly?", continuation=error.output.continuation), model.config)
    assert again.text == "Sorry."


async def test_a_schema_is_checked_too() -> None:
    model = Scripted([say('{"city":5}')])
    with pytest.raises(StructuredOutputError, match="type at city"):
        await interact(Environment(), Input("Where?"), model.config, output=SCHEMA)


async def test_an_answer_cut_by_the_limit_says_so() -> None:
    model = Scripted(answer(say('{"city":"Ro'), finish="length"))
    with pytest.raises(StructuredOutputError, match="token limit"):
        await interact(Environment(), Input("Where?"), model.config, output=Place)


@pytest.mark.parametrize(
    "made", [answer(call("get_time", id="c1")), answer(refuse("No.")), answer(finish="content_filter")]
)
async def test_a_turn_without_an_answer_has_none_and_is_no_error(made: Any) -> None:
    output = await interact(Environment(tools=TOOLS), Input("Where?"), Scripted(made).config, output=Place)
    assert output.structured is None


async def test_streaming_raises_the_same_after_the_last_delta() -> None:
    kinds: list[str] = []
    with pytest.raises(StructuredOutputError):
        async for event in stream(Environment(), Input("Where?"), Scripted([say("nope")]).config, output=Place):
            kinds.append(event.type)
    assert kinds == ["start", "text_delta", "usage", "finish"]


async def test_output_as_json_carries_the_structured_value() -> None:
    output = await interact(Environment(), Input("Where?"), Scripted([say(FIT)]).config, output=Place)
    assert json.loads(json.dumps(output.to_jsonable()))["structured"]["population"] == 3
