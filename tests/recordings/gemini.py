"""Gemini's generateContent as recorded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from pollux_like import Environment, Message, ToolCall, ToolDeclaration

from .collection import Exchange, compact
from .shape import Asked, Dialect, Expected, passages, without_nulls

BLANK = "(nothing)"
"""Said where a recorded user message is blank, which our messages cannot be."""
STAND_INS = tuple(
    base64.b64encode(word).decode()
    for word in (b"context_engineering_is_the_way_to_go", b"skip_thought_signature_validator")
)

OMITTED_THERE = {
    "functionCall.id": "this client does not send the ids of the API back",
    "functionResponse.id": "as above",
}
OMITTED_HERE = {
    "functionCall.id": "the API gave no id; this client made one up and sends it, we keep ours to ourselves",
    "functionResponse.id": "as above",
}


def with_path(exchange: Exchange) -> dict[str, Any]:
    """The recorded body with what stands in the path: the model, and whether it streams."""
    found = re.search(r"models/([^/:]+):(generateContent|streamGenerateContent)", exchange.path)
    assert found
    assert exchange.request is not None
    return {**exchange.request, "model": found[1], "stream": found[2] == "streamGenerateContent"}


def asked(body: Mapping[str, Any]) -> Asked:
    """Every member of the recorded body in our words; one without a word of ours fails."""
    rest = _camel(without_nulls(dict(body)))
    arguments: dict[str, Any] = {}
    options: dict[str, Any] = {}
    config = dict(rest.pop("generationConfig", {}))
    for theirs, ours in (("maxOutputTokens", "max_tokens"), ("temperature", "temperature")):
        if theirs in config:
            arguments[ours] = config.pop(theirs)
    if config.pop("responseMimeType", None):
        arguments["output"] = config.pop("responseJsonSchema")
    thinking = config.pop("thinkingConfig", {})
    if "thinkingLevel" in thinking:
        assert thinking["includeThoughts"]  # what we send with an effort
        arguments["reasoning_effort"] = thinking["thinkingLevel"].lower()
    elif thinking:
        assert thinking == {"thinkingBudget": 0}
        arguments["reasoning_effort"] = "none"
    if config:
        options["generationConfig"] = config
    if "safetySettings" in rest:
        options["safetySettings"] = rest.pop("safetySettings")
    declared: list[ToolDeclaration] = []
    for tool in rest.pop("tools", []):
        for one in tool.pop("functionDeclarations", []):
            declared.append(ToolDeclaration(one["name"], one["description"], _schema(one)))
        if tool:
            options.setdefault("tools", []).append(tool)
    calling = rest.pop("toolConfig", {}).get("functionCallingConfig", {})
    if calling.get("mode") == "ANY":
        assert set(calling["allowedFunctionNames"]) == {tool.name for tool in declared}
        arguments["tool_choice"] = "required"
    elif calling:
        options["toolConfig"] = {"functionCallingConfig": calling}
    environment = Environment(instructions=_instructions(rest.pop("systemInstruction", None)), tools=declared)
    model, streaming = rest.pop("model"), rest.pop("stream")
    items: list[tuple[str, Any]] = []
    unsaid: list[dict[str, Any]] = []
    count = 0
    for content in rest.pop("contents"):
        if content["role"] == "model":
            items.extend(("replied", part) for part in content["parts"])
            continue
        for part in content["parts"]:
            if "fileData" in part:
                unsaid.append(part)
            elif "functionResponse" in part:
                items.append(("said", _result(part["functionResponse"], f"call {count}")))
                count += 1
            else:
                items.append(("said", Message("user", part["text"] or BLANK)))
    assert not rest, f"members of the recorded request without a word of ours: {sorted(rest)}"
    return Asked(model, environment, arguments, options, streaming, passages(items), None, tuple(unsaid))


def _result(answer: dict[str, Any], made_up: str) -> Message:
    response = answer["response"]
    call_id = answer.get("id", made_up)
    if response.keys() == {"error"}:
        return Message("tool", response["error"], tool_call_id=call_id, is_error=True)
    return Message("tool", compact(response), tool_call_id=call_id)


def _instructions(system: Any) -> str | None:
    return system["parts"][0]["text"] if system else None


def _schema(declaration: dict[str, Any]) -> dict[str, Any]:
    """The schema of either field, with the type names of JSON Schema."""
    found = next(declaration[key] for key in ("parameters", "parametersJsonSchema") if key in declaration)
    lowered: dict[str, Any] = json.loads(re.sub(r'"type": "([A-Z]+)"', lambda m: m[0].lower(), json.dumps(found)))
    return lowered


def _camel(value: Any) -> Any:
    """Keys in one spelling: proto3 JSON takes both."""
    if isinstance(value, dict):
        return {re.sub(r"(?<=[a-z])_([a-z])", lambda m: m[1].upper(), key) if key in _SNAKE else key: _camel(one)
                for key, one in value.items()}  # fmt: skip
    return [_camel(one) for one in value] if isinstance(value, list) else value


_SNAKE = frozenset({"function_call", "function_response", "thought_signature", "file_data", "parameters_json_schema"})


def expected(body: Any, events: list[dict[str, Any]]) -> Expected:
    """From the body or from the chunks, which are alike. A call that came without an id has the id ""."""
    chunks = events or [body]
    candidates = [one["candidates"][0] for one in chunks if one.get("candidates")]
    parts = [part for one in candidates for part in one.get("content", {}).get("parts", [])]
    usage: dict[str, int] = {}
    for chunk in chunks:
        usage.update(chunk.get("usageMetadata", {}))
    thoughts = usage.get("thoughtsTokenCount", 0)
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return Expected(
        tuple(parts),
        "".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        "".join(part["text"] for part in parts if "text" in part and part.get("thought")),
        None,
        tuple((call.get("id", ""), call["name"], compact(call["args"])) for call in calls),
        candidates[-1]["finishReason"],
        (usage["promptTokenCount"] + usage.get("toolUsePromptTokenCount", 0),
         usage.get("candidatesTokenCount", 0) + thoughts, usage.get("cachedContentTokenCount", 0), thoughts),
        None,
        chunks[-1]["modelVersion"],
    )  # fmt: skip


def meaning(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body in the common form.

    What a model said is compared by its text, its calls and its signatures in order (decoded: the SDK respells them).
    These clients leave thoughts out, move a signature to another part, or write a part's keys anew; that ours go back
    to the letter and in their places is checked beside this.
    """
    result = _camel(without_nulls(dict(body)))
    result.pop("model", None)  # one client repeats it in the body
    result["contents"] = [_content(content) for content in result["contents"]]
    if "systemInstruction" in result:
        result["systemInstruction"] = _instructions(result["systemInstruction"])
    names: list[str] = []
    for tool in result.get("tools", []):
        for one in tool.get("functionDeclarations", []):
            names.append(one["name"])
            one["schema"] = _open(_schema(one))
            one.pop("parameters", None)  # the reduced form, where we send JSON Schema
            one.pop("parametersJsonSchema", None)
    calling = result.get("toolConfig", {}).get("functionCallingConfig", {})
    if calling.get("allowedFunctionNames") == names:  # all of them: the same as none said
        del calling["allowedFunctionNames"]
    config = result.pop("generationConfig", {})
    if "responseJsonSchema" in config:
        config["responseJsonSchema"] = _open(config["responseJsonSchema"])
    if "thinkingLevel" in config.get("thinkingConfig", {}):  # one client writes the enum in lower case
        config["thinkingConfig"]["thinkingLevel"] = config["thinkingConfig"]["thinkingLevel"].upper()
    return {**result, **({"generationConfig": config} if config else {})}


