"""What a conversation library must do, on Gemini: results, failures, seals, sources, schemas, settings, options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from gemini.wire import ENV, FLASH, Fake, answer, call, saved, streamed, text
from pydantic import BaseModel

from pollux_like import Config, ConfigurationError, Environment, Input, Source, ToolDeclaration, ToolResult, interact
from pollux_like.settings import Settings
from pollux_like.simulator import Simulator
from pollux_like.testing import answer as scripted
from pollux_like.testing import call as scripted_call
from pollux_like.testing import say

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


def at(sim: Simulator, model: str = FLASH) -> Config:
    return Config("gemini", model, api_key="sim-key", base_url=sim.base_url("gemini"), max_attempts=1)


@pytest.mark.parametrize("ids", [("a", "b", "c"), (None, None, None)])
async def test_must_16_results_in_call_order_in_one_content(ids: tuple[str | None, ...]) -> None:
    """In whatever order they were given; by the ids that came, and by order and name where none came."""
    parts = [call("f", {"a": at}, **({"id": one} if one else {})) for at, one in enumerate(ids)]
    fake = Fake(answer(*parts), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    results = [ToolResult(one.id, f"r{at}") for at, one in enumerate(output.tool_calls)]
    await interact(
        ENV, Input(continuation=saved(output), tool_results=[results[2], results[0], results[1]]), fake.config()
    )
    content = fake.contents[-1]
    assert content["role"] == "user"
    answers = [part["functionResponse"] for part in content["parts"]]
    assert [one["response"] for one in answers] == [{"result": f"r{at}"} for at in range(3)]
    assert [one.get("id") for one in answers] == list(ids)


async def test_must_20_streamed_or_not_the_continuation_is_equal() -> None:
    """Where a stream has the same parts as the body."""
    parts = [text("Hm", thought=True), text("So"), call(signature="Uw==")]
    chunks = [answer(one, finish="STOP" if one is parts[-1] else None) for one in parts]
    one = await interact(ENV, Input("go"), Fake(answer(*parts)).config())
    other, _ = await streamed(ENV, Input("go"), Fake(chunks).config())
    assert one.continuation == other.continuation


async def test_must_21_what_is_sealed_lives_in_the_continuation_only() -> None:
    seal, thought = "U0lHTkVELVNFQ1JFVA==", "hidden plan"
    parts = [text(thought, thought=True), call(signature=seal)]
    output, events = await streamed(ENV, Input("go"), Fake([answer(*parts)]).config())
    outside = output.to_jsonable()
    assert seal in json.dumps(outside.pop("continuation"))
    shown = [repr(output), repr(output.continuation), *map(repr, events), *map(repr, output.messages)]
    assert not [one for one in (*shown, json.dumps(outside)) if seal in one]
    assert not [one for one in shown if thought in one]
    fake = Fake(answer(text("ok")))
    history = [*output.messages, ToolResult(output.tool_calls[0].id, "r").to_message()]
    await interact(ENV, Input("more", history=history), fake.config())
    assert thought not in json.dumps(fake.sent)


async def test_must_24_a_source_is_sent_once_per_request_and_never_saved() -> None:
    env = Environment(sources=[Source.from_text("MARK")])
    fake = Fake(*(answer(text(str(at))) for at in range(4)))
    state = None
    for at in range(4):
        given = Input(f"turn {at}", continuation=state) if state else Input("turn 0", history=[])
        output = await interact(env, given, fake.config())
        state = saved(output)
        assert "MARK" not in json.dumps(state.to_jsonable())
    assert [request.content.count(b"MARK") for request in fake.asked] == [1] * 4
    assert all(body["contents"][0] == fake.sent[0]["contents"][0] for body in fake.sent)


class Inner(BaseModel):
    label: Literal["a", "b"]
    note: str | None = None


class Outer(BaseModel):
    kind: Literal["fixed"]
    inner: Inner | None = None
    many: dict[str, int] = {}
    children: list[Inner] = []


NAMED = {
    "type": "object", "additionalProperties": False, "required": ["additionalProperties"],
    "properties": {
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {"properties": {"type": "string"}}},
        "required": {"type": "array", "items": {"type": "object", "additionalProperties": True, "properties": {"x": {"const": 1}}}},
    },
}  # fmt: skip


@pytest.mark.parametrize("schema", [Outer.model_json_schema(), NAMED], ids=["a model", "names of keywords"])
@pytest.mark.parametrize("form", ["json", "openapi"])
@pytest.mark.parametrize("model", [FLASH, "gemini-2.5-flash"])
async def test_must_27_any_declaration_is_accepted(
    sim: Simulator, schema: dict[str, Any], form: str, model: str
) -> None:
    """The strict stand-in refuses every keyword that the API does not know; the caller's schema stays as it was."""
    before = json.dumps(schema)
    sim.reset()
    sim.reply(say("ok"))
    env = Environment(tools=[ToolDeclaration("f", "F", schema)])
    await interact(env, Input("go"), at(sim, model), provider_options={"gemini": {"schemas": form}})
    (sent,) = sim.requests[0].body["tools"][0]["functionDeclarations"]
    assert sim.requests[0].status == 200
    assert json.dumps(schema) == before
    wire = sent["parameters" if form == "openapi" else "parametersJsonSchema"]
    assert set(schema["properties"]) == set(wire["properties"])


