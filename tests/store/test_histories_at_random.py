"""Forks, rewinds, turns and deletions in any order, against plain lists; and at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable

import anyio
import pytest

from pollux_like import ConfigurationError, ConflictError, Environment, Input
from pollux_like.errors import UnknownConversationError
from pollux_like.store import ConversationStore
from pollux_like.testing import Scripted, say

ENV = Environment()
SCOPE = "random"
TABLES = ("conversations", "segments", "turns", "entries", "effects", "keys")


async def said_in(store: ConversationStore, name: str) -> list[str]:
    conversation = await store.load(name, scope=SCOPE)
    return [shown.messages[0].content for shown in await conversation.transcript()]


async def left(store: ConversationStore) -> list[int]:
    """Rows by table."""
    return await store.database.read(
        lambda tx: [tx.one(f"SELECT COUNT(*) FROM pollux_like_{table}")[0] for table in TABLES]
    )


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(3))
async def test_any_order_of_changes(factory: Callable[..., ConversationStore], seed: int) -> None:
    chance = random.Random(seed)
    expected: dict[str, list[str]] = {}
    async with factory(synchronous="normal") as store:
        for step in range(80):
            name = chance.choice(list(expected)) if expected else ""
            match chance.choice(["create", "turn", "turn", "turn", "fork", "rewind", "delete"]) if name else "create":
                case "create":
                    expected[(await store.create(scope=SCOPE)).id] = []
                case "turn":
                    conversation = await store.load(name, scope=SCOPE)
                    await conversation.interact(ENV, Input(f"{step}"), Scripted([say("y")]).config)
                    expected[name] = [*expected[name], f"{step}"]
                case "fork":
                    at = chance.randint(0, len(expected[name]))
                    expected[(await store.fork(name, scope=SCOPE, at=at)).id] = expected[name][:at]
                case "rewind":
                    to = chance.randint(0, len(expected[name]))
                    await store.rewind(name, to, scope=SCOPE)
                    expected[name] = expected[name][:to]
                case _:
                    own = set(expected.pop(name))
                    receipt = await store.delete(name, scope=SCOPE)
                    assert receipt.kept == len(own & {text for texts in expected.values() for text in texts})
        for name in list(expected):
            for each, texts in expected.items():
                assert await said_in(store, each) == texts
            await store.delete(name, scope=SCOPE)
            del expected[name]
        assert await left(store) == [0] * len(TABLES)


@pytest.mark.anyio
async def test_forks_and_deletions_at_the_same_time(factory: Callable[..., ConversationStore]) -> None:
    async with factory(synchronous="normal") as store:
        trunk = await store.create("trunk", scope=SCOPE)
        for number in range(4):
            await trunk.interact(ENV, Input(f"{number}"), Scripted([say("y")]).config)
        kept: list[tuple[str, int]] = []

        async def churn(seed: int) -> None:
            chance = random.Random(seed)
            for number in range(12):
                names = [summary.id for summary in await store.list(scope=SCOPE)]
                try:
                    if chance.random() < 0.6:
                        at = chance.randint(1, 4)
                        fork = await store.fork(chance.choice(names), f"{seed}.{number}", scope=SCOPE, at=at)
                        await fork.interact(ENV, Input(f"of {fork.id}"), Scripted([say("y")]).config)
                    else:
                        await store.delete(chance.choice(names), scope=SCOPE)
                except (UnknownConversationError, ConflictError, ConfigurationError, IndexError):
                    continue  # another was faster, the fork is too short, or nothing is left
                except Exception as error:
                    kept.append((repr(error), seed))
                    raise

        async with anyio.create_task_group() as group:
            for seed in range(6):
                group.start_soon(churn, seed)
        assert kept == []
        assert (await store.verify(scope=SCOPE)).problems == ()
        for summary in await store.list(scope=SCOPE):
            texts = await said_in(store, summary.id)
            own = [text for text in texts if text == f"of {summary.id}"]
            assert len(own) == (summary.id != "trunk")
            await store.delete(summary.id, scope=SCOPE)
        assert await left(store) == [0] * len(TABLES)
