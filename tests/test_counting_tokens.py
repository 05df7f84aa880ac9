"""Counting tokens before a turn: the same conversation, to the provider's own counting endpoint."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from table import TARGETS, Target, config, environment, given, url
from wires import ENV, Fake, ask, refused, texts

from pollux_like import APIError, Config, ConfigurationError, Environment, Input, Session, count_tokens, interact, sync
from pollux_like.simulator import Simulator
from pollux_like.testing import CONVERSATIONS

pytestmark = pytest.mark.anyio

COUNTED = [
    target
    for target in TARGETS
    if target.name in ("openai", "openai-stored", "anthropic", "anthropic-preserved", "gemini", "gemini-budgets")
]


@pytest.mark.parametrize("target", COUNTED, ids=lambda target: target.name)
async def test_every_request_of_the_table_can_be_counted(target: Target) -> None:
    """The simulator checks a count by the rules of the turn itself, and its own list of members."""
    with Simulator() as sim:
        for conversation in CONVERSATIONS:
            if conversation.needs & target.lacks:
                continue
            sim.reset()
            state = None
            for number, step in enumerate(conversation.steps):
                to, env = config(url(sim, target), target), environment(conversation)
                brought, arguments = given(conversation, number, state), target.arguments(conversation)
                assert await count_tokens(env, brought, to, **arguments) > 0
                before = len(sim.requests)
                sim.reply(step.answer)
                state = (await interact(env, brought, to, **arguments)).continuation
                assert len(sim.requests) == before + 1


@pytest.mark.parametrize(
    ("provider", "path"), [("openai", "/responses/input_tokens"), ("anthropic", "/v1/messages/count_tokens")]
)
async def test_the_count_is_the_providers(provider: str, path: str) -> None:
    seen: list[httpx2.Request] = []

    def count(request: httpx2.Request) -> dict[str, Any]:
        seen.append(request)
        return {"object": "response.input_tokens", "input_tokens": 1234}

    fake = Fake(count, texts(provider, "ok"))
    assert await count_tokens(ENV, Input("q"), fake.at(provider), max_tokens=100) == 1234
    assert seen[0].url.path.endswith(path)
    await ask(fake.at(provider), Input("q"), max_tokens=100)
    counted, sent = fake.sent
    assert {name: sent[name] for name in counted} == counted  # what is counted is what is sent
    assert {"max_tokens", "max_output_tokens", "stream", "store"}.isdisjoint(counted)


async def test_a_count_is_sent_again_like_a_turn() -> None:
    fake = Fake(refused(429, **{"retry-after": "0"}), {"input_tokens": 7})
    assert await count_tokens(ENV, Input("q"), fake.openai()) == 7
    assert fake.raw[0] == fake.raw[1]


@pytest.mark.parametrize(
    "body", [{}, {"input_tokens": "7"}, {"input_tokens": -1}, {"input_tokens": True}, {"input_tokens": None}]
)
async def test_an_answer_without_a_count_is_an_error(body: Any) -> None:
    fake = Fake(body)
    with pytest.raises(APIError, match="cannot be read"):
        await count_tokens(ENV, Input("q"), fake.openai(max_attempts=1))


async def test_bad_input_is_refused_before_any_request() -> None:
    fake = Fake()
    with pytest.raises(ConfigurationError):
        await count_tokens(ENV, Input("q"), fake.openai(), temperature=1.0)
    assert fake.raw == []


@pytest.mark.parametrize(
    ("to", "options"),
    [
        (Config("openai", "gpt-5.2", api_key="k"), {"openai": {"api": "chat"}}),
        (Config("scripted"), {}),
    ],
)
async def test_where_nothing_counts_it_is_said(to: Config, options: Any) -> None:
    with pytest.raises(ConfigurationError, match="before a turn"):
        await count_tokens(Environment(), Input("q"), to, provider_options=options)


async def test_a_session_counts_over_its_own_client() -> None:
    fake = Fake({"input_tokens": 9})
    async with Session(fake.openai()) as session:
        assert await session.count_tokens(ENV, Input("q")) == 9


def test_code_that_is_not_async_counts() -> None:
    with Simulator() as sim:
        to = Config("openai", "gpt-5.2", api_key="k", base_url=sim.base_url("openai"))
        assert sync.count_tokens(Environment(), Input("one two three four"), to) > 0
