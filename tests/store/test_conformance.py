"""Every backend does what every store has to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from pollux_like.store import ConversationStore
from pollux_like.testing import store_conformance

Factory = Callable[..., ConversationStore]


@pytest.mark.anyio
@pytest.mark.parametrize("check", store_conformance.CHECKS, ids=lambda check: check.__name__)
async def test_conformance(check: Callable[[Factory], Awaitable[None]], factory: Factory) -> None:
    await check(factory)
