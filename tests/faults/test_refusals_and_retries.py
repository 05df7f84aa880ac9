"""A refusal is a typed error; at most max_attempts identical requests; the old state goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fault_support import ENV, begun, both, goes_on

from pollux_like import (
    APIError,
    AuthenticationError,
    Config,
    ContextOverflowError,
    Input,
    ProviderTimeoutError,
    RateLimitError,
    interact,
)
from pollux_like.simulator import Simulator
from pollux_like.testing import say

pytestmark = pytest.mark.anyio


STATUSES: list[tuple[int, type[APIError], bool]] = [
    (400, APIError, False), (401, AuthenticationError, False), (403, AuthenticationError, False),
    (404, APIError, False), (408, ProviderTimeoutError, True), (409, APIError, True), (413, APIError, False),
    (429, RateLimitError, True), (500, APIError, True), (503, APIError, True), (529, APIError, True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "again"), STATUSES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_statuses(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], status: int, kind: type[APIError], again: bool,
    streamed: bool,
) -> None:  # fmt: skip
    old = await begun(sim, to, arguments)
    sim.clear()
    sim.fail(status, retry_after=0, times=5)
    with pytest.raises(kind) as caught:
        await both(to(max_attempts=2), Input("Next", continuation=old), arguments, streamed=streamed)
    assert caught.value.status == status
    assert caught.value.retryable is again
    assert caught.value.hint
    assert len(sim.requests) == (2 if again else 1)
    assert len({request.raw for request in sim.requests}) == 1
    await goes_on(sim, to, arguments, old)


@pytest.mark.parametrize("attempts", [1, 2, 3, 4])
async def test_at_most_max_attempts(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], attempts: int
) -> None:
    sim.fail(503, retry_after=0, times=9)
    with pytest.raises(APIError):
        await interact(ENV, Input("Hi"), to(max_attempts=attempts), **arguments)
    assert len(sim.requests) == attempts


async def test_a_retry_that_succeeds_says_how_many_attempts_it_took(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fail(529, retry_after=0)
    sim.fail(500, retry_after=datetime.now(UTC) - timedelta(seconds=1))
    sim.reply(say("At last."))
    output = await interact(ENV, Input("Hi"), to(max_attempts=3), **arguments)
    assert (output.text, output.metrics.attempts) == ("At last.", 3)


@pytest.mark.parametrize("when", [3600, datetime.now(UTC) + timedelta(hours=2)])
async def test_a_wait_beyond_the_limit_fails_at_once_and_says_how_long(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], when: float | datetime
) -> None:
    sim.fail(429, retry_after=when, times=3)
    with pytest.raises(RateLimitError) as caught:
        await interact(ENV, Input("Hi"), to(), **arguments)
    assert caught.value.retry_after_s is not None
    assert caught.value.retry_after_s > 3000
    assert len(sim.requests) == 1


async def test_an_exhausted_quota_is_not_retried(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], dialect: str
) -> None:
    if dialect == "openrouter":
        pytest.skip("OpenRouter says it by status 402, which is never retried")
    sim.fail(429, code="insufficient_quota", type="insufficient_quota", times=3)
    with pytest.raises(RateLimitError) as caught:
        await interact(ENV, Input("Hi"), to(), **arguments)
    assert not caught.value.retryable
    assert len(sim.requests) == 1


async def test_a_bad_key_is_an_authentication_error_even_with_tools(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any]
) -> None:
    sim.fail(401, message="invalid schema: could not parse the key")
    with pytest.raises(AuthenticationError) as caught:
        await interact(ENV, Input("Hi"), to(), **arguments)
    assert caught.value.status == 401


@pytest.mark.parametrize(
    ("dialect", "message", "code"),
    [
        ("openai", "Your input exceeds the context window of this model.", "context_length_exceeded"),
        ("chat", "This model's maximum context length is 8 tokens.", "context_length_exceeded"),
        ("anthropic", "prompt is too long: 300000 tokens > 200000 maximum", None),
        ("openrouter", "This endpoint's maximum context length is 200000 tokens.", None),
        ("deepseek", "This model's maximum context length is 65536 tokens.", None),
        ("gemini", "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).", None),
    ],
)
async def test_an_overflow_is_told_from_other_bad_requests(
    sim: Simulator, to: Callable[..., Config], arguments: dict[str, Any], message: str, code: str | None
) -> None:
    sim.fail(400, message=message, code=code)
    with pytest.raises(ContextOverflowError):
        await interact(ENV, Input("Hi"), to(), **arguments)
    sim.fail(400, message="max_tokens is not a valid field")
    with pytest.raises(APIError) as caught:
        await interact(ENV, Input("Hi"), to(), **arguments)
    assert not isinstance(caught.value, ContextOverflowError)
