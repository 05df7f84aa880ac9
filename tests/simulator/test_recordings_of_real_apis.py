"""What the real APIs accepted, the simulator accepts; what they refused, it refuses with the same words."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator
from pollux_like.simulator.adopt import adopt_block, adopt_item
from pollux_like.simulator.gemini_contents import adopt_parts
from pollux_like.simulator.gemini_fields import read

RECORDINGS = Path(os.environ.get("POLLUX_LIKE_RECORDINGS", "../shared/recordings"))
PATHS = ("/v1/messages", "/v1/responses", "/v1/chat/completions")
# Not rules of a request's form: the length of a prompt that the recording leaves out.
UNCOVERED = {
    "err-400-prompt-too-long", "err-400-context-length", "err-429-quota-retryinfo", "err-400-token-count-vertex",
}  # fmt: skip
# Facts that the recordings name and the simulator is told by its options.
UNKNOWN_MODELS = {"gpt-5.2-proo", "this-model-does-not-exist-12345"}

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="no recordings of real APIs here")


def conversations() -> Iterator[Any]:
    for vendor in ("anthropic", "openai"):
        for path in sorted((RECORDINGS / vendor).glob("*.json")):
            exchanges = json.loads(path.read_text())["exchanges"]
            groups = [[one] for one in exchanges] if path.name == "errors.json" else [exchanges]
            for group in groups:
                yield pytest.param(group, id=f"{vendor}/{path.stem}/{group[0].get('slug', '')}")


def events(response: dict[str, Any]) -> list[dict[str, Any]]:
    data = [line.partition(":")[2].strip() for line in response.get("sse", []) if line.startswith("data:")]
    return [json.loads(text) for text in data if text and text != "[DONE]"]


def whole(response: dict[str, Any]) -> dict[str, Any]:
    """The body of a response, put together from its events where it was streamed."""
    if "body" in response:
        return response["body"]
    body: dict[str, Any] = {}
    for event in events(response):
        kind = event.get("type", "")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return event["response"]
        if kind == "message_start":
            body = event["message"]
        elif kind == "content_block_start":
            body["content"].append(event["content_block"])
        elif kind == "content_block_delta":
            block, delta = body["content"][event["index"]], event["delta"]
            for key in ("thinking", "signature", "text"):
                if key in delta:
                    block[key] = block.get(key, "") + delta[key]
    return body


def adopt(sim: Simulator, exchange: dict[str, Any]) -> None:
    body = whole(exchange["response"])
    sim.adopt(exchange["request"]["body"], body)
    for event in events(exchange["response"]):
        if event.get("type") == "response.output_item.done":
            adopt_item(sim.ledger, event["item"], str(body.get("model", "")))
    for message in exchange["request"]["body"].get("messages", []):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block["type"] in ("thinking", "redacted_thinking"):
                adopt_block(sim.ledger, block)


def adopt_history(sim: Simulator, exchange: dict[str, Any]) -> None:
    """Blobs whose issue the recording does not show: the accepted request itself proves that they were issued."""
    given = exchange["request"]["body"].get("input")
    for item in given if isinstance(given, list) else []:
        blob = item.get("encrypted_content")
        if item.get("type") in ("reasoning", "compaction") and blob and blob not in sim.ledger.adopted:
            adopt_item(sim.ledger, {**item, "id": item.get("id")}, "")


def post(sim: Simulator, http: httpx2.Client, exchange: dict[str, Any], key: str = "sim-key") -> httpx2.Response:
    request = exchange["request"]
    headers = {"authorization": f"Bearer {key}", "anthropic-version": "2023-06-01", **request.get("headers", {})}
    return http.post(sim.base_url("anthropic") + request["path"], json=request["body"], headers=headers)


@pytest.mark.parametrize("exchanges", list(conversations()))
def test_same_verdict_as_the_real_api(exchanges: list[dict[str, Any]], http: httpx2.Client) -> None:
    asked = [e for e in exchanges if e["request"] and e["request"]["path"].split("?")[0] in PATHS]
    if not asked or asked[0].get("slug") in UNCOVERED:
        pytest.skip("nothing here that a request's form decides")
    models = {e["request"]["body"]["model"] for e in asked} - UNKNOWN_MODELS
    with Simulator(models=models, api_key="sim-key") as sim:
        for exchange in asked:
            status = exchange["response"]["status"]
            if status == 200:
                adopt_history(sim, exchange)
            answer = post(sim, http, exchange, "wrong" if status == 401 else "sim-key")
            assert answer.status_code == status, answer.text
            if status == 200:
                adopt(sim, exchange)
            else:
                theirs = exchange["response"]["body"]["error"]
                assert answer.json()["error"]["type"] == theirs["type"]
                if status != 401:  # the real text quotes the key
                    assert answer.json()["error"]["message"] == theirs["message"]
                    assert answer.json()["error"].get("code") == theirs.get("code")


GENERATES = re.compile(r".*/models/([^/:]+):(?:stream)?[gG]enerateContent")


def gemini_conversations() -> Iterator[Any]:
    for path in sorted((RECORDINGS / "gemini").glob("*.json")):
        exchanges = [e for e in json.loads(path.read_text())["exchanges"] if e["request"]]
        asked = [e for e in exchanges if GENERATES.match(e["request"]["path"]) and e.get("slug") not in UNCOVERED]
        groups = [[one] for one in asked] if path.name == "errors.json" else [asked]
        for group in filter(None, groups):
            yield pytest.param(group, id=f"gemini/{path.stem}/{group[0].get('slug', '')}")


@pytest.mark.parametrize("exchanges", list(gemini_conversations()))
def test_same_verdict_as_gemini(exchanges: list[dict[str, Any]], http: httpx2.Client) -> None:
    """Signatures whose issue was not recorded are known from the accepted request itself; others from their answer."""
    named = [GENERATES.match(one["request"]["path"]) for one in exchanges]
    models = {found[1] for found in named if found} - UNKNOWN_MODELS
    with Simulator(models=models, api_key="sim-key") as sim:
        for exchange in exchanges:
            request, response = exchange["request"], exchange["response"]
            if response["status"] == 200:
                for content in read(request["body"])[0]["contents"]:
                    adopt_parts(sim.ledger, content.get("parts", []))
            wrong = exchange.get("slug") == "err-400-invalid-key"
            headers = {"x-goog-api-key": "wrong" if wrong else "sim-key"}
            answer = http.post(sim.base_url("gemini") + request["path"], json=request["body"], headers=headers)
            assert answer.status_code == response["status"], answer.text
            if response["status"] != 200:
                theirs = {key: one for key, one in response["body"]["error"].items() if one != []}
                assert answer.json()["error"] == theirs


def test_signatures_of_recorded_answers_are_known_on_their_own_parts(http: httpx2.Client) -> None:
    """An answer that is adopted can be given back as it came, and not with another call under its signature."""
    path = RECORDINGS / "gemini" / "g3flash-parallel-signature-first-only.json"
    exchange = json.loads(path.read_text())["exchanges"][0]
    body = exchange["response"]["body"]
    first, *others = body["candidates"][0]["content"]["parts"]
    calls = [part["functionCall"] for part in (first, *others)]
    results = [{"functionResponse": {"name": one["name"], "response": {}}} for one in calls]
    edited = {**first, "functionCall": {**first["functionCall"], "args": {"other": True}}}
    with Simulator() as sim:
        sim.adopt(exchange["request"]["body"], body)
        url = sim.base_url("gemini") + exchange["request"]["path"]
        for part, status in ((first, 200), (edited, 400)):
            said = {"role": "model", "parts": [part, *others]}
            contents = [{"parts": [{"text": "x"}]}, said, {"parts": results}]
            answer = http.post(url, json={"contents": contents}, headers={"x-goog-api-key": "k"})
            assert answer.status_code == status, answer.text
