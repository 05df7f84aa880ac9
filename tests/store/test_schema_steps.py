"""Stores of an older step of the schema: brought up to date where that is asked for, and readable after it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pollux_like import Environment, Input
from pollux_like.errors import (
    StoreSchemaError,
)
from pollux_like.store import ddl, open_store, schema, sqlite
from pollux_like.testing import Scripted, say

pytestmark = pytest.mark.anyio
ENV = Environment()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talks.db"


async def test_a_store_of_the_step_before(file: Path) -> None:
    """Its tables are of step 1, where turns had no column `said`; its rows are those of that release."""
    connection = sqlite3.connect(file)
    connection.executescript(ddl("sqlite").partition("-- step 2")[0])
    connection.close()
    with pytest.raises(StoreSchemaError, match="schema 1"):
        async with open_store(f"sqlite:///{file}", migrate=False):
            pass
    steps = schema.STEPS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "STEPS", steps[:1])
        many = sqlite._Rows.many

        def without_said(self: Any, sql: str, values: Any) -> None:
            if "pollux_like_turns" in sql:
                sql, values = sql.replace(", said", "").replace("?, ?)", "?)"), [row[:-1] for row in values]
            many(self, sql, values)

        patch.setattr(sqlite._Rows, "many", without_said)
        async with open_store(f"sqlite:///{file}", migrate=False) as store:
            conversation = await store.create("a", scope="t")
            await conversation.interact(ENV, Input("old"), Scripted([say("Old")]).config, key="k")
    async with open_store(f"sqlite:///{file}") as store:
        conversation = await store.load("a", scope="t")
        assert [shown.messages[1].content for shown in await conversation.transcript()] == ["Old"]
        assert (await conversation.interact(ENV, Input("old"), Scripted().config, key="k")).text == "Old"
        await conversation.interact(ENV, Input("new"), Scripted([say(" ")]).config, key="l")
        assert (await conversation.interact(ENV, Input("new"), Scripted().config, key="l")).text == " "
        assert (await store.verify(scope="t")).problems == ()
