"""Reported failures of others, what a model writes into a call and what it is told of the tools, on every wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wires import (
    CHAT,
    THINK,
    WIRES,
    Body,
    Fake,
    ask,
    block_events,
    calls,
    chat_call,
    completion,
    function_call,
    message,
    message_sse,
    options,
    reloaded,
    response,
    texts,
    thinking,
    tool_use,
    watched,
)

from pollux_like import (
    ConfigurationError,
    Environment,
    Input,
    Message,
    Output,
    ToolCall,
    ToolCallParseError,
    ToolDeclaration,
    ToolResult,
)

pytestmark = pytest.mark.anyio
CUT = '{"cmd": "ls'
STRINGY = ("openai", "chat")


def arguments_sent(wire: str, said: list[Body]) -> list[Any]:
    """The arguments of each call in a request, as the wire has them."""
    if wire == "anthropic":
        blocks = [block for one in said if isinstance(one["content"], list) for block in one["content"]]
        return [block["input"] for block in blocks if block["type"] == "tool_use"]
    if wire == "chat":
        return [call["function"]["arguments"] for one in said for call in one.get("tool_calls") or ()]
    return [one["arguments"] for one in said if one.get("type") == "function_call"]


async def called_with(wire: str, text: str, fake: Fake) -> Output:
    """A turn in which the model wrote `text` as arguments; streamed on the wire that knows text only there."""
    if wire == "anthropic":
        delta = {"type": "input_json_delta", "partial_json": text}
        fake.answers.insert(0, message_sse(*block_events(0, tool_use("c1"), delta), stop="tool_use"))
        return (await watched(fake.anthropic(), "go"))[0]
    if wire == "chat":
        fake.answers.insert(0, completion({"tool_calls": [chat_call("c1", text)]}))
    else:
        fake.answers.insert(0, response(function_call("c1", text)))
    return await ask(fake.at(wire), "go", **options(wire))


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("ARG-01", CUT), ("ARG-07", '{"text":"abc'), ("ARG-09", "{'a': 1,}"), ("ARG-10", "null"), ("ARG-10", "[]"),
        ("ARG-10", '"x"'), ("ARG-10", "3"), ("ENC-07", '{"a":NaN}'), ("ENC-07", '{"a":1e999}'),
        ("ARG-01", '{"a":1,"a":2}'), ("ARG-01", '{"a":' * 5000 + "1" + "}" * 5000),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wire", WIRES)
async def test_unusable_arguments_are_shown_never_run_and_never_replayed(wire: str, case: str, text: str) -> None:
    """ARG-01, 04, 07, 09, 10: one value for caller, store and wire; the pair stays, and no later turn is refused."""
    fake = Fake(texts(wire, "I see"), texts(wire, "fine"), texts(wire, "bye"))
    output = await called_with(wire, text, fake)
    (call,) = output.tool_calls
    assert (call.arguments_text, call.arguments) == (text, None), case
    assert call.arguments_error
    with pytest.raises(ToolCallParseError) as caught:
        call.arguments_dict()
    assert text not in str(caught.value)
    assert output.finish.status == "tool_calls"
    wrong = [ToolResult("c1", "bad JSON", is_error=True)]
    output = await ask(
        fake.at(wire), Input(continuation=reloaded(output.continuation), tool_results=wrong), **options(wire)
    )
    output = await ask(fake.at(wire), Input("b", continuation=reloaded(output.continuation)), **options(wire))
    await ask(fake.at(wire), Input("c", continuation=output.continuation), **options(wire))
    for said in fake.said[1:]:
        assert arguments_sent(wire, said) == (["{}"] if wire in STRINGY else [{}])


@pytest.mark.parametrize("input", [None, [], "x", 3])
async def test_an_input_that_is_no_object(input: Any) -> None:
    """ARG-10: the same on the Messages wire where the whole body comes at once."""
    block = {"type": "tool_use", "id": "c1", "name": "f", "input": input}
    fake = Fake(message(block), texts("anthropic", "fine"))
    output = await ask(fake.anthropic(), "go")
    assert (output.tool_calls[0].arguments, output.tool_calls[0].arguments_text) == (None, json.dumps(input))
    await ask(fake.anthropic(), Input(continuation=output.continuation, tool_results=[ToolResult("c1", "bad")]))
    assert arguments_sent("anthropic", fake.said[1]) == [{}]


@pytest.mark.parametrize("wire", WIRES)
async def test_unusable_arguments_in_portable_history(wire: str) -> None:
    """ARG-01, ARG-04: the same for a call that the application kept; text is never put inside a string again."""
    fake = Fake(texts(wire, "fine"))
    bad = Message("assistant", tool_calls=(ToolCall("c1", "f", CUT),))
    history = [Message("user", "a"), bad, Message("tool", "error", tool_call_id="c1")]
    await ask(fake.at(wire), Input("go", history=history), **options(wire))
    assert arguments_sent(wire, fake.said[0]) == (["{}"] if wire in STRINGY else [{}])


@pytest.mark.parametrize("wire", WIRES)
async def test_arg_02_no_arguments_are_the_empty_object(wire: str) -> None:
    """ARG-02: the empty text of a tool without parameters is {}, for the caller and in the next request."""
    fake = Fake(texts(wire, "fine"))
    output = await called_with(wire, "", fake)
    (call,) = output.tool_calls
    assert (call.arguments, call.arguments_error) == ({}, None)
    await ask(
        fake.at(wire), Input(continuation=output.continuation, tool_results=[ToolResult("c1", "ok")]), **options(wire)
    )
    assert arguments_sent(wire, fake.said[1]) in ([[""], ["{}"]] if wire in STRINGY else [[{}]])


@pytest.mark.parametrize("wire", WIRES)
async def test_arg_05_arguments_have_the_type_of_the_wire(wire: str) -> None:
    """ARG-05: JSON text where the wire wants text, an object where it wants an object; also where a server mixed them."""
    history = [Message("user", "a"), Message("assistant", tool_calls=(ToolCall("c1", "f", arguments={"a": 1}),)),
               Message("tool", "r", tool_call_id="c1")]  # fmt: skip
    fake = Fake(texts(wire, "x"))
    await ask(fake.at(wire), Input("go", history=history), **options(wire))
    assert arguments_sent(wire, fake.said[0]) == (['{"a":1}'] if wire in STRINGY else [{"a": 1}])


async def test_arg_05_an_object_from_a_chat_server_goes_back_as_text() -> None:
    """ARG-05: servers that send the object itself get the text that the wire asks for."""
    fake = Fake(completion({"tool_calls": [chat_call("c1", {"a": 1})]}), texts("chat", "x"))
    output = await ask(fake.openai(), "go", **CHAT)
    assert output.tool_calls[0].arguments == {"a": 1}
    await ask(fake.openai(), Input(continuation=output.continuation, tool_results=[ToolResult("c1", "ok")]), **CHAT)
    assert arguments_sent("chat", fake.said[1]) == ['{"a":1}']


@pytest.mark.parametrize("wire", WIRES)
async def test_enc_09_whole_numbers_stay_whole(wire: str) -> None:
    """ENC-09: 3 is 3 in both views of the arguments, and a number keeps the spelling that the model chose."""
    for text, value in (('{"a":3}', 3), ('{"a":3.0}', 3.0), ('{"a":12345678901234567890}', 12345678901234567890)):
        (call,) = (await called_with(wire, text, Fake())).tool_calls
        found = (call.arguments or {})["a"]
        assert (call.arguments_text, found, type(found)) == (text, value, type(value))


def object_of(properties: Body, *required: str, **more: Any) -> Body:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}}
SCHEMAS: dict[str, tuple[Body | None, str, str]] = {
    # case: schema, and what the schema sent to OpenAI and to Anthropic must say (an expression over `s`)
    "SCH-01": (
        object_of({"x": object_of({"b": STRING}), "l": {"type": "array", "items": object_of({"c": INTEGER})}}),
        "s['properties']['l']['anyOf'][0]['items']['additionalProperties'] is False"
        " and s['properties']['l']['anyOf'][0]['items']['required'] == ['c']",
        "s['properties']['l']['items']['additionalProperties'] is False",
    ),
    "SCH-03": (
        object_of({"m": {"type": "object", "additionalProperties": STRING}}, "m"),
        "not strict and s['properties']['m']['additionalProperties'] == {'type': 'string'}",
        "not strict and s['properties']['m']['additionalProperties'] == {'type': 'string'}",
    ),
    "SCH-05": (
        object_of({"title": STRING, "default": INTEGER, "format": STRING}, "title", "default", "format"),
        "set(s['properties']) == set(s['required']) == {'title', 'default', 'format'}",
        "set(s['properties']) == set(s['required']) == {'title', 'default', 'format'}",
    ),
    "SCH-07": (
        object_of({"o": {"anyOf": [{"$ref": "#/$defs/I"}, {"type": "null"}]}}, "o", **{"$defs": {"I": object_of({"a": STRING}, "a")}}),
        "'additionalProperties' in str(s) and 'missing' not in str(s)",
        "'additionalProperties' in str(s)",
    ),
    "SCH-09": (
        object_of({"n": {"$ref": "#/$defs/Node"}}, "n", **{"$defs": {"Node": NODE}}),
        "'$ref' in str(s)",
        "not strict",
    ),
    "SCH-10": (
        object_of({"a": STRING, "b": STRING}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
        "'anyOf' not in s and set(s['properties']) == {'a', 'b'}",
        "'anyOf' not in s and set(s['properties']) == {'a', 'b'}",
    ),
    "SCH-12": (
        object_of({"n": {"type": "integer", "enum": [60, 1440]}}, "n"),
        "s['properties']['n']['enum'] == [60, 1440]",
        "s['properties']['n']['enum'] == [60, 1440]",
    ),
    "SCH-14": (
        object_of({"l": {"type": "array", "items": object_of({"id": STRING}, "id", "toString")}}, "l"),
        "'toString' not in str(s)",
        "'toString' not in str(s)",
    ),
    "SCH-14, open": (  # without properties it is an open map that must have these keys: legal where nothing is strict
        object_of({"l": {"type": "array", "items": {"type": "object", "required": ["id"]}}}, "l"),
        "not strict and s['properties']['l']['items']['required'] == ['id']",
        "not strict and s['properties']['l']['items']['required'] == ['id']",
    ),
    "SCH-15": (
        object_of({"l": {"type": "array", "items": {"type": "string", "format": "x-own"}}}, "l"),
        "'format' not in s['properties']['l']['items']",
        "'format' not in s['properties']['l']['items']",
    ),
    "SCH-16": (
        object_of({"p": STRING, "e": {"type": "string", "enum": []}}, "p", "e"),
        "s['properties']['p'] == {'type': 'string'} and 'enum' not in str(s)",
        "s['properties']['p'] == {'type': 'string'} and 'enum' not in str(s)",
    ),
    "SCH-17": (
        object_of({"d": {"type": ["string", "null"], "description": "d"}}, "d"),
        "'null' in str(s['properties']['d']) and s['properties']['d']['description'] == 'd'",
        "'null' in str(s['properties']['d']) and s['properties']['d']['description'] == 'd'",
    ),
    "SCH-19": ({"type": "object"}, "s['properties'] == {}", "s['type'] == 'object'"),
    "SCH-20": ({}, "s['type'] == 'object' and s['additionalProperties'] is False", "s['type'] == 'object'"),
    "SCH-20, none": (None, "s['properties'] == {} and s['additionalProperties'] is False", "s['type'] == 'object'"),
    "SCH-21": (
        object_of({"p": {"type": "string", "pattern": "^(a|b)$"}}, "p", additionalProperties=False),
        "s['properties']['p']['pattern'] == '^(a|b)$'",
        "s['additionalProperties'] is False",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMAS)
@pytest.mark.parametrize("wire", WIRES)
async def test_schemas_are_sent_in_the_form_that_is_taken(wire: str, case: str) -> None:
    """SCH: each schema reaches the wire in a legal form that says the same, and the caller's own never changes."""
    schema, openai, anthropic = SCHEMAS[case]
    before = json.dumps(schema)
    tool = ToolDeclaration("f", "F", schema)
    fake = Fake(texts(wire, "x"))
    await ask(fake.at(wire), "go", Environment(tools=[tool]), **options(wire))
    sent = fake.sent[0]["tools"][0]
    function = sent["function"] if wire == "chat" else sent
    form = function["input_schema" if wire == "anthropic" else "parameters"]
    assert eval(anthropic if wire == "anthropic" else openai, {"s": form, "strict": function.get("strict", False)}), (
        form
    )
    assert json.dumps(schema) == before  # SCH-04
    assert tool.parameters == (schema or {})


