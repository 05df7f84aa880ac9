"""A provider that cannot be had is found before the input is durable: nothing is pending afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollux_like import Config, ConfigurationError, Environment, Input, open_store

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("model", ["/nowhere/model.gguf", "no-such-model"])
async def test_a_local_model_that_is_not_there(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux_like_local.adapter.import_runtime", lambda: None)
    url = f"sqlite:///{tmp_path}/talks.db"
    async with open_store(url) as store:
        conversation = await store.create("talk", scope="s")
        with pytest.raises(ConfigurationError):
            await conversation.interact(Environment(), Input("Hi"), Config("local", model))
        assert conversation.pending is None
    async with open_store(url) as store:
        assert (await store.load("talk", scope="s")).pending is None


async def test_a_key_that_is_not_set(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/talks.db") as store:
        conversation = await store.create("talk", scope="s")
        for provider in ("openai", "anthropic", "gemini", "openrouter"):
            with pytest.raises(ConfigurationError, match="no key"):
                await conversation.interact(Environment(), Input("Hi"), Config(provider, "m"))
            assert conversation.pending is None
