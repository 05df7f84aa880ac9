"""What OpenAI's server keeps and binds: stored responses, item partners, sealed blobs, prefixes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing.script import Part, answer, call, compaction, say, think

Ask = Callable[..., httpx2.Response]
USER = {"role": "user", "content": "Hi"}
NEXT = {"role": "user", "content": "And?"}
TOOL: dict[str, Any] = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}


def output(sim: Simulator, gpt: Ask, *parts: Part, **body: Any) -> list[dict[str, Any]]:
    sim.reply(*parts)
    items: list[dict[str, Any]] = gpt(**{"input": [USER], **body}).json()["output"]
    return items


def refused(response: httpx2.Response, message: str, code: str | None = None, status: int = 400) -> None:
    assert response.status_code == status, response.text
    assert message in response.json()["error"]["message"]
    assert response.json()["error"]["code"] == code


def accepted(response: httpx2.Response) -> None:
    assert response.status_code == 200, response.text


def result(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls = [item for item in items if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": item["call_id"], "output": "1"} for item in calls]


def without_id(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def test_a_chain_goes_on_from_stored_state(sim: Simulator, openai_sdk: openai.OpenAI) -> None:
    sim.reply(think("Hm"), call("f", {}, id="call_1"))
    first = openai_sdk.responses.create(model="gpt-5.5", input="Hi")
    answered: Any = [{"type": "function_call_output", "call_id": "call_1", "output": "1"}]
    second = openai_sdk.responses.create(model="gpt-5.5", input=answered, previous_response_id=first.id)
    assert second.previous_response_id == first.id
    third = openai_sdk.responses.create(model="gpt-5.5", input="More", previous_response_id=second.id)
    assert third.output_text == "You said: More"


def test_a_chain_needs_the_pending_outputs(sim: Simulator, gpt: Ask) -> None:
    sim.reply(call("f", {}, id="call_1"))
    made = gpt().json()["id"]
    refused(gpt(previous_response_id=made, input="Hi"), "No tool output found for function call call_1.")
    again = {"type": "function_call_output", "call_id": "call_9", "output": "1"}
    refused(
        gpt(previous_response_id=made, input=[again]),
        "No tool call found for function call output with call_id call_9.",
    )


def test_unknown_unstored_and_deleted_responses(sim: Simulator, gpt: Ask, http: httpx2.Client) -> None:
    code = "previous_response_not_found"
    refused(gpt(previous_response_id="resp_0"), "Previous response with id 'resp_0' not found.", code)
    unstored = gpt(store=False).json()
    assert unstored["store"] is False
    refused(gpt(previous_response_id=unstored["id"]), "not found.", code)
    stored = gpt().json()["id"]
    url = f"{sim.base_url('openai')}/responses/{stored}"
    assert http.get(url).json()["id"] == stored
    accepted(gpt(previous_response_id=stored))
    assert http.delete(url).json()["deleted"] is True
    refused(gpt(previous_response_id=stored), "not found.", code)


def test_a_chain_and_a_conversation_exclude_each_other(gpt: Ask) -> None:
    made = gpt().json()["id"]
    refused(
        gpt(previous_response_id=made, conversation="conv_1"), "Mutually exclusive", "mutually_exclusive_parameters"
    )


def test_exact_replay_over_tools_and_turns(sim: Simulator, gpt: Ask) -> None:
    for store in (True, False):
        items = output(sim, gpt, think("1"), say("x"), call("f", {}), call("f", {}), store=store)
        history = [USER, *items, *result(items)]
        more = output(sim, gpt, think("2"), think("3"), say("y"), store=store, input=history)
        accepted(gpt(store=store, input=[*history, *more, NEXT]))


def test_a_persisted_reasoning_item_needs_its_follower(sim: Simulator, gpt: Ask) -> None:
    thought, said = output(sim, gpt, think("1"), say("x"))
    message = f"Item '{thought['id']}' of type 'reasoning' was provided without its required following item."
    refused(gpt(input=[USER, thought, NEXT]), message)
    other = {"role": "assistant", "content": [{"type": "output_text", "text": "edited"}]}
    refused(gpt(input=[USER, thought, other, NEXT]), message)
    refused(gpt(input=[USER, thought, {"role": "assistant", "content": ""}, said, NEXT]), message)
    accepted(gpt(input=[USER, thought, said, NEXT]))
    accepted(gpt(input=[USER, thought, {"role": "assistant", "content": "x"}, NEXT]))  # the same words without an id
    accepted(gpt(input=[USER, thought, {"type": "item_reference", "id": said["id"]}, NEXT]))


def test_a_turn_of_reasoning_alone_cannot_be_replayed(sim: Simulator, gpt: Ask) -> None:
    sim.reply(answer(think("1"), finish="length"))
    [thought] = gpt().json()["output"]
    refused(gpt(input=[USER, thought, NEXT]), "without its required following item")
    accepted(gpt(input=[USER, without_id(thought), NEXT]))


def test_reasoning_without_ids_is_free(sim: Simulator, gpt: Ask) -> None:
    thoughts = [without_id(item) for item in output(sim, gpt, think("1"), think("2"), say("x"))[:2]]
    accepted(gpt(input=[USER, *thoughts, NEXT]))


def test_unstored_items_have_no_partners(sim: Simulator, gpt: Ask) -> None:
    thought, use = output(sim, gpt, think("1"), call("f", {}), store=False)
    accepted(gpt(store=False, input=[USER, thought, without_id(use), *result([use])]))
    accepted(gpt(store=False, input=[USER, use, *result([use])]))


@pytest.mark.parametrize("part", [call("f", {}), say("x")])
def test_a_persisted_item_needs_its_reasoning(sim: Simulator, gpt: Ask, part: Part) -> None:
    thought, item = output(sim, gpt, think("1"), part)
    refused(
        gpt(input=[USER, item, *result([item]), NEXT]),
        f"Item '{item['id']}' of type '{item['type']}' was provided without its required 'reasoning' item: "
        f"'{thought['id']}'.",
    )
    if item["type"] == "function_call":
        accepted(gpt(input=[USER, without_id(item), *result([item]), NEXT]))


def test_bare_items_of_unstored_responses_are_unknown(sim: Simulator, gpt: Ask) -> None:
    thought, said = output(sim, gpt, think("1"), say("x"), store=False)
    bare = {key: value for key, value in thought.items() if key != "encrypted_content"}
    message = f"Item with id '{thought['id']}' not found. Items are not persisted when `store` is set to false."
    refused(gpt(input=[USER, bare, said, NEXT]), message, status=404)
    refused(gpt(input=[{"type": "item_reference", "id": said["id"]}, NEXT]), "not found", status=404)
    stored, after = output(sim, gpt, think("1"), say("x"))
    bare = {key: value for key, value in stored.items() if key != "encrypted_content"}
    accepted(gpt(input=[USER, bare, after, NEXT]))


def test_references_count_as_their_items(sim: Simulator, gpt: Ask) -> None:
    [use] = output(sim, gpt, call("f", {}))
    accepted(gpt(input=[USER, {"type": "item_reference", "id": use["id"]}, *result([use])]))


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-8], lambda b: b[:50] + "AAAA" + b[54:], lambda b: b[:30] + "…" + b[40:], lambda b: "gAAAAA"]
)
def test_a_spoiled_blob(sim: Simulator, gpt: Ask, spoil: Callable[[str], str]) -> None:
    thought, said = output(sim, gpt, think("1"), say("x"))
    broken = {**thought, "encrypted_content": spoil(thought["encrypted_content"])}
    refused(
        gpt(input=[USER, broken, said, NEXT]),
        f"The encrypted content for item {thought['id']} could not be verified. Reason: Encrypted content could not be "
        "decrypted or parsed.",
        "invalid_encrypted_content",
    )


def test_a_blob_of_another_item(sim: Simulator, gpt: Ask) -> None:
    first, said, second, _ = output(sim, gpt, think("1"), say("x"), think("2"), say("y"))
    mixed = {**first, "encrypted_content": second["encrypted_content"]}
    refused(gpt(input=[USER, mixed, said, NEXT]), "did not match the target item id", "invalid_encrypted_content")


def test_a_compaction_item_comes_back_as_it_is(sim: Simulator, gpt: Ask) -> None:
    [item] = output(sim, gpt, compaction("Summary"))
    accepted(gpt(input=[item, NEXT]))
    refused(gpt(input=[{**item, "encrypted_content": "x"}, NEXT]), "could not be verified", "invalid_encrypted_content")


BOUND: dict[str, Any] = {"model": "gpt-6.2-sol", "tools": [TOOL], "instructions": "Be kind"}


def dropped(response: httpx2.Response) -> list[tuple[str, str]]:
    accepted(response)
    found = response.json().get("input_transformations", [])
    assert all(entry["type"] == "reasoning" and entry["action"] == "removed" for entry in found)
    return [(entry["id"], entry["reason"]) for entry in found]


def test_reasoning_is_bound_to_its_prefix_on_newer_models(sim: Simulator, gpt: Ask) -> None:
    items = output(sim, gpt, think("1"), say("x"), **BOUND)
    made = items[0]["id"]
    history = [USER, *items, NEXT]
    assert dropped(gpt(**BOUND, input=history)) == []
    assert dropped(gpt(**{**BOUND, "tools": []}, input=history)) == [(made, "prefix_mismatch")]
    text = {"format": {"type": "json_object"}}
    assert dropped(gpt(**BOUND, text=text, input=history)) == [(made, "prefix_mismatch")]
    other = [{"role": "user", "content": "Ho"}, *items, NEXT]
    assert dropped(gpt(**BOUND, input=other)) == [(made, "prefix_mismatch")]
    assert dropped(gpt(**{**BOUND, "instructions": "Be rude"}, input=history)) == []
    assert dropped(gpt(**{**BOUND, "model": "gpt-6.2-astra"}, input=history)) == [(made, "model_mismatch")]


def test_another_spelling_of_the_same_prefix_is_no_change(sim: Simulator, gpt: Ask) -> None:
    thought, said = output(sim, gpt, think("1"), say("x"), **{**BOUND, "input": "Hi"})
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    assert dropped(gpt(**BOUND, input=[user, thought, said, NEXT])) == []


def test_only_what_follows_the_change_is_dropped(sim: Simulator, gpt: Ask) -> None:
    first = output(sim, gpt, think("1"), say("x"), **BOUND)
    second = output(sim, gpt, think("2"), say("y"), **BOUND, input=[USER, *first, NEXT])
    changed = [USER, *first, {**NEXT, "content": "Other"}, *second, NEXT]
    assert dropped(gpt(**BOUND, input=changed)) == [(second[0]["id"], "prefix_mismatch")]


def test_older_models_do_not_mind_the_prefix(sim: Simulator, gpt: Ask) -> None:
    items = output(sim, gpt, think("1"), say("x"), model="gpt-5.5")
    assert dropped(gpt(model="gpt-5.5", tools=[TOOL], input=[NEXT, *items, NEXT])) == []


def test_a_compaction_is_no_change(sim: Simulator, gpt: Ask) -> None:
    items = output(sim, gpt, compaction("Summary"), think("1"), say("x"), **BOUND)
    assert dropped(gpt(**BOUND, input=[USER, *items, NEXT])) == []
    assert dropped(gpt(**BOUND, input=[*items, NEXT])) == []


def test_a_chain_keeps_its_prefix(sim: Simulator, gpt: Ask) -> None:
    sim.reply(think("1"), say("x"))
    first = gpt(**BOUND).json()["id"]
    assert dropped(gpt(**BOUND, previous_response_id=first, input="More")) == []
    assert len(dropped(gpt(**{**BOUND, "tools": []}, previous_response_id=first, input="More"))) == 1
