"""What a conversation library must do, where no other test says it: choices, settings, sources, finishes, prints.

Cases that decisions overrule: an unknown finish word is status "other" with the word in `raw`, not "unknown"; a text
source stands in the first user message of a whole request, and a chained request sends none again; history may name
tools that are not declared; a call without arguments text is `{}`; `Output.messages` hold portable text and calls only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from wires import (
    ENV,
    STORE,
    THINK,
    WIRES,
    Body,
    Fake,
    ask,
    block_events,
    calls,
    chat_sse,
    completion,
    message,
    message_sse,
    options,
    reasoning,
    reloaded,
    response,
    spoken,
    sse,
    texts,
    thinking,
    thinking_events,
    tool_use,
    watched,
)

from pollux_like import ConfigurationError, Environment, Input, Message, Source, ToolCall, ToolDeclaration, ToolResult
from pollux_like.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["image_url", "input_image", "input_audio", "file", "input_file", "thinking"])
def test_must_9_what_portable_history_cannot_hold_is_refused(kind: str) -> None:
    """A part that would be dropped raises, naming its index; so does a member that nobody could replay."""
    with pytest.raises(ConfigurationError, match=r"content\[1\]"):
        Message.from_openai(
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, kind: {"x": 1}}]}
        )
    with pytest.raises(ConfigurationError, match="reasoning_content"):
        Message.from_openai({"role": "assistant", "content": "a", "reasoning_content": "r"})


def test_must_9_texts_are_joined_and_arguments_become_text() -> None:
    """Parts are set apart by a blank line, an object of arguments is its JSON text, and a single call fits too."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert Message.from_openai({"role": "user", "content": parts}).content == "a\n\nb"
    call = ToolCall.from_openai(
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": 2}}}
    )
    assert call.arguments_text == '{"z":1,"a":2}'
    made = Message("assistant", tool_calls=(call,))
    assert Message.from_openai(made.to_openai()) == made


@pytest.mark.parametrize("wire", WIRES)
async def test_must_14_explicit_history_stands_alone(wire: str) -> None:
    """No server's memory is asked, not even where storing is on, and the new state belongs to the active provider."""
    fake = Fake(texts(wire, "x"))
    arguments = STORE if wire == "openai" else options(wire)
    history = [Message("user", "a"), Message("assistant", "b")]
    output = await ask(fake.at(wire), Input("c", history=history), **arguments)
    assert "previous_response_id" not in fake.sent[0]
    assert output.continuation is not None
    assert output.continuation.provider == fake.at(wire).provider
    assert [one.content for one in output.messages] == ["c", "x"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("text", ["boom", ""])
async def test_must_18_a_failed_tool_reaches_the_model_as_failed(wire: str, text: str) -> None:
    """By the flag where the API has one, in words where it has none; never as an extra key, and it outlives a store."""
    fake = Fake(calls(wire, "c1", "c2"), texts(wire, "x"), texts(wire, "y"))
    output = await ask(fake.at(wire), "go", **options(wire))
    results = [ToolResult("c1", text, is_error=True), ToolResult("c2", text)]
    output = await ask(fake.at(wire), Input(continuation=output.continuation, tool_results=results), **options(wire))
    await ask(fake.at(wire), Input("more", continuation=reloaded(output.continuation)), **options(wire))
    assert fake.said[2][: len(fake.said[1])] == fake.said[1]
    if wire == "anthropic":
        bad, good = fake.said[1][-1]["content"]
        assert (bad["is_error"], bad.get("content", "")) == (True, text)
        assert "is_error" not in good
    else:
        bad, good = fake.said[1][-2:]
        key = "output" if wire == "openai" else "content"
        assert (bad[key], good[key]) == ("Error: boom" if text else "Error", text)
        assert b"is_error" not in fake.raw[1]


@pytest.mark.parametrize("streamed", [False, True])
async def test_must_19_every_block_in_its_place(streamed: bool) -> None:
    """Thinking between calls, sealed and text-less blocks included, goes back in the order in which it came."""
    said = [thinking("t1", "S1"), {"type": "text", "text": "x"}, tool_use("a"), {"type": "redacted_thinking", "data": "R"},
            thinking("", "S2"), tool_use("b")]  # fmt: skip
    events = [
        *thinking_events(0, "S1", "t1"), *block_events(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}),
        *block_events(2, said[2]), *block_events(3, said[3]), *thinking_events(4, "S2"), *block_events(5, said[5]),
    ]  # fmt: skip
    fake = Fake(message_sse(*events, stop="tool_use") if streamed else message(*said), texts("anthropic", "x"))
    output = (
        (await watched(fake.anthropic(), "go", **THINK))[0] if streamed else await ask(fake.anthropic(), "go", **THINK)
    )
    results = [ToolResult("a", "1"), ToolResult("b", "2", is_error=True)]
    await ask(fake.anthropic(), Input(continuation=reloaded(output.continuation), tool_results=results), **THINK)
    assert fake.said[1][1]["content"] == said


