"""What is sent: results, settings, sources and tools in Gemini's words, and what is refused before anything is."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from gemini.wire import ENV, FLASH, Body, Fake, answer, call, next_input, text

from pollux_like import (
    ConfigurationError,
    Environment,
    Input,
    Message,
    Source,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    interact,
)
from pollux_like.schemas import normalise

pytestmark = pytest.mark.anyio

OLD = "gemini-2.5-flash"


async def sent(env: Environment = ENV, model: str = FLASH, given: Input | None = None, **arguments: Any) -> Body:
    """The body of one turn."""
    fake = Fake(answer(text("{}")))
    await interact(env, given or Input("go"), fake.config(model), **arguments)
    return fake.sent[0]


async def response_of(content: str, *, is_error: bool = False) -> str:
    """The text of the response member that a tool result becomes."""
    fake = Fake(answer(call(signature="Uw==")), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    results = [ToolResult(output.tool_calls[0].id, content, is_error)]
    await interact(ENV, Input(continuation=output.continuation, tool_results=results), fake.config())
    return fake.asked[1].content.decode().split('"response":', 1)[1].removesuffix("}}]}]}")


@pytest.mark.parametrize(
    ("content", "response"),
    [
        ("[1,2]", '{"result":"[1,2]"}'),
        ("plain text", '{"result":"plain text"}'),
        ("", '{"result":""}'),
        ('{"b": 10000000000000000001, "a": 1.0}', '{"b":10000000000000000001,"a":1.0}'),
        ("{not json", '{"result":"{not json"}'),
        ('{"a": 1, "a": 2}', '{"result":"{\\"a\\": 1, \\"a\\": 2}"}'),
        ("{}", "{}"),
    ],
)
async def test_a_result_is_an_object_ptr_06(content: str, response: str) -> None:
    assert await response_of(content) == response


@pytest.mark.parametrize("content", ['{"schema":{"$ref":"#/$defs/X"}}', '{"l":[{"$defs":{}}]}'])
async def test_references_in_a_result_go_as_text_ptr_08(content: str) -> None:
    assert json.loads(await response_of(content)) == {"result": content}


@pytest.mark.parametrize("content", ["no such file", '{"code": 1}', ""])
async def test_a_failure_stands_under_error(content: str) -> None:
    assert json.loads(await response_of(content, is_error=True)) == {"error": content or "Error"}


async def test_portable_history_in_gemini_roles() -> None:
    history = [
        Message("user", "one"), Message("assistant", "A"), Message("assistant", "", (ToolCall("id with blanks", "9 lives", '{"x":1}'),)),
        Message("tool", "r", tool_call_id="id with blanks"), Message("user", "two"),
    ]  # fmt: skip
    contents = (await sent(given=Input("three", history=history)))["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user", "user"]
    made = contents[1]["parts"][1]["functionCall"]
    assert contents[1]["parts"][0] == text("A")  # merged: a call must follow a user's content
    assert made["name"].startswith("_9_lives")
    assert made["args"] == {"x": 1}
    assert contents[2]["parts"][0]["functionResponse"]["id"] == made["id"] != "id with blanks"


async def test_settings_in_geminis_words() -> None:
    body = await sent(max_tokens=9, temperature=0.5, top_p=0.4, seed=7, stop=["a", "b"])
    assert body["generationConfig"] == {
        "maxOutputTokens": 9, "temperature": 0.5, "topP": 0.4, "seed": 7, "stopSequences": ["a", "b"],
    }  # fmt: skip
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


@pytest.mark.parametrize(
    ("model", "arguments", "config"),
    [
        (FLASH, {"reasoning_effort": "minimal"}, {"thinkingLevel": "MINIMAL", "includeThoughts": True}),
        ("gemini-3-pro-preview", {"reasoning_effort": "high"}, {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-9-new", {"reasoning_effort": "xhigh"}, {"thinkingLevel": "XHIGH", "includeThoughts": True}),
        (OLD, {"reasoning_effort": "none"}, {"thinkingBudget": 0}),
        (OLD, {"reasoning_effort": "low"}, {"thinkingBudget": 1024, "includeThoughts": True}),
        (OLD, {"reasoning_budget_tokens": 500}, {"thinkingBudget": 500, "includeThoughts": True}),
    ],
)
async def test_thinking_by_level_or_budget(model: str, arguments: dict[str, Any], config: Body) -> None:
    assert (await sent(model=model, **arguments))["generationConfig"] == {"thinkingConfig": config}


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        ("auto", {"mode": "AUTO"}), ("required", {"mode": "ANY"}), ("none", {"mode": "NONE"}),
        ({"name": "g"}, {"mode": "ANY", "allowedFunctionNames": ["g"]}),
    ],
)  # fmt: skip
async def test_tool_choice(choice: Any, calling: Body) -> None:
    assert (await sent(tool_choice=choice))["toolConfig"] == {"functionCallingConfig": calling}


def own(**options: Any) -> dict[str, Any]:
    return {"provider_options": {"gemini": options}}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (FLASH, {"parallel_tool_calls": False}, "no switch for parallel calls"),
    (FLASH, {"reasoning_budget_tokens": 100}, "give reasoning_effort"),
    (FLASH, {"reasoning_effort": "none"}, "no reasoning_effort 'none'"),
    ("gemini-3-pro-preview", {"reasoning_effort": "medium"}, "no reasoning_effort 'medium'"),
    ("gemini-2.0-flash", {"reasoning_effort": "low"}, "does not think"),
    ("gemini-2.5-pro", {"reasoning_budget_tokens": 1}, "128 to 32768"),
    (OLD, {"reasoning_effort": "low", "reasoning_budget_tokens": 100}, "Give only one"),
    (OLD, {"output": {"type": "object", "properties": {}}}, "does not take tools together with output"),
    (OLD, own(tools=[{"googleSearch": {}}]), "does not take functions together with googleSearch"),
    (FLASH, {"stop": list("abcdef")}, "Use at most 5"),
    (FLASH, {"seed": 2**40}, "Gemini's most"),
    (FLASH, {"temperature": 1, **own(generationConfig={"temperature": 0})}, "generationConfig.temperature"),
    (FLASH, {"reasoning_effort": "low", **own(generationConfig={"thinkingConfig": {"thinkingBudget": 1}})}, "only one"),
    (FLASH, {"tool_choice": "auto", **own(toolConfig={"functionCallingConfig": {"mode": "ANY"}})}, "beside an argument"),
    (FLASH, own(toolConfig={"functionCallingConfig": {"streamFunctionCallArguments": True}}), "in pieces"),
    (FLASH, own(generationConfig={"candidateCount": 2}), "several answers"),
    (FLASH, own(contents=[]), "'contents'"),
    (FLASH, own(generation_config={}), "camelCase"),
    (FLASH, own(schemas="xml"), "schemas"),
    (FLASH, own(tools=[{"functionDeclarations": [{"name": "f"}]}]), "the name 'f' of a declared one"),
    ("../x", {}, "no model name"),
    ("a?b", {}, "no model name"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "arguments", "words"), REFUSED)
async def test_what_gemini_cannot_do_is_refused_before_anything_is_sent(
    model: str, arguments: dict[str, Any], words: str
) -> None:
    fake = Fake()
    with pytest.raises(ConfigurationError, match=words):
        await interact(ENV, Input("go"), fake.config(model), **arguments)
    assert fake.asked == []


async def test_options_are_sent_as_they_are_and_merged() -> None:
    safety = [{"category": "X", "threshold": "Y"}]
    body = await sent(
        max_tokens=5, tool_choice="required",
        **own(safetySettings=safety, generationConfig={"responseModalities": ["TEXT"]}, tools=[{"googleSearch": {}}],
              toolConfig={"includeServerSideToolInvocations": True}),
    )  # fmt: skip
    assert body["safetySettings"] == safety
    assert body["generationConfig"] == {"maxOutputTokens": 5, "responseModalities": ["TEXT"]}
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}, "includeServerSideToolInvocations": True}
    assert [list(tool) for tool in body["tools"]] == [["functionDeclarations"], ["googleSearch"]]


async def test_output_beside_tools_on_newer_models_sot_03() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    body = await sent(output=schema)
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    assert "functionDeclarations" in body["tools"][0]
    assert "generationConfig" in await sent(env=Environment(), model=OLD, output=schema)


async def test_sources_of_every_kind_stand_first() -> None:
    env = Environment(sources=[
        Source.from_text("words", name="note"), Source.from_bytes(b"\x89PNG", mime_type="image/png"),
        Source.from_bytes(b"%PDF", mime_type="application/pdf"), Source.from_uri("https://example.com/a.png"),
    ])  # fmt: skip
    assert (await sent(env=env))["contents"] == [
        {
            "role": "user",
            "parts": [
                text("[note]\nwords"),
                {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}},
                {"inlineData": {"mimeType": "application/pdf", "data": base64.b64encode(b"%PDF").decode()}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.png"}},
                text("go"),
            ],
        }
    ]


async def test_each_request_begins_as_the_one_before() -> None:
    fake = Fake(answer(call(signature="Uw==")), answer(text("a")), answer(text("b")))
    output = await interact(ENV, Input("go"), fake.config())
    for _ in range(2):
        before = fake.contents
        output = await interact(ENV, next_input(output), fake.config())
        assert fake.contents[: len(before)] == before


async def test_results_and_a_question_are_two_contents() -> None:
    fake = Fake(answer(call(), call("g")), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    given = next_input(output)
    await interact(ENV, Input("and?", continuation=given.continuation, tool_results=given.tool_results), fake.config())
    assert [len(content["parts"]) for content in fake.contents] == [1, 2, 2, 1]


async def test_the_reduced_form_where_it_is_asked_for() -> None:
    body = await sent(env=Environment(tools=[ToolDeclaration("f", "F", TREE)]), **own(schemas="openapi"))
    (declared,) = body["tools"][0]["functionDeclarations"]
    assert declared.keys() == {"name", "description", "parameters"}


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node", "description": "top"}},
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
            },
        }
    },
}


def json_form(schema: Body) -> Body:
    return normalise(schema, "gemini", strict=True, name="f").schema


def reduced(schema: Body) -> Body:
    return normalise(schema, "gemini-openapi", strict=True, name="f").schema


def of(**properties: Any) -> Body:
    return {"type": "object", "properties": properties}


def test_names_that_look_like_keywords_stay_sch_05() -> None:
    schema = {
        **of(title={"type": "string"}, default={"type": "integer"}, format={"type": "string"}),
        "required": ["title"],
    }
    assert json_form(schema) == schema == reduced(schema)


def test_references_are_written_out_in_the_reduced_form_sch_07() -> None:
    issue = of(id={"type": "string"})
    schema = {
        **of(o={"anyOf": [{"$ref": "#/$defs/Issue"}, {"type": "null"}], "description": "why"}),
        "$defs": {"Issue": issue},
    }
    result = reduced(schema)
    assert "$" not in json.dumps(result)
    assert result["properties"]["o"]["nullable"] is True
    assert result["properties"]["o"]["description"] == "why"
    assert "id" in json.dumps(result["properties"]["o"])


def test_recursion_ends_sch_09() -> None:
    assert json_form(TREE)["$defs"] == TREE["$defs"]
    assert json_form(TREE)["properties"]["root"] == {"anyOf": [{"$ref": "#/$defs/Node"}], "description": "top"}
    normal = normalise(TREE, "gemini-openapi", strict=True, name="f")
    assert "$" not in json.dumps(normal.schema)
    assert normal.schema["properties"]["root"]["properties"]["value"] == {"type": "integer"}
    assert any("recursive" in loss for loss in normal.losses)


def test_integer_enums_keep_type_and_values_sch_12() -> None:
    schema = of(n={"type": "integer", "enum": [60, 1440]})
    assert json_form(schema) == schema
    number = reduced(schema)["properties"]["n"]
    assert number == {"type": "integer", "minimum": 60, "maximum": 1440, "description": "One of: 60, 1440"}


@pytest.mark.parametrize("form", [json_form, reduced])
def test_required_names_are_properties_sch_14(form: Any) -> None:
    assert form({**of(a={"type": "string"}), "required": ["a", "ghost"]})["required"] == ["a"]
    assert "required" not in form({**of(a={"type": "string"}), "required": ["ghost"]})


def test_unknown_formats_go_to_the_description_sch_15() -> None:
    schema = of(
        l={"type": "array", "items": {"type": "string", "format": "uri"}}, t={"type": "string", "format": "date-time"}
    )
    result = reduced(schema)["properties"]
    assert result["l"]["items"] == {"type": "string", "description": "Format: uri"}
    assert result["t"] == {"type": "string", "format": "date-time"}


@pytest.mark.parametrize("form", [json_form, reduced])
def test_an_empty_enum_is_none_sch_16(form: Any) -> None:
    assert form(of(a={"type": "string"}, b={"type": "string", "enum": []}))["properties"] == {
        "a": {"type": "string"}, "b": {"type": "string"},
    }  # fmt: skip


def test_type_lists_become_nullable_sch_17() -> None:
    schema = of(
        a={"type": ["string", "null"], "description": "d"},
        b={"anyOf": [{"type": "string"}, {"type": "null", "description": "none"}]},
        c={"type": ["string", "integer", "null"]},
    )
    assert reduced(schema)["properties"] == {
        "a": {"type": "string", "description": "d", "nullable": True},
        "b": {"type": "string", "nullable": True},
        "c": {"nullable": True, "anyOf": [{"type": "string"}, {"type": "integer"}]},
    }


@pytest.mark.parametrize("form", [json_form, reduced])
@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_no_arguments_sch_19_sch_20(form: Any, schema: Body) -> None:
    assert form(schema) == {"type": "object", "properties": {}}


def test_json_schema_keeps_what_it_can_sch_21() -> None:
    schema = {**of(a={"type": "string", "pattern": "^(a|b)$", "minLength": 1}), "additionalProperties": False}
    normal = normalise(schema, "gemini", strict=True, name="f")
    assert normal.schema == of(a={"type": "string", "pattern": "^(a|b)$", "minLength": 1})
    assert normal.losses == ()
    mapped = normalise(
        of(m={"type": "object", "additionalProperties": {"type": "integer"}}), "gemini", strict=True, name="f"
    )
    assert "additionalProperties" not in mapped.schema["properties"]["m"]
    assert len(mapped.losses) == 1


def test_unknown_keywords_are_told_not_sent_in_the_reduced_form() -> None:
    normal = normalise(
        of(n={"type": "number", "exclusiveMinimum": 0, "description": "N."}), "gemini-openapi", strict=True, name="f"
    )
    assert normal.schema["properties"]["n"] == {"type": "number", "description": "N. exclusiveMinimum: 0"}
    assert len(normal.losses) == 1
