"""A provider from another distribution, found by its entry point, plays the whole table; no file of the core knows it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import table
from third_party.stand_in import StandIn

from pollux_like import APIError, Config, Continuation, Input, Output, handoff, interact, plugins
from pollux_like.testing import CONVERSATIONS, Conversation

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent / "third_party"
PUBLIC = {
    "pollux_like.canonical", "pollux_like.config", "pollux_like.turns", "pollux_like.errors",
    "pollux_like.messages", "pollux_like.output", "pollux_like.provider", "pollux_like.wire_ids",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """As pip leaves it: the package on the path, its metadata beside it."""
    site = tmp_path_factory.mktemp("site")
    info = site / "acme_dialogue-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dialogue\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pollux_like.providers]\nacme = acme_dialogue:vendor\n")
    paths = [str(site), str(HERE)]
    sys.path[:0] = paths
    _forget()
    yield
    for path in paths:
        sys.path.remove(path)
    _forget()


def _forget() -> None:
    plugins._installed.cache_clear()  # pyright: ignore[reportPrivateUsage]
    plugins._load.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_the_package_stands_on_the_contract_alone() -> None:
    tree = ast.parse((HERE / "acme_dialogue/__init__.py").read_text("utf-8"))
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert {name for name in used if name.startswith("pollux_like")} <= PUBLIC


async def play(conversation: Conversation, *, streamed: bool, saved: bool) -> tuple[list[Any], list[Output]]:
    api = StandIn()
    config = Config("acme", "acme-1", client=api.client, max_attempts=1)
    continuation: Continuation | None = None
    outputs: list[Output] = []
    for number, step in enumerate(conversation.steps):
        api.answers.append(step.answer)
        arguments = {name: value for name, value in conversation.arguments.items() if name != "provider_options"}
        output = await table.take(
            table.environment(conversation), table.given(conversation, number, continuation), config, arguments,
            streamed=streamed,
        )  # fmt: skip
        outputs.append(output)
        continuation = table.through_json(output.continuation) if saved else output.continuation
    return [{key: value for key, value in body.items() if key != "stream"} for body in api.bodies], outputs


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
async def test_it_plays_the_table_down_every_road(conversation: Conversation) -> None:
    direct, outputs = await play(conversation, streamed=False, saved=False)
    assert [output.finish.status for output in outputs] == [step.status for step in conversation.steps]
    assert len(direct) == len(conversation.steps)
    for streamed, saved in ((False, True), (True, False), (True, True)):
        requests, others = await play(conversation, streamed=streamed, saved=saved)
        assert requests == direct
        assert [one.text for one in others] == [one.text for one in outputs]
        assert [one.tool_calls for one in others] == [one.tool_calls for one in outputs]
    last = outputs[-1].continuation
    assert last is not None
    assert handoff(last).history


async def test_its_state_is_its_own() -> None:
    conversation = next(one for one in CONVERSATIONS if "thinking" in one.needs)
    _, outputs = await play(conversation, streamed=False, saved=False)
    last = outputs[-1].continuation
    assert last is not None
    assert last.provider == "acme"
    assert Continuation.from_jsonable(last.to_jsonable(), expected_provider="acme") == last


async def test_the_stand_in_sees_a_changed_item() -> None:
    """Else the table would prove nothing."""
    api = StandIn()
    conversation = CONVERSATIONS[0]
    api.answers.append(conversation.steps[0].answer)
    config = Config("acme", "acme-1", client=api.client, max_attempts=1)
    output = await interact(table.environment(conversation), table.given(conversation, 0, None), config)
    api.issued[0][0]["text"] = "something else"
    api.answers.append(conversation.steps[0].answer)
    with pytest.raises(APIError, match="changed, moved or left out"):
        await interact(table.environment(conversation), Input("more", continuation=output.continuation), config)