async def test_must_21_what_is_sealed_lives_in_the_continuation_only() -> None:
    """Not in a repr, an event, a message, a call or the output's JSON; and shown reasoning is no source of requests."""
    secret, thought = "SIGNED-SECRET", "hidden plan"
    item = reasoning(sealed=secret, text=thought)
    final = response(item, {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"})
    blocks = [*thinking_events(0, secret, thought), *block_events(1, tool_use("c"))]
    for wire, body in (("openai", sse({"type": "response.completed", "response": final})), ("anthropic", message_sse(*blocks, stop="tool_use"))):  # fmt: skip
        fake = Fake(body, texts(wire, "x"))
        output, events = await watched(fake.at(wire), "go", **(THINK if wire == "anthropic" else {}))
        saved = output.to_jsonable()
        assert secret in json.dumps(saved.pop("continuation"))
        shown = [
            repr(output),
            repr(output.continuation),
            *map(repr, events),
            json.dumps(saved),
            *map(repr, output.messages),
        ]
        assert not [one for one in shown if secret in one]
        assert output.reasoning == thought
        assert not [one for one in shown[:3] if thought in one]
        await ask(fake.at(wire), Input("more", history=[*output.messages, ToolResult("c", "r").to_message()]))
        assert thought.encode() not in fake.raw[1]


@pytest.mark.parametrize("wire", [*WIRES, "stored"])
async def test_must_24_a_source_is_sent_once_per_request_and_never_saved(wire: str) -> None:
    """Five turns, one copy in each whole request, at one fixed place; none in the state."""
    own = "openai" if wire == "stored" else wire
    arguments = STORE if wire == "stored" else options(wire)
    env = Environment(sources=[Source.from_text("MARK " * 50, name="notes")])
    fake = Fake(*(texts(own, str(k)) for k in range(5)))
    state = None
    for k in range(5):
        given = Input(f"turn {k}", continuation=state) if state else Input("turn 0", history=[])
        state = (await ask(fake.at(own), given, env, **arguments)).continuation
        assert state is not None
        assert "MARK" not in json.dumps(state.to_jsonable())
    assert [body.count(b"MARK") for body in fake.raw] == [50] + [0 if wire == "stored" else 50] * 4
    if wire != "stored":
        assert all(said[0] == fake.said[0][0] for said in fake.said)


CHOICES: dict[str, dict[str, Any]] = {
    "openai": {"auto": "auto", "required": "required", "none": "none", "f": {"type": "function", "name": "f"}},
    "chat": {"auto": "auto", "required": "required", "none": "none", "f": {"type": "function", "function": {"name": "f"}}},
    "anthropic": {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}, "f": {"type": "tool", "name": "f"}},
}  # fmt: skip


@pytest.mark.parametrize("choice", ["auto", "required", "none", "f"])
@pytest.mark.parametrize("wire", WIRES)
async def test_must_29_the_choice_of_a_tool_in_each_wires_words(wire: str, choice: str) -> None:
    """What is no choice is refused, see the tests of bad input; what is one is said in the API's own form."""
    fake = Fake(texts(wire, "x"))
    given: Any = {"name": "f"} if choice == "f" else choice
    await ask(fake.at(wire), "go", tool_choice=given, **options(wire))
    assert fake.sent[0]["tool_choice"] == CHOICES[wire][choice]


@pytest.mark.parametrize(
    ("value", "text"),
    [("as it is ", "as it is "), ({"z": 1, "a": [True, None]}, '{"z":1,"a":[true,null]}'), ([], "[]"), (1.5, "1.5"),
     (False, "false"), (None, "null"), ({"ü": "日"}, '{"ü":"日"}')],
)  # fmt: skip
def test_must_31_results_from_values(value: Any, text: str) -> None:
    """A str to the letter, everything else as compact JSON with its keys in their order."""
    assert ToolResult.from_value(call_id="c", value=value).content == text


CHANGES: list[dict[str, Any]] = [
    {"instructions": "J"}, {"sources": [Source.from_text("t")]}, {"sources": [Source.from_bytes(b"x", mime_type="image/png")]},
    {"sources": [Source.from_bytes(b"y", mime_type="image/png")]}, {"tools": ENV.tools[::-1]}, {"tools": ENV.tools[:1]},
    {"tools": [ToolDeclaration("h")]}, {"tools": [ToolDeclaration("h", "other words")]},
    {"tools": [ToolDeclaration("h", parameters={"type": "object", "properties": {"a": {"type": "string"}}})]},
]  # fmt: skip


def test_must_32_and_42_the_fingerprint_names_what_the_model_sees() -> None:
    """Every change of that changes it, also the provider; cache, metadata, key order and later mutation do not."""
    made = [Environment("I", tools=ENV.tools), *(Environment(**change) for change in CHANGES)]
    found = [env.fingerprint(provider="openai") for env in made] + [made[0].fingerprint(provider="anthropic")]
    assert len(set(found)) == len(found)
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    turned = {"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "type": "object"}
    one = Environment("I", tools=[ToolDeclaration("f", "", schema)])
    two = Environment("I", tools=[ToolDeclaration("f", "", turned)], cache="auto", metadata={"k": 1})
    schema["properties"]["a"]["type"] = "changed"  # before the fingerprint is first asked for
    assert one.fingerprint(provider="openai") == two.fingerprint(provider="openai")


def test_must_32_the_fingerprint_is_the_same_in_every_process() -> None:
    """No hash seed and no order of a set enters it."""
    code = (
        "from pollux_like import *\n"
        "print(Environment('I', tools=[ToolDeclaration('f', '', {'type': 'object'})]).fingerprint(provider='openai'))"
    )
    seeds = ("1", "2")
    runs = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in seeds
    ]  # fmt: skip
    here = Environment("I", tools=[ToolDeclaration("f", "", {"type": "object"})]).fingerprint(provider="openai")
    assert {run.stdout.strip() for run in runs} == {here}


def incomplete(reason: str | None) -> Body:
    return response(spoken("x"), status="incomplete", incomplete_details={"reason": reason})


FINISHES: list[tuple[str, Body | str, str, str | None]] = [
    ("openai", response(spoken("x")), "stop", "completed"),
    ("openai", incomplete("max_output_tokens"), "length", "max_output_tokens"),
    ("openai", incomplete("content_filter"), "content_filter", "content_filter"),
    ("openai", incomplete("new word"), "other", "new word"),
    ("openai", incomplete(None), "other", None),
    ("chat", completion({"content": "x"}), "stop", "stop"),
    ("chat", completion({"content": "x"}, "length"), "length", "length"),
    ("chat", completion({"content": None}, "content_filter"), "content_filter", "content_filter"),
    ("chat", completion({"content": "x"}, "new word"), "other", "new word"),
    ("chat", chat_sse({"content": "x"}, finish="length"), "length", "length"),
    ("anthropic", message({"type": "text", "text": "x"}), "stop", "end_turn"),
    ("anthropic", message({"type": "text", "text": "x"}, stop="stop_sequence"), "stop", "stop_sequence"),
    ("anthropic", message({"type": "text", "text": "x"}, stop="max_tokens"), "length", "max_tokens"),
    ("anthropic", message(stop="model_context_window_exceeded"), "length", "model_context_window_exceeded"),
    ("anthropic", message(stop="refusal"), "refusal", "refusal"),
    ("anthropic", message({"type": "text", "text": "x"}, stop="pause_turn"), "pause", "pause_turn"),
    ("anthropic", message({"type": "text", "text": "x"}, stop="new word"), "other", "new word"),
]


@pytest.mark.parametrize(("wire", "body", "status", "raw"), FINISHES)
async def test_must_33_only_a_clean_end_is_called_stop(
    wire: str, body: Body | str, status: str, raw: str | None
) -> None:
    """Every word of the provider's is mapped, one that is not known to "other"; the word itself is in `raw`."""
    fake = Fake(body)
    streamed = isinstance(body, str)
    given = fake.at(wire), "go"
    output = (await watched(*given, **options(wire)))[0] if streamed else await ask(*given, **options(wire))
    assert (output.finish.status, output.finish.raw) == (status, raw)


GIVEN: dict[str, Any] = {
    "tool_choice": "auto", "parallel_tool_calls": False, "output": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "max_tokens": 77, "temperature": 0.25, "top_p": 0.75, "seed": 4711, "stop": ["HALT"], "reasoning_effort": "high",
    "reasoning_budget_tokens": 2048, "timeout_s": 30, "provider_options": {},
}  # fmt: skip
SHOWN = {"tool_choice": b'"auto"', "parallel_tool_calls": b"parallel", "output": b'"n"', "max_tokens": b"77",
         "temperature": b"0.25", "top_p": b"0.75", "seed": b"4711", "stop": b"HALT", "reasoning_effort": b'"high"',
         "reasoning_budget_tokens": b"2048"}  # fmt: skip
MODELS = [
    ("openai", "gpt-5.2"), ("openai", "gpt-4.1"), ("openai", "unknown-model"), ("chat", "gpt-5.2"), ("chat", "gpt-4.1"),
    ("anthropic", "claude-opus-4-6"), ("anthropic", "claude-opus-5-5"), ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-3-5-haiku-latest"), ("anthropic", "unknown-model"),
]  # fmt: skip


def test_must_38_the_matrix_names_every_argument() -> None:
    """A new argument has to be added to the matrix below."""
    assert set(Settings.__dataclass_fields__) == set(GIVEN)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize(("wire", "model"), MODELS)
async def test_must_38_each_argument_is_sent_or_refused(wire: str, model: str, name: str) -> None:
    """It stands in the request, or the error names it and nothing is sent; there is no third way."""
    fake = Fake(texts(wire, '{"n":1}'))
    config = fake.anthropic(model) if wire == "anthropic" else fake.openai(model)
    try:
        await ask(config, "go", **{name: GIVEN[name]}, **options(wire))
    except ConfigurationError as error:
        assert name in str(error)
        assert fake.raw == []
    else:
        assert SHOWN[name] in fake.raw[0]


@pytest.mark.parametrize("wire", WIRES)
async def test_must_42_what_is_the_applications_own_is_never_sent(wire: str) -> None:
    """Metadata changes no byte of the request."""
    fake = Fake(texts(wire, "x"), texts(wire, "x"))
    for metadata in (None, {"PRIVATE": "PRIVATE"}):
        await ask(fake.at(wire), "go", Environment("Be brief.", metadata=metadata), **options(wire))
    assert fake.raw[0] == fake.raw[1]
    assert b"PRIVATE" not in fake.raw[1]


MANAGED = {
    "openai": ["model", "input", "instructions", "stream", "previous_response_id", "conversation", "background"],
    "chat": ["model", "messages", "stream", "stop", "seed", "response_format", "n"],
    "anthropic": ["model", "messages", "system", "stream", "max_tokens", "stop_sequences", "tool_choice"],
}


@pytest.mark.parametrize("wire", WIRES)
async def test_must_43_provider_options(wire: str) -> None:
    """Those of another provider are ignored, the active one's are merged, and no key of ours can be set, used or not."""
    provider, own = "anthropic" if wire == "anthropic" else "openai", {"api": "chat"} if wire == "chat" else {}
    other = "openai" if provider == "anthropic" else "anthropic"
    fake = Fake(texts(wire, "x"))
    await ask(fake.at(wire), "go", provider_options={provider: {**own, "service_tier": "auto"}, other: {"zzz": 1}})
    assert fake.sent[0]["service_tier"] == "auto"
    assert b"zzz" not in fake.raw[0]
    assert "api" not in fake.sent[0]
    for key in MANAGED[wire]:
        with pytest.raises(ConfigurationError, match=key):
            await ask(fake.at(wire), "go", provider_options={provider: {**own, key: 1}})
    assert len(fake.raw) == 1


async def test_must_43_two_ways_to_say_one_thing_are_refused() -> None:
    """Where options and arguments are merged, both at once contradict."""
    both: list[tuple[str, dict[str, Any], Environment]] = [
        ("openai", {"reasoning_effort": "low", "provider_options": {"openai": {"reasoning": {"effort": "low"}}}}, ENV),
        ("anthropic", {**THINK, "provider_options": {"anthropic": {"output_config": {"effort": "low"}}}}, ENV),
        ("anthropic", {**THINK, "provider_options": {"anthropic": {"thinking": {"type": "adaptive"}}}}, ENV),
        ("anthropic", {"provider_options": {"anthropic": {"cache_control": {"type": "ephemeral"}}}}, Environment(cache="none")),
        ("anthropic", {"provider_options": {"anthropic": {"tools": [{"name": "f"}]}}}, ENV),
        ("openai", {"provider_options": {"openai": {"tools": [{"type": "custom", "name": "f"}]}}}, ENV),
        ("openai", {"provider_options": {"openai": {"api": "chat", "tools": [{"function": {"name": "f"}}]}}}, ENV),
    ]  # fmt: skip
    for wire, arguments, env in both:
        fake = Fake()
        with pytest.raises(ConfigurationError, match="provider_options"):
            await ask(fake.at(wire), "go", env, **arguments)
