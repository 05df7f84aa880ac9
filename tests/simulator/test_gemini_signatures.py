"""Thought signatures of the simulator: bound to their part, demanded where the API demands them, in either alphabet."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing import answer, call, say, server_tool, think

from .conftest import Ask

FLASH = "gemini-3-flash-preview"
USER = {"role": "user", "parts": [{"text": "Hi"}]}
TOOLS = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]
STAND_INS = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")


def parts_of(response: httpx2.Response) -> list[dict[str, Any]]:
    return response.json()["candidates"][0]["content"]["parts"]


def results(parts: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [{"functionResponse": {"name": one["name"], "response": {}}} for one in calls]
    return {"role": "user", "parts": answers}


def going_on(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [USER, {"role": "model", "parts": parts}, results(parts)]


@pytest.fixture
def issued(gemini: Ask, sim: Simulator) -> list[dict[str, Any]]:
    """A reply with text and two calls, the first signed."""
    sim.reply(say("I look."), call("f", {"a": 1}), call("g", {"b": 2.5}))
    return parts_of(gemini(tools=TOOLS))


def message(response: httpx2.Response) -> str:
    assert response.status_code == 400, response.text
    return response.json()["error"]["message"]


def test_what_was_issued_comes_back_in_either_alphabet(gemini: Ask, issued: list[dict[str, Any]]) -> None:
    signature = issued[1]["thoughtSignature"]
    respelled = signature.replace("+", "-").replace("/", "_")
    for one in (signature, respelled, respelled.rstrip("=")):
        parts = [issued[0], {**issued[1], "thoughtSignature": one}, issued[2]]
        assert gemini(contents=going_on(parts)).status_code == 200
        parts[1] = {"function_call": parts[1]["functionCall"], "thought_signature": one}
        assert gemini(contents=[USER, {"role": "model", "parts": parts}, results(issued)]).status_code == 200


def test_a_missing_signature_is_named_with_its_call_and_place(gemini: Ask, issued: list[dict[str, Any]]) -> None:
    bare = [{key: one for key, one in part.items() if key != "thoughtSignature"} for part in issued]
    said = message(gemini(contents=going_on(bare)))
    assert said.startswith("Function call is missing a thought_signature in functionCall parts.")
    assert "function call `default_api:f` , position 2." in said
    second = [*going_on(issued), {"role": "model", "parts": bare}, results(bare)]
    assert "position 4." in message(gemini(contents=second))


def test_a_past_turn_is_not_checked_for_presence(gemini: Ask, issued: list[dict[str, Any]]) -> None:
    bare = [{key: one for key, one in part.items() if key != "thoughtSignature"} for part in issued]
    assert gemini(contents=[*going_on(bare), {"role": "model", "parts": [{"text": "ok"}]}, USER]).status_code == 200
    mixed = {"role": "user", "parts": [*results(bare)["parts"], {"text": "and more"}]}
    assert gemini(contents=[*going_on(bare)[:2], mixed]).status_code == 200, "text beside results begins a turn"


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-2.0-flash", "gemini-3-pro-image-preview"])
def test_some_models_demand_none(gemini: Ask, issued: list[dict[str, Any]], model: str) -> None:
    bare = [{key: one for key, one in part.items() if key != "thoughtSignature"} for part in issued]
    assert gemini(model=model, contents=going_on(bare)).status_code == 200


def test_altered_cut_and_foreign_signatures_are_corrupted(gemini: Ask, issued: list[dict[str, Any]]) -> None:
    signature = issued[1]["thoughtSignature"]
    raw = bytearray(base64.b64decode(signature))
    raw[-1] ^= 1
    altered = base64.b64encode(raw).decode()
    for one in (altered, signature[:-4], "QUJD", ""):
        parts = [issued[0], {**issued[1], "thoughtSignature": one}, issued[2]]
        assert message(gemini(contents=going_on(parts))) == "Corrupted thought signature."
    parts = [issued[0], {**issued[1], "thoughtSignature": "not base64!"}, issued[2]]
    assert "Base64 decoding failed" in message(gemini(contents=going_on(parts)))


def test_a_signature_on_another_part_is_invalid(gemini: Ask, issued: list[dict[str, Any]]) -> None:
    signature = issued[1]["thoughtSignature"]
    bare = {"functionCall": issued[1]["functionCall"]}
    copied = [issued[0], issued[1], {**issued[2], "thoughtSignature": signature}]
    moved = [{**issued[0], "thoughtSignature": signature}, bare, issued[2]]
    edited = [issued[0], {**issued[1], "functionCall": {"name": "f", "args": {"a": 2}}}, issued[2]]
    for parts in (copied, moved, edited):
        assert message(gemini(contents=going_on(parts))) == "Invalid thought signature."
    assert message(gemini(model="gemini-2.5-flash", contents=going_on(edited))) == "Invalid thought signature."


def test_the_id_of_a_call_is_not_bound(gemini: Ask, issued: list[dict[str, Any]]) -> None:
    """Clients make ids up where none came, and send them (recorded)."""
    own = {**issued[1], "functionCall": {**issued[1]["functionCall"], "id": "made_up"}}
    assert gemini(contents=going_on([issued[0], own, issued[2]])).status_code == 200


def test_the_signature_of_a_text_is_taken_on_its_thought(gemini: Ask, sim: Simulator) -> None:
    """So a recorded client sends it, and the API took it."""
    sim.reply(think("Hm"), say("So."))
    thought, text = parts_of(gemini(generationConfig={"thinkingConfig": {"includeThoughts": True}}))
    moved = [{**thought, "thoughtSignature": text["thoughtSignature"]}, {"text": text["text"]}]
    assert gemini(contents=[USER, {"role": "model", "parts": moved}, USER]).status_code == 200
    empty = [{"text": "So."}, {"text": "", "thoughtSignature": text["thoughtSignature"]}]
    assert gemini(contents=[USER, {"role": "model", "parts": empty}, USER]).status_code == 200


@pytest.mark.parametrize("word", STAND_INS)
def test_the_documented_stand_ins(gemini: Ask, word: str) -> None:
    for one in (base64.b64encode(word.encode()).decode(), word):
        part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": one}
        assert gemini(contents=going_on([part])).status_code == 200


def test_google_tools_are_signed_too(gemini: Ask, sim: Simulator) -> None:
    sim.reply(server_tool("web_search", {"query": "q"}, result=[]), say("Found."))
    parts = parts_of(gemini())
    assert ["thoughtSignature" in part for part in parts] == [True, False, True]
    assert gemini(contents=[USER, {"role": "model", "parts": parts}, USER]).status_code == 200


@pytest.mark.parametrize(
    ("body", "signed"),
    [
        ({}, False),
        ({"tools": TOOLS}, True),
        ({"tools": TOOLS, "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, False),
    ],
)
def test_older_models_sign_where_they_think_beside_functions(
    gemini: Ask, sim: Simulator, body: Any, signed: bool
) -> None:
    sim.reply(say("x"))
    assert ("thoughtSignature" in parts_of(gemini(model="gemini-2.5-flash", **body))[0]) is signed


def test_another_models_signatures_by_switch(http: httpx2.Client) -> None:
    for shared, status in ((True, 200), (False, 400)):
        with Simulator(shared_signatures=shared) as sim:
            url = sim.base_url("gemini") + "/v1/models/{}:generateContent"
            headers = {"x-goog-api-key": "k"}
            sim.reply(call("f"))
            parts = parts_of(http.post(url.format("gemini-3-pro-preview"), json={"contents": [USER]}, headers=headers))
            body = {"contents": going_on(parts)}
            assert http.post(url.format("gemini-3-pro-preview"), json=body, headers=headers).status_code == 200
            assert http.post(url.format(FLASH), json=body, headers=headers).status_code == status


def test_a_key_makes_signatures_known_elsewhere_and_a_seed_the_same(http: httpx2.Client) -> None:
    headers = {"x-goog-api-key": "k"}
    path = f"/v1/models/{FLASH}:generateContent"
    made: list[list[dict[str, Any]]] = []
    for _ in range(2):
        with Simulator(seed=5) as sim:
            sim.reply(call("f", {"a": 1}))
            made.append(parts_of(http.post(sim.base_url("gemini") + path, json={"contents": [USER]}, headers=headers)))
    assert made[0] == made[1]
    body = {"contents": going_on(made[0])}
    with Simulator(seed=5) as friend, Simulator() as stranger:
        assert http.post(friend.base_url("gemini") + path, json=body, headers=headers).status_code == 200
        assert http.post(stranger.base_url("gemini") + path, json=body, headers=headers).status_code == 400
        stranger.adopt({}, {"candidates": [{"content": body["contents"][1]}], "modelVersion": FLASH})
        assert http.post(stranger.base_url("gemini") + path, json=body, headers=headers).status_code == 200


def test_a_stream_carries_the_same_signatures(http: httpx2.Client) -> None:
    for made in (answer(say("I look."), call("f", {"a": 1}), call("g")), answer(say("One two three"))):
        found: list[list[str]] = []
        for verb in ("generateContent", "streamGenerateContent?alt=sse"):
            with Simulator(seed=5) as sim:
                sim.reply(made)
                url = f"{sim.base_url('gemini')}/v1/models/{FLASH}:{verb}"
                text = http.post(url, json={"contents": [USER], "tools": TOOLS}, headers={"x-goog-api-key": "k"}).text
            found.append([one.split('"')[0] for one in text.replace(": ", ":").split('"thoughtSignature":"')[1:]])
        assert found[0] == found[1]
        assert len(found[0]) == 1