async def test_sch_03_the_other_tools_stay_strict() -> None:
    """SCH-03, SCH-04: the tool with a free map goes loose alone, with its schema as declared."""
    free = object_of({"m": {"type": "object", "additionalProperties": True}}, "m")
    fake = Fake(texts("openai", "x"))
    env = Environment(
        tools=[ToolDeclaration("free", "", free), ToolDeclaration("closed", "", object_of({"a": STRING}))]
    )
    await ask(fake.openai(), "go", env)
    loose, strict = fake.sent[0]["tools"]
    assert (loose["strict"], loose["parameters"], strict["strict"]) == (False, free, True)


@pytest.mark.parametrize("wire", WIRES)
async def test_sch_02_nulls_that_only_strictness_asked_for_are_gone(wire: str) -> None:
    """SCH-02: an optional that came as null is absent, one that may be null keeps it; the text stays the provider's."""
    schema = object_of({"a": INTEGER, "b": STRING, "c": {"type": ["string", "null"]}}, "a")
    text = '{"a":1,"b":null,"c":null}'
    env = Environment(tools=[ToolDeclaration("f", "", schema)])
    output = await ask(Fake(calls(wire, "c1", arguments=text)).at(wire), "go", env, **options(wire))
    assert output.tool_calls[0].arguments == {"a": 1, "c": None}
    assert output.tool_calls[0].arguments_text == text
    assert reloaded(output.continuation).pending_tool_calls == output.tool_calls


