"""What generateContent refuses, in its own envelope; and what it takes though it looks odd."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from google import genai

from pollux_like.simulator import Simulator
from pollux_like.testing import answer, call, refuse, say, server_tool, think

from .conftest import Ask

FLASH = "gemini-3-flash-preview"
USER = {"role": "user", "parts": [{"text": "Hi"}]}
F = {"name": "f", "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
STAND_IN = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
TOOLS = [{"functionDeclarations": [F]}]


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def called(name: str = "f", *, signed: bool = True, **more: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": name, "args": {}, **more}}
    return {**part, "thoughtSignature": STAND_IN} if signed else part


def done(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"result": 1}, **more}}


def declared(**schema: Any) -> dict[str, Any]:
    return {"tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}


def config(**members: Any) -> dict[str, Any]:
    return {"generationConfig": members}


MEMBER = "Invalid JSON payload received. Unknown name"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("nothing said", {"contents": []}, "contents is not specified"),
    ("a role", {"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "Please use a valid role: user, model."),
    ("no parts", {"contents": [{"role": "user", "parts": []}]}, "contents[0].parts: contents.parts must not be empty"),
    ("an empty part", {"contents": [user({})]}, "contents[0].parts[0].data: required oneof field 'data'"),
    ("a part with two things", {"contents": [user({"text": "x", "inlineData": {"mimeType": "image/png", "data": "aGk="}})]},
     "oneof field 'data' is already set"),
    ("the model last", {"contents": [USER, model({"text": "x"})]}, "multiturn requests ends with a user role"),
    ("only the model", {"contents": [model({"text": "x"})]}, "single turn requests end with a user role"),
    ("instructions without parts", {"systemInstruction": {"parts": []}}, "system_instruction.parts"),
    ("an image as instructions", {"systemInstruction": user({"inlineData": {"mimeType": "image/png", "data": "aGk="}})},
     "Developer instruction must contain text parts only."),
    ("an unknown member", {"max_tokens": 3}, f'{MEMBER} "max_tokens": Cannot find field.'),
    ("an unknown member of a part", {"contents": [user({"text": "x", "cache_control": {}})]},
     f"{MEMBER} \"cache_control\" at 'contents[0].parts[0]': Cannot find field."),
    ("a signature inside of the call", {"contents": [USER, model(called(thoughtSignature="Uw==")), user(done())]},
     f"{MEMBER} \"thoughtSignature\" at 'contents[1].parts[0].function_call': Cannot find field."),
    ("an id on a declaration", {"tools": [{"functionDeclarations": [{"name": "f", "strict": True}]}]},
     f"{MEMBER} \"strict\" at 'tools[0].function_declarations[0]': Cannot find field."),
    ("a text that is none", {"contents": [user({"text": 5})]}, "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5"),
    ("contents that are no list", {"contents": "Hi"}, "Invalid value at 'contents'"),
    ("a list as text", {"contents": [user({"text": ["x"]})]}, "Proto field is not repeating, cannot start list."),
    ("a result that is no object", {"contents": [USER, model(called()), user(done(response="x"))]},
     "Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), \"x\""),
    ("data that is no base64", {"contents": [user({"inlineData": {"mimeType": "image/png", "data": "***"}})]}, "Base64 decoding failed"),
    ("data without a kind", {"contents": [user({"inlineData": {"data": "aGk="}})]}, "inline_data.mime_type"),
    ("data of an unknown kind", {"contents": [user({"inlineData": {"mimeType": "application/msword", "data": "aGk="}})]},
     "Unsupported MIME type: application/msword"),
    ("a file without an address", {"contents": [user({"fileData": {"mimeType": "application/pdf"}})]}, "file_data.file_uri"),
    ("calls of nobody", {"contents": [model(called()), user(done())]}, "function call turn comes immediately after a user turn"),
    ("a response of nobody", {"contents": [USER, user(done())]}, "function response turn comes immediately after a function call turn"),
    ("too few responses", {"contents": [USER, model(called(), called(signed=False)), user(done())]}, "number of function response parts"),
    ("a call passed over", {"contents": [USER, model(called()), USER]}, "number of function response parts"),
    ("responses in two contents", {"contents": [USER, model(called(), called(signed=False)), user(done()), user(done())]},
     "number of function response parts"),
    ("another name", {"contents": [USER, model(called()), user(done("g"))]}, "does not match the function call name 'f'"),
    ("another id", {"contents": [USER, model(called(id="a")), user(done(id="b"))]}, "Function response id 'b'"),
    ("one id twice", {"contents": [USER, model(called(id="a"), called(signed=False, id="b")), user(done(id="a"), done(id="a"))]},
     "Function response id 'a'"),
    ("a call by the user", {"contents": [user(called())]}, "a content of the role user cannot hold this part"),
    ("a response by the model", {"contents": [USER, model(done()), USER]}, "a content of the role model cannot hold this part"),
    ("a call without a name", {"contents": [USER, model(called("")), user(done(""))]}, "function_call.name: Name cannot be empty"),
    ("a name that is none", {"tools": [{"functionDeclarations": [{"name": "1f"}]}]}, "[FIELD_INVALID] Invalid function name."),
    ("a long name", {"tools": [{"functionDeclarations": [{"name": "f" * 65}]}]}, "maximum length of 64"),
    ("a name twice", {"tools": [{"functionDeclarations": [F, F]}]}, "Duplicate function declaration found: f"),
    ("both forms of parameters", {"tools": [{"functionDeclarations": [{**F, "parameters": {"type": "object"}}]}]}, "mutually exclusive"),
    ("JSON Schema of no object", {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "string"}}]}]},
     "should be of type object"),
    ("JSON Schema in the old field", declared(type="object", properties={"a": {"type": "string", "const": "x"}}),
     f"{MEMBER} \"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field."),
    ("a reference in the old field", declared(**{"type": "object", "$defs": {}}), f'{MEMBER} "$defs"'),
    ("closed objects in the old field", declared(type="object", additionalProperties=False), f'{MEMBER} "additionalProperties"'),
    ("a type list in the old field", declared(type=["object", "null"]), "Proto field is not repeating, cannot start list."),
    ("an unknown type", declared(type="object", properties={"a": {"type": "any"}}), "'any' is no type"),
    ("numbers in an enum", declared(type="object", properties={"a": {"type": "integer", "enum": ["1"]}}), "enum: only allowed for STRING type"),
    ("an unknown format", declared(type="object", properties={"a": {"type": "string", "format": "uri"}}),
     "only 'enum' and 'date-time' are supported for STRING type"),
    ("an array of nothing", declared(type="object", properties={"a": {"type": "array"}}), "properties[a].items: missing field."),
    ("a required name that is none", declared(type="object", required=["a"]), "parameters.required[0]: property is not defined"),
    ("a choice without tools", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "set without function_declarations"),
    ("an unknown mode", {"tools": TOOLS, "toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "function_calling_config.mode"),
    ("names beside AUTO", {"tools": TOOLS, "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}},
     "only when mode is ANY"),
    ("an undeclared name", {"tools": TOOLS, "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}}},
     "allowed function 'g' is not declared"),
    ("heat", config(temperature=2.1), "temperature must be in the range [0.0, 2.0]"),
    ("a mass above one", config(topP=1.5), "top_p must be in the range [0.0, 1.0]"),
    ("no room", config(maxOutputTokens=0), "max_output_tokens must be positive"),
    ("a seed of 64 bits", config(seed=2**31), "Invalid value at 'generation_config.seed' (TYPE_INT32)"),
    ("six stops", config(stopSequences=list("abcdef")), "at most 5 stop sequences"),
    ("an unknown form of output", config(responseMimeType="text/html"), "allowed mimetypes"),
    ("a schema for plain text", config(responseJsonSchema={"type": "object"}), "requires response_mime_type"),
    ("two schemas", config(responseMimeType="application/json", responseJsonSchema={}, responseSchema={"type": "object"}), "Only one of"),
    ("a level and a budget", config(thinkingConfig={"thinkingLevel": "LOW", "thinkingBudget": 5}), "only one of thinking budget"),
    ("a level that is none", config(thinkingConfig={"thinkingLevel": "XHIGH"}), "Thinking level XHIGH is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(gemini: Ask, body: dict[str, Any], words: str) -> None:
    response = gemini(**body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT"), response.text
    assert words in error["message"]


OLDER: list[tuple[str, dict[str, Any], str]] = [
    ("gemini-2.5-flash", {"tools": [*TOOLS, {"googleSearch": {}}]}, "Tool use with function calling is unsupported"),
    ("gemini-2.5-flash", {"tools": TOOLS, **config(responseMimeType="application/json")}, "mime type: 'application/json' is unsupported"),
    ("gemini-2.5-flash", config(thinkingConfig={"thinkingLevel": "LOW"}), "Thinking level is not supported for this model."),
    ("gemini-2.5-flash", config(thinkingConfig={"thinkingBudget": 24577}), "choose a value between 1 and 24576"),
    ("gemini-2.5-flash-lite", config(thinkingConfig={"thinkingBudget": 511}), "choose a value between 512 and 24576"),
    ("gemini-2.5-pro", config(thinkingConfig={"thinkingBudget": 0}), "This model only works in thinking mode."),
    ("gemini-2.0-flash", config(thinkingConfig={"thinkingBudget": 5}), "Thinking is not supported"),
    ("gemini-3-pro-preview", config(thinkingConfig={"thinkingLevel": "MINIMAL"}), "MINIMAL is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "words"), OLDER)
def test_refused_by_model(gemini: Ask, name: str, body: dict[str, Any], words: str) -> None:
    assert words in gemini(model=name, **body).json()["error"]["message"]


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("snake case and nulls", {"system_instruction": {"parts": [{"text": "x"}], "role": "model"}, "safety_settings": None,
                              "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}]}),
    ("no role", {"contents": [{"parts": [{"text": "Hi"}]}]}),
    ("two contents of the user", {"contents": [USER, USER]}),
    ("a stream's chunks as contents", {"contents": [USER, model({"text": "a"}), model(called()), model({"text": ""}), user(done())]}),
    ("unsigned later calls", {"contents": [USER, model(called(), called("g", signed=False)), user(done(), done("g"))]}),
    ("unsigned calls of a past turn", {"contents": [USER, model(called(signed=False)), user(done()), model({"text": "x"}), USER]}),
    ("responses by id in another order", {"contents": [USER, model(called("f", id="a"), called("g", signed=False, id="b")),
                                                       user(done("g", id="b"), done("f", id="a"))]}),
    ("ids of the calls only", {"contents": [USER, model(called(id="a")), user(done())]}),
    ("a call of an undeclared function", {"tools": TOOLS, "contents": [USER, model(called("other")), user(done("other"))]}),
    ("numbers as text", config(maxOutputTokens="5", temperature="0.5")),
    ("both kinds of tools and JSON", {"tools": [*TOOLS, {"googleSearch": {}}], **config(responseMimeType="application/json")}),
    ("a level in lower case", config(thinkingConfig={"thinking_level": "low", "includeThoughts": True})),
    ("a choice without functions beside Google's own tools on newer models",
     {"tools": [{"googleSearch": {}}],
      "toolConfig": {"includeServerSideToolInvocations": True, "functionCallingConfig": {"mode": "AUTO"}}}),
    ("a budget on a newer model", config(thinkingConfig={"thinkingBudget": -1})),
    ("the reduced form", declared(type="OBJECT", properties={"a": {"type": "STRING", "enum": ["x"], "nullable": True}}, required=["a"])),
]  # fmt: skip


@pytest.mark.parametrize("body", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
def test_accepted_though_it_looks_odd(gemini: Ask, body: dict[str, Any]) -> None:
    response = gemini(**body)
    assert response.status_code == 200, response.text


def test_every_violation_is_named_with_its_place(gemini: Ask) -> None:
    error = gemini(foo=1, **config(bar=2)).json()["error"]
    (details,) = error["details"]
    assert details["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert [one.get("field") for one in details["fieldViolations"]] == [None, "generation_config"]
    assert error["message"].splitlines() == [one["description"] for one in details["fieldViolations"]]


def test_a_value_that_no_rule_foresaw_is_a_400(gemini: Ask) -> None:
    for body in ({"contents": [None]}, {"contents": [user("x")]}, {"tools": [5]}, {"generationConfig": []}):  # type: ignore[arg-type]
        assert gemini(**body).status_code == 400


def test_keys_and_models(gemini: Ask, sim: Simulator) -> None:
    url = sim.base_url("gemini") + f"/v1beta/models/{FLASH}:generateContent"
    nobody = httpx2.post(url, json={"contents": [USER]})
    assert (nobody.status_code, nobody.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert httpx2.post(url + "?key=k", json={"contents": [USER]}).status_code == 200
    with Simulator(models=["gemini-x"], api_key="right") as one:
        url = one.base_url("gemini") + "/v1beta/models/{}:generateContent"
        wrong = httpx2.post(url.format("gemini-x"), json={}, headers={"x-goog-api-key": "wrong"})
        assert wrong.json()["error"]["details"][0]["reason"] == "API_KEY_INVALID"
        other = httpx2.post(url.format("gemini-y"), json={}, headers={"x-goog-api-key": "right"}).json()["error"]
        assert other["message"].startswith("models/gemini-y is not found for API version v1beta")
        listed = httpx2.get(one.base_url("gemini") + "/v1beta/models", headers={"x-goog-api-key": "right"}).json()
        assert [found["name"] for found in listed["models"]] == ["models/gemini-x"]


def test_too_many_tokens() -> None:
    with Simulator(max_input_tokens=5) as sim:
        url = sim.base_url("gemini") + f"/v1/models/{FLASH}:generateContent"
        body = {"contents": [user({"text": "word " * 20})]}
        error = httpx2.post(url, json=body, headers={"x-goog-api-key": "k"}).json()["error"]
        assert "exceeds the maximum number of tokens allowed (5)." in error["message"]


def test_tokens_are_counted_by_the_rules_of_the_conversation(sim: Simulator, http: httpx2.Client) -> None:
    url = sim.base_url("gemini") + f"/v1beta/models/{FLASH}:countTokens"
    headers = {"x-goog-api-key": "k"}
    assert http.post(url, json={"contents": [USER]}, headers=headers).json()["totalTokens"] > 0
    whole = {"generateContentRequest": {"model": f"models/{FLASH}", "contents": [USER], "tools": TOOLS}}
    assert http.post(url, json=whole, headers=headers).json()["totalTokens"] > 10
    for body in (
        {},
        {"contents": [USER], "tools": TOOLS},
        {"contents": [user(done())]},
        {"generateContentRequest": {"contents": []}},
    ):
        assert http.post(url, json=body, headers=headers).status_code == 400, body


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 504])
def test_a_scripted_failure_has_googles_envelope(gemini: Ask, sim: Simulator, status: int) -> None:
    sim.fail(status, retry_after=2.5 if status == 429 else None)
    response = gemini()
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, status)
    assert error["status"].isupper()
    if status == 429:
        assert "retry-after" not in response.headers
        assert error["details"][-1] == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}


def candidate(response: httpx2.Response) -> dict[str, Any]:
    return response.json()["candidates"][0]


def test_every_word_of_the_script_on_this_wire(gemini: Ask, sim: Simulator) -> None:
    thoughts = config(thinkingConfig={"includeThoughts": True})
    sim.reply(
        think("Hm"), say("Look"), server_tool("code_execution", {"code": "print(1)"}, result="1\n"),
        server_tool("web_search", {"query": "q"}, result=[]), call("f", {"a": "x"}, id="c1"), call("f"),
    )  # fmt: skip
    parts = candidate(gemini(tools=TOOLS, **thoughts))["content"]["parts"]
    kinds = [next(key for key in part if key not in ("thought", "thoughtSignature")) for part in parts]
    assert kinds == ["text", "text", "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionCall", "functionCall"]  # fmt: skip
    assert parts[0]["thought"] is True
    assert parts[3]["codeExecutionResult"] == {"outcome": "OUTCOME_OK", "output": "1\n"}
    assert parts[4]["toolCall"]["id"] == parts[5]["toolResponse"]["id"]
    assert ["thoughtSignature" in part for part in parts[-2:]] == [True, False]
    assert (parts[-2]["functionCall"]["id"], "id" in parts[-1]["functionCall"]) == ("c1", False)
    sim.reply(think("Hm"), say("Shown?"))
    assert [part.get("text") for part in candidate(gemini())["content"]["parts"]] == ["Shown?"]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (answer(say("x")), "STOP"),
        (answer(call("f")), "STOP"),
        (answer(say("x"), finish="length"), "MAX_TOKENS"),
        (answer(finish="content_filter"), "SAFETY"),
        (answer(say("x"), finish="pause"), "CONTINUATION"),
        (answer(call("f", "{broken")), "MALFORMED_FUNCTION_CALL"),
        (answer(call("f", '{"a": "b', cut=True)), "MAX_TOKENS"),
        (answer(native="MISSING_THOUGHT_SIGNATURE"), "MISSING_THOUGHT_SIGNATURE"),
        (answer(native="RECITATION"), "RECITATION"),
    ],
)
def test_how_a_reply_ends(gemini: Ask, sim: Simulator, made: Any, reason: str) -> None:
    sim.reply(made)
    ended = candidate(gemini())
    assert ended["finishReason"] == reason
    assert "finishMessage" not in ended or ended["finishMessage"].startswith(("Model generated", "Malformed function"))


def test_a_refusal_blocks_the_prompt(gemini: Ask, sim: Simulator) -> None:
    sim.reply(refuse("I will not."))
    body = gemini().json()
    assert body["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "I will not."}
    assert "candidates" not in body


def test_a_continuation_token_goes_with_its_contents(gemini: Ask, sim: Simulator) -> None:
    sim.reply(answer(say("Half"), finish="pause"))
    token = candidate(gemini(contents=[USER]))["continuationToken"]
    assert gemini(contents=[USER], continuationToken=token).status_code == 200
    assert "other contents" in gemini(contents=[USER, USER], continuationToken=token).text
    assert "Invalid continuation token" in gemini(contents=[USER], continuationToken="bm9uZQ==").text


def test_tokens_of_thought_and_cache_stand_apart(gemini: Ask, sim: Simulator) -> None:
    sim.reply(answer(say("x"), input_tokens=100, output_tokens=30, reasoning_tokens=20, cached_tokens=40))
    usage = gemini().json()["usageMetadata"]
    counts = [usage[f"{name}TokenCount"] for name in ("prompt", "candidates", "thoughts", "total")]
    assert counts == [100, 10, 20, 130]
    assert usage["cachedContentTokenCount"] == 40


def test_a_stream_is_asked_for_by_its_path(gemini: Ask, sim: Simulator) -> None:
    sim.reply(say("One two three"), times=2)
    assert gemini(verb="streamGenerateContent").status_code == 400
    lines = [line for line in gemini(verb="streamGenerateContent?alt=sse").text.splitlines() if line]
    assert all(line.startswith("data: {") for line in lines)
    assert ["finishReason" in line for line in lines] == [False, False, False, True]
    assert sim.requests[-1].path.endswith(":streamGenerateContent")


def test_a_second_run_of_code_has_a_finish_reason_in_the_middle(gemini: Ask, sim: Simulator) -> None:
    run = server_tool("code_execution", {"code": "1"}, result="1")
    sim.reply(run, run, say("Done"))
    lines = [line for line in gemini(verb="streamGenerateContent?alt=sse").text.splitlines() if line]
    assert ["finishReason" in line for line in lines] == [False, False, True, False, False, True]


@pytest.fixture
def sdk(sim: Simulator) -> genai.Client:
    options = genai.types.HttpOptions(base_url=sim.base_url("gemini"))
    return genai.Client(vertexai=False, api_key="sim-key", http_options=options)


def test_the_vendors_chat_keeps_going(sdk: genai.Client, sim: Simulator) -> None:
    types = genai.types
    tool = types.Tool(
        function_declarations=[types.FunctionDeclaration(name="f", parameters_json_schema=F["parametersJsonSchema"])]
    )
    chat = sdk.chats.create(model=FLASH, config=types.GenerateContentConfig(tools=[tool]))
    for streamed in (False, True):
        sim.reply(say("I look."), call("f", {"a": "x"}), call("f", {"a": "y"}, id="mine"))
        sim.reply(say("All done."))
        first = chat.send_message_stream("Go") if streamed else [chat.send_message("Go")]
        calls = [one for chunk in first for one in chunk.function_calls or ()]
        assert [one.args for one in calls] == [{"a": "x"}, {"a": "y"}]
        results = [
            types.Part(function_response=types.FunctionResponse(name="f", id=one.id, response={"r": 1}))
            for one in calls
        ]
        second = chat.send_message_stream(results) if streamed else [chat.send_message(results)]
        assert "".join(chunk.text or "" for chunk in second) == "All done."
    assert [request.status for request in sim.requests] == [200] * 4


def test_the_vendors_client_lists_and_counts(sdk: genai.Client) -> None:
    assert FLASH in [(one.name or "").removeprefix("models/") for one in sdk.models.list()]
    assert sdk.models.get(model=FLASH).name == f"models/{FLASH}"
    assert (sdk.models.count_tokens(model=FLASH, contents="Hi there").total_tokens or 0) > 0


def test_a_client_of_vertex_is_answered_too(sim: Simulator) -> None:
    options = genai.types.HttpOptions(base_url=sim.base_url("gemini"))
    client = genai.Client(vertexai=True, api_key="sim-key", http_options=options)
    sim.reply(say("Hello"))
    assert client.models.generate_content(model=FLASH, contents="Hi").text == "Hello"
    assert f"/publishers/google/models/{FLASH}:generateContent" in sim.requests[-1].path