GIVEN: dict[str, Any] = {
    "tool_choice": "auto", "parallel_tool_calls": False, "output": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "max_tokens": 77, "temperature": 0.25, "top_p": 0.75, "seed": 4711, "stop": ["HALT"], "reasoning_effort": "high",
    "reasoning_budget_tokens": 2048, "timeout_s": 30, "provider_options": {},
}  # fmt: skip
SHOWN = {"tool_choice": b'"AUTO"', "parallel_tool_calls": b"parallel", "output": b'"n"', "max_tokens": b"77",
         "temperature": b"0.25", "top_p": b"0.75", "seed": b"4711", "stop": b"HALT", "reasoning_effort": b"hinking",
         "reasoning_budget_tokens": b"2048"}  # fmt: skip


def test_must_38_the_matrix_names_every_argument() -> None:
    assert set(Settings.__dataclass_fields__) == set(GIVEN)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize(
    "model", [FLASH, "gemini-3-pro-preview", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.0-flash", "gemini-9"]
)
async def test_must_38_each_argument_is_sent_or_refused(sim: Simulator, model: str, name: str) -> None:
    """And what is sent is taken: the strict stand-in answers it."""
    sim.reset()
    sim.reply(say('{"n":1}'))
    env = Environment() if name == "output" else ENV
    try:
        await interact(env, Input("go"), at(sim, model), **{name: GIVEN[name]})
    except ConfigurationError as error:
        assert name in str(error)
        assert sim.requests == []
    else:
        assert SHOWN[name] in sim.requests[0].raw


async def test_must_42_what_is_the_applications_own_is_never_sent() -> None:
    fake = Fake(answer(text("x")), answer(text("x")))
    for metadata in (None, {"PRIVATE": "PRIVATE"}):
        await interact(Environment("Be brief.", metadata=metadata), Input("go"), fake.config())
    assert fake.asked[0].content == fake.asked[1].content


MANAGED = ["model", "contents", "systemInstruction", "stream", "continuationToken", "system_instruction", "tool_config", "generation_config"]  # fmt: skip


async def test_must_43_provider_options() -> None:
    """Those of another provider are ignored, the active one's are merged, and no key of ours can be set, used or not."""
    fake = Fake(answer(text("x")))
    options = {"gemini": {"safetySettings": []}, "openai": {"zzz": 1}}
    await interact(ENV, Input("go"), fake.config(), provider_options=options)
    assert fake.sent[0]["safetySettings"] == []
    assert b"zzz" not in fake.asked[0].content
    for key in MANAGED:
        with pytest.raises(ConfigurationError, match=key):
            await interact(ENV, Input("go"), fake.config(), provider_options={"gemini": {key: {}}})
    assert len(fake.asked) == 1


async def test_one_turn_is_one_request_whatever_the_sdk_would_do(sim: Simulator) -> None:
    """Neither a call that the SDK could run nor a continuation that it would ask for is followed up behind our back."""
    sim.reset()
    sim.reply(scripted(say("half"), finish="pause"))
    sim.reply(say("whole"))
    output = await interact(Environment(), Input("go"), at(sim))
    assert (output.finish.status, len(sim.requests)) == ("pause", 1)
    assert (await interact(Environment(), Input(continuation=output.continuation), at(sim))).text == "whole"
    sim.reply(scripted_call("f", {"a": 1}))
    assert (await interact(ENV, Input("go"), at(sim))).finish.status == "tool_calls"
    assert len(sim.requests) == 3
