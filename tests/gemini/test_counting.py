"""Counting tokens: the request of the turn, in the form in which each of Google's APIs counts it."""

from __future__ import annotations

from typing import Any

import pytest
from gemini.wire import ENV, FLASH, Fake, answer, text

from pollux_like import Input, count_tokens, interact

pytestmark = pytest.mark.anyio


async def counted(*, vertex: bool) -> tuple[int, Fake]:
    fake = Fake({"totalTokens": 1234}, answer(text("ok")), vertex=vertex)
    arguments: dict[str, Any] = {"max_tokens": 50}
    number = await count_tokens(ENV, Input("q"), fake.config(), **arguments)
    await interact(ENV, Input("q"), fake.config(), **arguments)
    return number, fake


async def test_the_gemini_api_counts_a_whole_request() -> None:
    number, fake = await counted(vertex=False)
    assert number == 1234
    assert fake.asked[0].url.path.endswith(f"/models/{FLASH}:countTokens")
    whole = fake.sent[0]["generateContentRequest"]
    assert whole == {"model": f"models/{FLASH}", **fake.sent[1]}


async def test_vertex_counts_its_own_members() -> None:
    number, fake = await counted(vertex=True)
    assert number == 1234
    assert fake.asked[0].url.path.endswith(f"publishers/google/models/{FLASH}:countTokens")
    body = fake.sent[0]
    assert {name: fake.sent[1][name] for name in body} == body
    assert {"contents", "systemInstruction", "tools"} <= body.keys()
