"""The bridge: a served conversation becomes a turn of any provider, and an episode is played to its reward."""

from __future__ import annotations

from typing import Any

import pytest
from environment_support import CONVERSATION, PIXEL

from pollux_like import Config
from pollux_like.environments import (
    AsyncEnvironmentClient,
    EnvironmentClient,
    ImageBlock,
    Message,
    ReasoningBlock,
    Server,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    run_episode,
    run_episode_sync,
    to_history,
)
from pollux_like.errors import FormatError
from pollux_like.simulator import Simulator
from pollux_like.testing import Scripted, call, say

from .conftest import QUICK

TALK = [Message.model_validate(message) for message in CONVERSATION]
PLAIN = [*TALK[:2], Message(role="assistant", blocks=TALK[2].blocks[1:]), TALK[3]]
IMAGE = ImageBlock(data=PIXEL, mimeType="image/png")


def test_a_conversation_becomes_instructions_history_and_content() -> None:
    made = to_history(PLAIN)
    assert made.instructions == "You work at the harbour."
    assert [message.to_jsonable() for message in made.history] == [
        {"role": "user", "content": "Is the ferry late?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "f1", "name": "board", "arguments_text": '{"pier":4}'}],
        },
        {"role": "tool", "content": "10 min late", "tool_call_id": "f1"},
    ]
    assert (made.content, made.losses, made.sources) == ("So when does it sail?", (), ())


def turn(role: Any, *blocks: Any) -> Message:
    return Message(role=role, blocks=list(blocks))


SAID = TextBlock(text="a")
CALL = ToolCallBlock(id="1", name="n", input={})
RESULT = ToolResultBlock(tool_call_id="1", blocks=[SAID])


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (TALK, "reasoning"),
        ([turn("user", SAID), turn("assistant", ReasoningBlock(text="r", signature="s"), SAID), turn("user", SAID)], "signed reasoning"),
        ([turn("user", IMAGE, SAID), turn("assistant", SAID), turn("user", SAID)], "an image in a user turn"),
        ([turn("user", SAID), turn("system", SAID), turn("user", SAID)], "a system turn after"),
        ([turn("user", SAID), turn("assistant", CALL, SAID), turn("user", RESULT)], "text after a tool call"),
        ([turn("user", SAID), turn("assistant", CALL),
          turn("user", ToolResultBlock(tool_call_id="1", blocks=[IMAGE]))], "image in the result of call '1'"),
        ([turn("assistant", SAID), turn("user", SAID)], "an assistant turn before the first user turn"),
        ([turn("user", SAID), turn("assistant", CALL), turn("user", RESULT, IMAGE)], "an image without text"),
        ([turn("user", SAID), turn("assistant", TextBlock(text=" ")), turn("user", SAID)], "blank text"),
    ],
)  # fmt: skip
def test_what_history_cannot_hold_is_refused_or_reported(messages: list[Message], said: str) -> None:
    with pytest.raises(FormatError, match=said):
        to_history(messages)
    made = to_history(messages, on_loss="report")
    assert len(made.losses) == 1
    assert said in made.losses[0]
    assert made.input


def test_a_conversation_that_leaves_nothing_to_answer_is_refused() -> None:
    for messages in (
        [turn("user", SAID), turn("assistant", SAID)],
        [turn("system", SAID)],
        [turn("user", SAID), turn("assistant", CALL)],
        [turn("assistant", CALL), turn("user", RESULT)],
        [turn("user", SAID, ImageBlock(data="!", mimeType="image/png"))],
        [turn("user", SAID, ImageBlock(data=PIXEL, mimeType="image/svg+xml"))],
    ):
        with pytest.raises(FormatError):
            to_history(messages, on_loss="report")


def test_images_of_the_last_turn_are_its_sources() -> None:
    made = to_history([turn("user", IMAGE, SAID)])
    assert [source.base64 for source in made.sources] == [PIXEL]
    assert made.input.content == "a"


@pytest.mark.anyio
async def test_an_episode_with_the_scripted_model(server: Server) -> None:
    model = Scripted(
        [
            call("board", {"pier": 7}, id="c1"),
            call("board", {"pier": "x"}, id="c2"),
            call("nothing", {}, id="c3"),
            call("board", "{", id="c4"),
        ],
        [say("It sails at 10:10.")],
    )
    async with (
        AsyncEnvironmentClient(server.base_url, patience=QUICK) as environment,
        environment.session(split="train", index=0) as session,
    ):
        episode = await run_episode(session, model.config, max_turns=5, on_loss="report")
    assert (episode.stopped, episode.rewards, episode.reward) == ("answered", (0.25, 1.0), 1.25)
    assert episode.losses == ("messages[2]: reasoning",)
    first, second = model.requests
    assert first.instructions == "You work at the harbour."
    assert [message["content"] for message in first.messages if message["role"] == "user"] == [
        "Is the ferry late?",
        "So when does it sail?",
    ]
    results = [message for message in second.messages if message["role"] == "tool"][1:]
    assert [bool(message.get("is_error")) for message in results] == [False, True, True, True]
    assert "integer" in results[1]["content"]


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-5-nano"),
        ("anthropic", "claude-haiku-4-5"),
        ("gemini", "gemini-3-flash-preview"),
        ("openrouter", "openai/gpt-4o-mini"),
        ("local", "deepseek-v4-flash"),
    ],
)
def test_an_episode_on_the_wire_of_each_provider(server: Server, provider: str, model: str) -> None:
    with Simulator() as sim, EnvironmentClient(server.base_url, patience=QUICK) as environment:
        sim.reply(call("echo", {"text": "hi"}, id="c1"))
        sim.reply(call("sail", {}, id="c2"))
        config = Config(
            provider, model, api_key="sim-key", base_url=sim.base_url("deepseek" if provider == "local" else provider)
        )
        task = {"conversation": [message.model_dump() for message in PLAIN]}
        with environment.session(task=task) as session:
            episode = run_episode_sync(session, config, max_turns=3)
    assert (episode.stopped, episode.reward, len(episode.outputs)) == ("finished", 1.0, 2)


def test_an_episode_is_bounded_by_its_turns(server: Server) -> None:
    model = Scripted([call("echo", {"text": "a"}, id="c1")], [call("echo", {"text": "b"}, id="c2")])
    with (
        EnvironmentClient(server.base_url, patience=QUICK) as environment,
        environment.session(split="train", index=0) as session,
    ):
        episode = run_episode_sync(session, model.config, max_turns=2, on_loss="report")
    assert (episode.stopped, episode.reward, model.left) == ("max_turns", None, 0)


def test_an_image_of_a_tool_is_refused_or_reported(server: Server) -> None:
    with EnvironmentClient(server.base_url, patience=QUICK) as environment:
        task = {"conversation": [message.model_dump() for message in PLAIN]}
        with (
            environment.session(task=task) as session,
            pytest.raises(FormatError, match="camera answered with an image"),
        ):
            run_episode_sync(session, Scripted([call("camera", id="c1")]).config, max_turns=2)
        with environment.session(task=task) as session:
            model = Scripted([call("camera", id="c1")], [say("A pier.")])
            episode = run_episode_sync(session, model.config, max_turns=2, on_loss="report")
    assert episode.losses == ("an image in a result of tool camera",)