def _open(schema: Any) -> Any:
    """Without `additionalProperties: false` and empty `required`, which Gemini reads as nothing."""
    if isinstance(schema, dict):
        empty = (("additionalProperties", False), ("required", []))
        return {key: _open(one) for key, one in schema.items() if (key, one) not in empty}
    return schema


def _content(content: dict[str, Any]) -> dict[str, Any]:
    parts = content["parts"]
    if content["role"] != "model":  # a role that is none, in one refused request, is said as the user's
        return {"role": "user", "parts": [_user_part(part) for part in parts if "fileData" not in part]}
    apart = ("thought", "thoughtSignature")
    rest = [
        {key: one for key, one in part.items() if key not in apart}
        for part in parts
        if "text" not in part and not part.get("thought")
    ]
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    return {
        "role": "model",
        "text": "".join(part.get("text", "") for part in parts if not part.get("thought")),
        "parts": [
            {"type": "functionCall", **part["functionCall"]} if "functionCall" in part else part for part in rest
        ],
        "signatures": [_decoded(one) for one in signatures],
    }


def _user_part(part: dict[str, Any]) -> dict[str, Any]:
    if "functionResponse" in part:
        return {"type": "functionResponse", **part["functionResponse"]}
    return {"type": "text", "text": part["text"] or BLANK}


def _decoded(signature: str) -> str:
    if signature in STAND_INS:
        return "stand-in"
    return base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True).hex()


def accepted_tools(body: dict[str, Any], answer: Any, events: list[dict[str, Any]]) -> dict[str, Any]:
    """As they were sent: an answer does not repeat them."""
    return body


def call(item: dict[str, Any]) -> ToolCall | None:
    """Of an opaque item given; no recording begins with one."""
    raise AssertionError("no recording begins with a signed answer")


def portable(items: tuple[dict[str, Any], ...]) -> Message | None:
    """Text and calls, signed by nobody or by a stand-in."""
    if any(part.get("thoughtSignature") not in (None, *STAND_INS) for part in items):
        return None
    text = "".join(part.get("text", "") for part in items)
    calls = [part["functionCall"] for part in items if "functionCall" in part]
    return Message("assistant", text, tuple(ToolCall(one["id"], one["name"], None, one["args"]) for one in calls))


DIALECT = Dialect(
    "gemini", asked, expected, meaning, accepted_tools, call, portable, OMITTED_THERE, OMITTED_HERE, "contents"
)
