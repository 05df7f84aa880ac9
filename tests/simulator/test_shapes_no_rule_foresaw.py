"""A value of the wrong type anywhere is answered in the vendor's envelope, never by a crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator, accepts, gemini_fields

Ask = Callable[..., httpx2.Response]
JUNK: tuple[Any, ...] = (
    "x",
    5,
    -1.5,
    True,
    [],
    {},
    [5],
    ["x"],
    [[]],
    [{}],
    {"type": 5},
    {"type": "function"},
    {"x": {}},
)
TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}


def answered(response: httpx2.Response) -> None:
    assert response.status_code in (200, 400, 404), response.text
    if response.status_code != 200:
        assert response.json()["error"]["message"]


@pytest.mark.parametrize("name", sorted(accepts.MESSAGES_BETA - {"stream"}))
def test_messages_parameters(claude: Ask, name: str) -> None:
    for value in JUNK:
        answered(claude(beta=True, **{"tools": [TOOL], name: value}))


@pytest.mark.parametrize("name", sorted(accepts.RESPONSES - {"stream"}))
def test_responses_parameters(gpt: Ask, name: str) -> None:
    for value in JUNK:
        answered(gpt(**{"tools": [FUNCTION], name: value}))


@pytest.mark.parametrize("name", sorted(accepts.CHAT - {"stream"}))
def test_chat_parameters(chat: Ask, name: str) -> None:
    for value in JUNK:
        answered(chat(**{name: value}))


@pytest.mark.parametrize("kind", sorted(accepts.MESSAGES_BLOCKS))
def test_blocks(claude: Ask, kind: str) -> None:
    for role in ("user", "assistant"):
        for value in JUNK:
            block = {**dict.fromkeys(accepts.MESSAGES_BLOCKS[kind], value), "type": kind}
            content = [block, {"type": "text", "text": "x"}]
            messages = [
                {"role": "user", "content": "Hi"},
                {"role": role, "content": content},
                {"role": "user", "content": "x"},
            ]
            answered(claude(tools=[TOOL], messages=messages))


@pytest.mark.parametrize("kind", sorted(accepts.RESPONSES_ITEMS))
def test_items(gpt: Ask, kind: str) -> None:
    for value in JUNK:
        item = {**dict.fromkeys(accepts.RESPONSES_ITEMS[kind], value), "type": kind}
        answered(gpt(input=[item, {"role": "user", "content": "x"}]))


@pytest.mark.parametrize("key", ["role", "content", "tool_calls", "tool_call_id", "refusal"])
def test_chat_messages(chat: Ask, key: str) -> None:
    for value in JUNK:
        message = {"role": "assistant", "content": "x", key: value}
        answered(chat(messages=[{"role": "user", "content": "Hi"}, message, {"role": "user", "content": "x"}]))


@pytest.mark.parametrize("name", sorted(gemini_fields.FIELDS["Request"]))
def test_gemini_members(gemini: Ask, name: str) -> None:
    for value in JUNK:
        answered(gemini(**{name: value}))


@pytest.mark.parametrize("name", sorted(gemini_fields.FIELDS["Part"]))
def test_gemini_parts(gemini: Ask, name: str) -> None:
    for value in JUNK:
        for role in ("user", "model"):
            contents = [{"role": role, "parts": [{name: value}]}, {"role": "user", "parts": [{"text": "x"}]}]
            answered(gemini(contents=contents))


@pytest.mark.parametrize("kind", ["Config", "Thinking", "Schema", "Function", "Calling"])
def test_gemini_objects(gemini: Ask, kind: str) -> None:
    for name in gemini_fields.FIELDS[kind]:
        for value in JUNK:
            one = {name: value}
            function = {"name": "f", "parameters": one if kind == "Schema" else {"type": "object"}}
            answered(
                gemini(
                    generationConfig=one if kind == "Config" else {"thinkingConfig": one if kind == "Thinking" else {}},
                    tools=[{"functionDeclarations": [{**function, **(one if kind == "Function" else {})}]}],
                    toolConfig={"functionCallingConfig": one if kind == "Calling" else {}},
                )
            )


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', "[" * 100_000, "[]", "", "\x00"])
def test_what_is_no_json_object(sim: Simulator, http: httpx2.Client, text: str) -> None:
    for base, path in (("openai", "/responses"), ("chat", "/chat/completions"), ("anthropic", "/v1/messages")):
        assert http.post(sim.base_url(base) + path, content=text.encode()).status_code == 400
    url = sim.base_url("gemini") + "/v1/models/gemini-3-flash-preview:generateContent"
    assert http.post(url, content=text.encode()).status_code == 400
