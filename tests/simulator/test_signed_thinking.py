"""Signed blocks that were altered, cut, reordered, dropped or moved are refused; the exact echo is accepted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing.script import Part, call, compaction, redacted, say, server_tool, think

Ask = Callable[..., httpx2.Response]
TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}
BUDGET = {"type": "enabled", "budget_tokens": 1024}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
BOUND = "claude-sonnet-5-5"


class Talk:
    """A conversation with the simulator that echoes every turn exactly, unless a test meddles with `messages`."""

    def __init__(self, sim: Simulator, ask: Ask, **settings: Any) -> None:
        self.sim, self.ask, self.settings = sim, ask, settings
        self.messages: list[dict[str, Any]] = []

    def send(self, content: Any, *parts: Part, **more: Any) -> httpx2.Response:
        self.sim.clear()
        self.sim.reply(*(parts or (say("ok"),)))
        self.messages.append({"role": "user", "content": content})
        response = self.ask(messages=self.messages, **{**self.settings, **more})
        if response.status_code == 200:
            self.messages.append({"role": "assistant", "content": response.json()["content"]})
        return response

    def result(self, *parts: Part, **more: Any) -> httpx2.Response:
        uses = [b for b in self.messages[-1]["content"] if b["type"] == "tool_use"]
        return self.send(
            [{"type": "tool_result", "tool_use_id": b["id"], "content": "1"} for b in uses], *parts, **more
        )

    def block(self, message: int, index: int) -> dict[str, Any]:
        found: dict[str, Any] = self.messages[message]["content"][index]
        return found


@pytest.fixture
def old(sim: Simulator, claude: Ask) -> Talk:
    return Talk(sim, claude, model="claude-haiku-4-5", thinking=BUDGET, tools=[TOOL])


@pytest.fixture
def bound(sim: Simulator, claude: Ask) -> Talk:
    return Talk(sim, claude, model=BOUND, tools=[TOOL], system="Be kind")


def refused(response: httpx2.Response, message: str) -> None:
    assert response.status_code == 400, response.text
    assert message in response.json()["error"]["message"]


CANNOT = "blocks in the latest assistant message cannot be modified. These blocks must remain as they were"


def test_exact_echo_over_tools_and_turns(old: Talk, bound: Talk) -> None:
    for talk in (old, bound):
        assert talk.send("a", think("1"), redacted(), say("x"), call("f", {"a": 1})).status_code == 200
        assert talk.result(think(""), call("f", {"b": 2})).status_code == 200
        assert talk.result(think("3"), say("done")).status_code == 200
        assert talk.send("b", think("4"), say("more")).status_code == 200
        assert talk.send("c").status_code == 200


def test_an_edited_text_in_the_latest_turn(old: Talk) -> None:
    old.send("a", think("One"), call("f", {}))
    old.block(1, 0)["thinking"] = "Two"
    refused(old.result(), f"messages.1.content.0: `thinking` or `redacted_thinking` {CANNOT}")


def test_an_edited_text_in_an_earlier_turn(old: Talk) -> None:
    old.send("a", think("One"), say("x"))
    old.send("b", think("Two"), say("y"))
    old.block(1, 0)["thinking"] = "Other"
    refused(old.send("c"), "messages.1.content.0: Invalid `signature` in `thinking` block")


@pytest.mark.parametrize("spoil", [lambda s: s[:-8], lambda s: s[:20] + "AAAA" + s[24:], lambda s: "", lambda s: "x…y"])
def test_an_edited_signature(old: Talk, spoil: Callable[[str], str]) -> None:
    old.send("a", think("One"), redacted(), call("f", {}))
    kept = copy.deepcopy(old.messages)
    old.block(1, 0)["signature"] = spoil(old.block(1, 0)["signature"])
    refused(old.result(), "messages.1.content.0: Invalid `signature` in `thinking` block")
    old.messages = kept
    old.block(1, 1)["data"] = spoil(old.block(1, 1)["data"])
    refused(old.result(), "messages.1.content.1: Invalid `data` in `redacted_thinking` block")


def test_an_omitted_display_must_stay_omitted(old: Talk) -> None:
    old.send("a", think(""), call("f", {}))
    old.block(1, 0)["thinking"] = "made up"
    refused(old.result(), CANNOT)


def test_two_blocks_in_another_order(old: Talk) -> None:
    old.send("a", think("1"), think("2"), call("f", {}))
    content = old.messages[1]["content"]
    content[0], content[1] = content[1], content[0]
    refused(old.result(), CANNOT)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_one_of_several_blocks_dropped_from_the_latest_turn(old: Talk, gone: int) -> None:
    old.send("a", think("1"), redacted(), think("3"), call("f", {}))
    del old.messages[1]["content"][gone]
    refused(old.result(), CANNOT)


def test_blocks_dropped_in_an_earlier_step_of_the_open_turn(old: Talk) -> None:
    old.send("a", think("1"), think("2"), call("f", {}))
    old.result(think("3"), call("f", {}))
    del old.messages[1]["content"][1]
    refused(old.result(), CANNOT)


def test_thinking_of_finished_turns_may_go_from_the_front(old: Talk) -> None:
    old.send("a", think("1"), say("x"))
    old.send("b", think("2"), say("y"))
    old.send("c", think("3"), call("f", {}))
    del old.messages[1]["content"][0]
    assert old.result().status_code == 200


def test_but_not_from_the_middle(old: Talk) -> None:
    old.send("a", think("1"), say("x"))
    old.send("b", think("2"), say("y"))
    old.send("c", think("3"), call("f", {}))
    del old.messages[3]["content"][0]
    refused(old.result(), CANNOT)


def test_a_block_moved_to_another_turn(old: Talk) -> None:
    old.send("a", think("1"), say("x"))
    old.send("b", think("2"), say("y"))
    first, second = old.block(1, 0), old.block(3, 0)
    old.messages[1]["content"][0], old.messages[3]["content"][0] = second, first
    refused(old.send("c"), f"messages.3.content.0: `thinking` or `redacted_thinking` {CANNOT}")


def test_a_block_of_another_simulator_is_foreign(old: Talk, http: httpx2.Client) -> None:
    old.send("a", think("1"), call("f", {}))
    with Simulator() as other:
        body = {"max_tokens": 4096, "messages": old.messages, **old.settings}
        uses = old.messages[1]["content"][1]["id"]
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": uses, "content": "1"}]}
        body["messages"] = [*old.messages, result]
        refused(http.post(other.base_url("anthropic") + "/v1/messages", json=body), "Invalid `signature`")


PREFIX = "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block"


def change_system(talk: Talk) -> None:
    talk.settings["system"] = "Be rude"


def change_tools(talk: Talk) -> None:
    talk.settings["tools"] = [{**TOOL, "description": "new"}]


def change_question(talk: Talk) -> None:
    talk.messages[0]["content"] = "other"


def insert_turn(talk: Talk) -> None:
    talk.messages[0:0] = [{"role": "user", "content": "0"}, {"role": "assistant", "content": "0"}]


@pytest.mark.parametrize("change", [change_system, change_tools, change_question, insert_turn])
def test_preserved_thinking_is_bound_to_its_prefix(bound: Talk, change: Callable[[Talk], None]) -> None:
    bound.send("a", think("1"), say("x"))
    bound.send("b", think("2"), say("y"))
    change(bound)
    refused(bound.send("c"), PREFIX)


@pytest.mark.parametrize("change", [change_system, change_tools, change_question, insert_turn])
def test_older_models_do_not_mind_the_prefix(old: Talk, change: Callable[[Talk], None]) -> None:
    old.send("a", think("1"), say("x"))
    change(old)
    assert old.send("c").status_code == 200


def test_cache_markers_and_spelling_are_no_change(bound: Talk) -> None:
    bound.send("a", think("1"), say("x"), call("f", {"a": 1, "b": 2}))
    bound.result(think("2"), say("y"))
    bound.settings["system"] = [{"type": "text", "text": "Be kind", "cache_control": {"type": "ephemeral"}}]
    bound.settings["tools"] = [{**TOOL, "cache_control": {"type": "ephemeral"}}]
    bound.messages[0]["content"] = [{"type": "text", "text": "a"}]
    use = bound.block(1, 2)
    bound.messages[1]["content"][2] = {"type": "tool_use", "input": {"b": 2, "a": 1}, "id": use["id"], "name": "f"}
    bound.messages[2]["content"][0]["content"] = [{"type": "text", "text": "1"}]
    assert bound.send("c").status_code == 200


def test_an_edited_answer_between_thinking_blocks(bound: Talk) -> None:
    bound.send("a", think("1"), say("x"))
    bound.send("b", think("2"), say("y"))
    bound.block(1, 1)["text"] = "z"
    refused(bound.send("c"), f"messages.3.content.0: {PREFIX}")


def test_mismatched_blocks_are_dropped_and_named_where_asked(bound: Talk) -> None:
    bound.send("a", think("1"), say("x"))
    bound.send("b", think("2"), say("y"))
    change_system(bound)
    refused(bound.send("c", thinking=DROP), "thinking.block_binding: Extra inputs are not permitted")
    del bound.messages[-1]
    response = bound.send("c", think("3"), say("z"), thinking=DROP, headers=BETA)
    assert response.json()["input_transformations"] == [
        {"type": "thinking_dropped", "path": f"messages.{n}.content.0", "reason": "prefix_binding_mismatch"}
        for n in (1, 3)
    ]
    later = bound.send("d", thinking=DROP, headers=BETA)
    paths = [entry["path"] for entry in later.json()["input_transformations"]]
    assert paths == ["messages.1.content.0", "messages.3.content.0"]  # the block made after the change is valid


def test_dropping_is_reported_in_the_stream(bound: Talk) -> None:
    bound.send("a", think("1"), say("x"))
    change_system(bound)
    bound.messages.append({"role": "user", "content": "b"})
    text = bound.ask(messages=bound.messages, stream=True, thinking=DROP, headers=BETA, **bound.settings).text
    assert text.count('"reason":"prefix_binding_mismatch"') == 1


def test_the_account_default_may_be_to_drop(claude: Ask, http: httpx2.Client) -> None:
    with Simulator(binding="drop_block") as sim:

        def ask(**body: Any) -> httpx2.Response:
            return http.post(sim.base_url("anthropic") + "/v1/messages", json={"max_tokens": 9, **body})

        talk = Talk(sim, ask, model=BOUND)
        talk.send("a", think("1"), say("x"))
        change_question(talk)
        assert len(talk.send("b").json()["input_transformations"]) == 1


def test_thinking_of_a_preserving_model_between_others(bound: Talk) -> None:
    for text in ("1", "2", "3"):
        bound.send(text, think(text), say("x"))
    kept = copy.deepcopy(bound.messages)
    del bound.messages[3]["content"][0]
    refused(bound.send("d"), PREFIX)
    bound.messages = kept
    del bound.messages[1]["content"][0]
    assert bound.send("d").status_code == 200


def test_models_read_each_others_thinking_as_the_table_says(sim: Simulator, claude: Ask) -> None:
    talk = Talk(sim, claude, model="claude-opus-5-5")
    talk.send("a", think("1"), say("x"))
    talk.settings["model"] = "claude-fable-5-1"
    assert "input_transformations" not in talk.send("b", think("2"), say("y")).json()
    talk.settings["model"] = "claude-opus-5-5"
    dropped = talk.send("c").json()["input_transformations"]
    assert dropped == [{"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "model_binding_mismatch"}]


def test_a_dated_name_is_the_same_model(sim: Simulator, claude: Ask) -> None:
    talk = Talk(sim, claude, model="claude-sonnet-5-5")
    talk.send("a", think("1"), say("x"))
    talk.settings["model"] = "claude-sonnet-5-5-20260922"
    assert "input_transformations" not in talk.send("b").json()


def test_a_compaction_block_starts_the_prefix_anew(bound: Talk) -> None:
    bound.send("a", think("1"), say("x"))
    bound.send("b", compaction("Summary"), say("y"))
    bound.send("c", think("2"), say("z"))
    whole = copy.deepcopy(bound.messages)
    assert bound.send("d").status_code == 200
    bound.messages = whole[3:]
    assert bound.send("d").status_code == 200


def test_a_signed_compaction_block_comes_first_unchanged_and_once(sim: Simulator, claude: Ask) -> None:
    sim.reply(compaction("Summary", signed=True), say("x"))
    block, said = claude().json()["content"]

    def code(*messages: Any) -> str | None:
        roles = ("assistant", "user")
        body = [{"role": roles[n % 2], "content": content} for n, content in enumerate(messages)]
        answer = claude(messages=body)
        return None if answer.status_code == 200 else str(answer.json()["error"]["details"]["error_code"])

    assert code([block, said], "a") is None
    assert code([{**block, "content": "Other"}, said], "a") == "compaction_block_content_mismatch"
    assert code([{**block, "signature": "AAAA"}, said], "a") == "compaction_block_signature_invalid"
    assert code([block, said], "a", [block, said], "b") == "compaction_block_ambiguous"
    moved = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [said, block]}]
    answer = claude(messages=[*moved, {"role": "user", "content": "b"}])
    assert answer.json()["error"]["details"]["error_code"] == "compaction_block_misplaced"


def test_a_paused_turn_goes_on(sim: Simulator, claude: Ask) -> None:
    talk = Talk(sim, claude, model="claude-sonnet-5", tools=[{"type": "web_search_20260318", "name": "web_search"}])
    talk.send("a", think("1"), server_tool("web_search", {"q": 1}, result=[], id="srvtoolu_1"))
    sim.reply(think("2"), say("found"))
    rest = claude(messages=talk.messages, **talk.settings)
    assert rest.status_code == 200
    apart = [*talk.messages, {"role": "assistant", "content": rest.json()["content"]}]
    together = copy.deepcopy(talk.messages)
    together[-1]["content"].extend(rest.json()["content"])
    for messages in (apart, together):
        talk.messages = messages
        assert talk.send("b").status_code == 200
