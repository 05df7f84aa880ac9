"""The page on multi-turn conversations, to the letter: its code runs after changing the package's name."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from pollux_like.environments import (
    EnvironmentClient,
    Message,
    ReasoningBlock,
    Server,
    TextBlock,
    ToolCallBlock,
    ToolOutput,
    ToolResultBlock,
    tool,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import say

PAGE = "multi-turn-conversations.txt"


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    """The code blocks of the page: class, consumer, rich conversation, validation, JSON."""
    file = Path(os.environ.get("POLLUX_LIKE_SEEDS", "../shared/seeds")) / PAGE
    if not file.is_file():
        pytest.skip("the page is not here; set POLLUX_LIKE_SEEDS to its folder")
    found = re.findall(
        r"^```(?:python|json) theme=\{null\}\n(.*?)^```", file.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(found) == 5
    return [block.replace("openreward", "pollux_like") for block in found]


def names(block: str) -> dict[str, Any]:
    """What a block defines."""
    found: dict[str, Any] = {}
    exec(block, found)
    return found


def test_the_class_of_the_page_is_served_and_consumed_as_it_says(blocks: list[str]) -> None:
    openai = pytest.importorskip("openai")
    dialogue = names(blocks[0])["DialogueEnv"]
    with Server([dialogue]) as server, EnvironmentClient(server.base_url) as environment, Simulator() as sim:
        sim.reply(say("It left the hub this morning."))
        oai_client = openai.OpenAI(base_url=sim.base_url("chat"), api_key="sim-key")
        task = environment.list_tasks("train")[0]
        with environment.session(task=task) as session:
            tools = session.list_tools(format="openai")
        made = {"environment": environment, "task": task, "oai_client": oai_client, "tools": tools or openai.omit}
        exec(blocks[1], made)
    assert made["input_messages"] == [
        {"role": "system", "content": "You are a support agent for Acme."},
        {"role": "user", "content": "My order hasn't arrived."},
        {"role": "assistant", "content": "Sorry to hear that — what's the order number?"},
        {"role": "user", "content": "It's #4411, ordered two weeks ago."},
    ]
    assert made["response"].choices[0].message.content == "It left the hub this morning."


def test_the_tools_of_a_session_go_with_its_messages_into_one_request() -> None:
    openai = pytest.importorskip("openai")
    from environment_support import Harbour

    with Server([Harbour]) as server, EnvironmentClient(server.base_url) as environment, Simulator() as sim:
        client = openai.OpenAI(base_url=sim.base_url("chat"), api_key="sim-key")
        responses = openai.OpenAI(base_url=sim.base_url("openai"), api_key="sim-key")
        plain = {"conversation": [{"role": "user", "blocks": [{"type": "text", "text": "Late?"}]}]}
        with environment.session(task=plain) as session:
            client.chat.completions.create(
                model="gpt-5.2",
                messages=session.get_messages(format="openai"),
                tools=session.list_tools(format="openai"),
            )
            responses.responses.create(
                model="gpt-5.2",
                input=session.get_messages(format="openai-responses"),
                tools=session.list_tools(format="openai-responses"),
            )
        chat, items = (request.body["tools"] for request in sim.requests)
    (board,) = [one["function"] for one in chat if one["function"]["name"] == "board"]
    (item,) = [one for one in items if one["name"] == "board"]
    assert (
        board["parameters"]["properties"]["pier"]["type"]
        == item["parameters"]["properties"]["pier"]["type"]
        == "integer"
    )


def test_the_rich_conversation_of_the_page_and_its_json_are_the_same(blocks: list[str]) -> None:
    by_hand = names(blocks[2])["get_messages"](None)
    spec = json.loads(blocks[4])

    class Holder:
        task_spec = spec

    validate = blocks[3]
    made: dict[str, Any] = {"Message": Message}
    exec(validate, made)
    parsed = made["get_messages"](Holder())
    assert parsed == by_hand
    assert [type(block) for block in parsed[1].blocks] == [ReasoningBlock, ToolCallBlock]
    assert isinstance(parsed[2].blocks[0], ToolResultBlock)


def test_the_table_of_formats(blocks: list[str]) -> None:
    from pollux_like.conversation import convert
    from pollux_like.errors import FormatError

    rich = names(blocks[2])["get_messages"](None)
    assert convert(rich, None) == rich
    anthropic = convert(rich, "anthropic")
    assert anthropic["system"] is None
    assert anthropic["messages"][1]["content"][0] == {
        "type": "thinking", "thinking": "Two weeks late — check the carrier first."
    }  # fmt: skip
    for form in ("openai", "openrouter"):
        chat = convert(rich, form)
        assert isinstance(chat, list)
        assert chat[1]["reasoning_content"] == "Two weeks late — check the carrier first."
        assert chat[1]["tool_calls"][0]["function"]["name"] == "lookup_order"
        assert chat[2] == {"role": "tool", "tool_call_id": "tc_1", "content": '{"status": "stalled_at_hub"}'}
    with pytest.raises(ValueError, match=r'format="google" cannot hold messages\[1\]\.blocks\[0\]') as raised:
        convert(rich, "google")
    assert isinstance(raised.value, FormatError)
    without = [rich[0], Message(role="assistant", blocks=rich[1].blocks[1:]), rich[2]]
    google = convert(without, "google")
    assert google["contents"][1]["role"] == "model"
    assert google["contents"][2]["parts"][0]["function_response"]["name"] == "lookup_order"


def test_a_tool_added_to_the_class_of_the_page_grades_the_next_turn(blocks: list[str]) -> None:
    base = names(blocks[0])["DialogueEnv"]

    class Graded(base):
        @tool
        def submit(self) -> ToolOutput:
            """Grade."""
            return ToolOutput(blocks=[TextBlock(text="done")], reward=1.0, finished=True)

    with (
        Server([base, Graded]) as server,
        EnvironmentClient(server.base_url, environment="Graded") as environment,
        environment.session(split="train", index=0) as session,
    ):
        assert session.call_tool("submit").reward == 1.0