@pytest.mark.parametrize("wire", WIRES)
async def test_tnm_01_a_history_with_calls_and_no_tools(wire: str) -> None:
    """TNM-01: the names in the history are declared where the API wants them, with calling off, and a notice says so."""
    history = [Message("user", "a"), Message("assistant", tool_calls=(ToolCall("c1", "old.tool"),)),
               Message("tool", "r", tool_call_id="c1")]  # fmt: skip
    fake = Fake(texts(wire, "x"))
    output = await ask(fake.at(wire), Input("sum up", history=history), Environment(), **options(wire))
    body = fake.sent[0]
    if wire == "anthropic":
        assert [tool["name"] for tool in body["tools"]] == [body["messages"][1]["content"][0]["name"]]
        assert body["tool_choice"] == {"type": "none"}
        assert "tool_stubs" in [notice.kind for notice in output.notices]
    else:
        assert "tools" not in body
    assert b"old.tool" not in fake.raw[0]


@pytest.mark.parametrize("names", [("catalog.query", "catalog_query"), ("x" * 64 + "a", "x" * 64 + "b"), ("f", "f")])
def test_tnm_02_names_are_refused_never_changed(names: tuple[str, str]) -> None:
    """TNM-02: what a provider would not take is refused where it is declared, so no two tools meet under one name."""
    with pytest.raises(ConfigurationError, match="name"):
        Environment(tools=[ToolDeclaration(name) for name in names])


