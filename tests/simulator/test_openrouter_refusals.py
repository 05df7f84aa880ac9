"""Each rule of OpenRouter refuses what breaks it, and accepts its legal neighbour; reasoning comes back whole or not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2
import openai
import pytest

from pollux_like.simulator import Fault, Simulator
from pollux_like.testing.script import Part, call, redacted, say, think

Ask: TypeAlias = Callable[..., httpx2.Response]
CLAUDE, GPT, GEMINI = "anthropic/claude-haiku-4.5", "openai/gpt-5.2", "google/gemini-3-flash"
USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
ON = {"reasoning": {"effort": "low"}}


@pytest.fixture
def router(sim: Simulator, http: httpx2.Client) -> Ask:
    """POST …/chat/completions; model and messages are filled in."""

    def ask(*, headers: dict[str, str] | None = None, **body: Any) -> httpx2.Response:
        whole = {"model": CLAUDE, "messages": [USER], **body}
        return http.post(sim.base_url("openrouter") + "/chat/completions", json=whole, headers=headers)

    return ask


def said(response: httpx2.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    return message


def refused(response: httpx2.Response, message: str, status: int = 400) -> None:
    """By the router itself."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert message in error["message"]
    assert error["code"] == status
    assert isinstance(error["code"], int)


def behind(response: httpx2.Response, message: str, provider: str) -> None:
    """By the provider behind it."""
    refused(response, "Provider returned error")
    metadata = response.json()["error"]["metadata"]
    assert metadata["provider_name"] == provider
    assert message in json.loads(metadata["raw"])["error"]["message"]


def reasoned(sim: Simulator, router: Ask, model: str, *parts: Part) -> list[dict[str, Any]]:
    """A tool round up to its result: the messages, as they came."""
    sim.reply(*(parts or (think("Let me"), redacted(), think("see"))), call("f", {}, id="c1"))
    message = said(router(model=model, tools=[TOOL], **ON))
    assert message["reasoning_details"]
    return [USER, message, RESULT]


@pytest.mark.parametrize("model", [CLAUDE, GPT, GEMINI, "x-ai/grok-4", "qwen/qwen3.6-plus"])
def test_what_comes_back_whole_is_accepted(sim: Simulator, router: Ask, model: str) -> None:
    messages = reasoned(sim, router, model)
    answer = said(router(model=model, messages=messages, tools=[TOOL], **ON))
    said(router(model=model, messages=[*messages, answer, USER], tools=[TOOL], **ON))
    bare = copy.deepcopy(messages)
    for entry in bare[1]["reasoning_details"]:  # recorded requests without these members were accepted
        entry.pop("index")
        entry["format"] = None
    del bare[1]["refusal"]
    bare[1]["content"] = ""
    said(router(model=model, messages=bare, tools=[TOOL], **ON))


def edit(details: list[Any]) -> None:
    details[0]["text" if "text" in details[0] else "summary"] += "!"


def drop(details: list[Any]) -> None:
    del details[0]


def swap(details: list[Any]) -> None:
    details.reverse()


@pytest.mark.parametrize("change", [edit, drop, swap])
@pytest.mark.parametrize(
    ("model", "words", "provider"),
    [
        (CLAUDE, "blocks in the latest assistant message cannot be modified", "Anthropic"),
        (GPT, "must come back whole, in order and unaltered", "OpenAI"),
        (GEMINI, "must come back whole, in order and unaltered", "Google"),
    ],
)
def test_reasoning_that_was_altered(
    sim: Simulator, router: Ask, model: str, words: str, provider: str, change: Callable[[list[Any]], None]
) -> None:
    messages = reasoned(sim, router, model)
    change(messages[1]["reasoning_details"])
    behind(router(model=model, messages=messages, tools=[TOOL], **ON), words, provider)


@pytest.mark.parametrize(
    ("model", "words", "provider"),
    [
        (CLAUDE, "messages.1.content.0: Invalid `signature` in `thinking` block", "Anthropic"),
        (GPT, "could not be verified. Reason: Encrypted content could not be decrypted or parsed.", "OpenAI"),
        (GEMINI, "Corrupted thought signature.", "Google"),
    ],
)
def test_seals_that_nobody_made(sim: Simulator, router: Ask, model: str, words: str, provider: str) -> None:
    messages = reasoned(sim, router, model)
    entry = next(one for one in messages[1]["reasoning_details"] if one.get("signature") or one.get("data"))
    key = "signature" if "signature" in entry else "data"
    entry[key] = entry[key][:-8] + "AAAAAAA="
    behind(router(model=model, messages=messages, tools=[TOOL], **ON), words, provider)


def test_a_signature_left_out(sim: Simulator, router: Ask) -> None:
    messages = reasoned(sim, router, CLAUDE)
    del messages[1]["reasoning_details"][0]["signature"]
    behind(router(messages=messages, tools=[TOOL], **ON), "thinking.signature: Field required", "Anthropic")


