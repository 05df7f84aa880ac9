"""Every schema of the corpus as a tool, on every provider: the strict stand-in takes it, alone and beside others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import table
from schemas.corpus import CASES

from pollux_like import Environment, Input, ToolDeclaration, interact
from pollux_like.simulator import Simulator
from pollux_like.testing import say

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

TOGETHER = 12
TOOLS = [ToolDeclaration(f"tool_{n}", case.name, case.schema or {}) for n, case in enumerate(CASES)]


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.mark.parametrize("target", table.TARGETS, ids=lambda target: target.name)
async def test_the_corpus_is_taken(sim: Simulator, target: table.Target) -> None:
    sim.reset()
    to = table.config(table.url(sim, target), target)
    arguments = {"provider_options": {target.provider: dict(target.options)}} if target.options else {}
    groups = [[tool] for tool in TOOLS] + [TOOLS[at : at + TOGETHER] for at in range(0, len(TOOLS), TOGETHER)]
    for tools in groups:
        sim.reply(say("ok"))
        output = await interact(Environment(tools=tools), Input("x"), to, **arguments)
        assert output.text == "ok", [tool.description for tool in tools]
    assert len(sim.requests) == len(groups)
    assert all(request.body.get("tools") for request in sim.requests)