async def test_tnm_02_names_in_history_stay_apart() -> None:
    """TNM-02: old names that had to be changed for the wire do not meet either."""
    made = (ToolCall("c1", "catalog.query"), ToolCall("c2", "catalog_query"))
    history = [Message("user", "a"), Message("assistant", tool_calls=made),
               *(Message("tool", "r", tool_call_id=call.id) for call in made)]  # fmt: skip
    fake = Fake(texts("anthropic", "x"))
    await ask(fake.anthropic(), Input("go", history=history), Environment())
    assert len({block["name"] for block in fake.said[0][1]["content"]}) == 2


FORCED: list[Any] = ["required", {"name": "f"}]
ASKED_TO_THINK: list[dict[str, Any]] = [
    THINK,
    {"reasoning_budget_tokens": 2048},
    {"provider_options": {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2048}}}},
    {"provider_options": {"anthropic": {"thinking": {"type": "adaptive"}}}},
]


@pytest.mark.parametrize("thinks", ASKED_TO_THINK)
@pytest.mark.parametrize("choice", FORCED)
async def test_tch_01_and_03_a_forced_tool_beside_thinking(choice: Any, thinks: dict[str, Any]) -> None:
    """TCH-01, TCH-03: the two exclude each other; found before sending, however it was asked for, and in every turn."""
    fake = Fake(message(thinking("t", "S"), tool_use("t1")))
    with pytest.raises(ConfigurationError, match="forced"):
        await ask(fake.anthropic(), "go", tool_choice=choice, **thinks)
    first = await ask(fake.anthropic(), "go", **thinks)
    results = [ToolResult("t1", "ok")]
    with pytest.raises(ConfigurationError, match="forced"):
        await ask(
            fake.anthropic(), Input(continuation=first.continuation, tool_results=results), tool_choice=choice, **thinks
        )
    assert len(fake.raw) == 1