@pytest.mark.parametrize(
    ("model", "words"),
    [(CLAUDE, "messages.1.content.0.type: Expected `thinking`"), (GEMINI, "missing a thought_signature"), (GPT, None)],
)
def test_an_open_round_without_its_reasoning(sim: Simulator, router: Ask, model: str, words: str | None) -> None:
    messages = reasoned(sim, router, model)
    del messages[1]["reasoning_details"]
    response = router(model=model, messages=messages, tools=[TOOL], **ON)
    if words is None:  # OpenAI takes calls without ids of their own
        said(response)
    else:
        behind(response, words, "Anthropic" if model == CLAUDE else "Google")
    said(router(model=model, messages=[*messages, {"role": "assistant", "content": "x"}, USER], tools=[TOOL], **ON))


def test_of_another_author_nothing_is_known(sim: Simulator, router: Ask) -> None:
    messages = reasoned(sim, router, CLAUDE)
    said(router(model=GPT, messages=messages, tools=[TOOL], **ON))


def test_a_forced_call_silences_claude(sim: Simulator, router: Ask) -> None:
    """Recorded nowhere, reported: no reasoning, and no error."""
    for model, expected in ((CLAUDE, None), (GPT, "Hm")):
        sim.reply(think("Hm"), call("f", {}, id="c1"))
        message = said(router(model=model, tools=[TOOL], tool_choice="required", **ON))
        assert message["reasoning"] == expected
        assert ("reasoning_details" in message) is (expected is not None)


def test_tools_stand_in_every_request(sim: Simulator, router: Ask) -> None:
    messages = reasoned(sim, router, GPT)
    refused(router(model=GPT, messages=messages, **ON), "tools must be in every request")


def test_a_model_without_tools(router: Ask) -> None:
    model = "sao10k/l3-lunaris-8b"
    said(router(model=model))
    refused(router(model=model, tools=[TOOL]), "No endpoints found that support tool use.", 404)


def test_rules_of_every_server_come_from_behind(router: Ask) -> None:
    behind(router(messages=[USER, RESULT], tools=[TOOL]), "must be a response to a preceeding message", "Anthropic")
    behind(router(tools=[TOOL, TOOL]), "used twice", "Anthropic")


def test_who_may_ask_and_for_what(http: httpx2.Client) -> None:
    with Simulator(models=[CLAUDE], api_key="sim-key", max_input_tokens=100) as sim:
        address = sim.base_url("openrouter") + "/chat/completions"
        body: dict[str, Any] = {"model": CLAUDE, "messages": [USER]}
        refused(http.post(address, json=body, headers={"authorization": ""}), "Missing Authentication header", 401)
        refused(http.post(address, json=body, headers={"authorization": "Bearer x"}), "User not found.", 401)
        refused(http.post(address, json={**body, "model": "a/b"}), "a/b is not a valid model ID")
        refused(
            http.post(address, json={**body, "messages": [{**USER, "content": "x" * 999}]}),
            "maximum context length is 100",
        )
        refused(http.post(address, json={"model": CLAUDE}), "Input required")
        assert (
            http.post(address, json={**body, "frobnicate": 1}).status_code == 200
        )  # what it does not know, it ignores


def test_the_list_says_which_models_take_tools(sim: Simulator) -> None:
    with openai.OpenAI(base_url=sim.base_url("openrouter"), api_key="k") as client:
        listed = {model.id: model.model_dump()["supported_parameters"] for model in client.models.list()}
    assert "tools" in listed[CLAUDE]
    assert "tools" not in listed["sao10k/l3-lunaris-8b"]


@pytest.mark.parametrize("status", [402, 429, 502])
def test_scripted_failures_in_its_own_envelope(sim: Simulator, router: Ask, status: int) -> None:
    sim.fail(status)
    error = router().json()["error"]
    assert error["code"] == status
    assert ("metadata" in error) is (error["message"] == "Provider returned error") is (status in (429, 502))


def test_errors_under_status_200(sim: Simulator, router: Ask) -> None:
    sim.fault(say("never"), error_body=True, error=Fault(502))
    whole = router()
    assert (whole.status_code, whole.json()["error"]["code"]) == (200, 502)
    sim.fault(say("Hello there"), error_after=2, error=Fault(400, "Token limit reached"))
    streamed = router(stream=True)
    *_, last = (json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {"))
    assert (streamed.status_code, last["error"]) == (200, {"message": "Token limit reached", "code": 400})
    assert last["choices"][0]["finish_reason"] == "error"


def test_streams_have_comments_details_in_pieces_and_usage_unasked(sim: Simulator, router: Ask) -> None:
    sim.reply(think("Let me see it"), say("Yes."))
    text = router(stream=True).text
    assert text.startswith(": OPENROUTER PROCESSING\n\n")
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    details = [one for chunk in chunks for one in chunk["choices"][0]["delta"].get("reasoning_details", [])]
    assert "".join(one.get("text", "") for one in details) == "Let me see it"
    assert len(details) > 2
    assert [one["index"] for one in details] == [0] * len(details)
    assert ["signature" in one for one in details].index(True) == len(details) - 1
    assert chunks[-1]["usage"]["total_tokens"] > 0
    assert {chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]} == {"stop"}
