"""A simulator, each dialect in turn, and a Config that leads there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fault_support import PROVIDERS, provider_of

from pollux_like import (
    Config,
)
from pollux_like.simulator import Simulator


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


@pytest.fixture
def sim(running: Simulator) -> Simulator:
    running.reset()
    return running


@pytest.fixture(params=list(PROVIDERS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def arguments(dialect: str) -> dict[str, Any]:
    return {"provider_options": {"openai": {"api": "chat"}}} if dialect == "chat" else {}


@pytest.fixture
def to(sim: Simulator, dialect: str) -> Callable[..., Config]:
    def make(**more: Any) -> Config:
        return Config(
            provider_of(dialect), PROVIDERS[dialect], api_key="sim-key", base_url=sim.base_url(dialect), **more
        )

    return make
