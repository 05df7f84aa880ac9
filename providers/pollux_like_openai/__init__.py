"""OpenAI: the Responses API, and with `provider_options={"openai": {"api": "chat"}}` chat completions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pollux_like_chat import Dialect
from pollux_like_chat import portable as chat_portable
from pollux_like_chat import render as chat_render

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError
from pollux_like.provider import Adapter, Capabilities, Portable, Request, Vendor, Wire
from pollux_like.turns import Turn

from . import models, parse
from .render import render, render_count

CHAT = Dialect("openai", system_role="developer", special=frozenset({"api"}))


class OpenAI:
    """The vendor object; see `pollux_like.provider.Vendor`."""

    name = "openai"
    key_variables = ("OPENAI_API_KEY",)
    packages = ("openai",)
    default_model = None

    def dialect(self, options: Mapping[str, Any]) -> str:
        """responses, or chat where the options say so."""
        return checks.one_of(
            options.get("api", "responses"), 'provider_options["openai"]["api"]', ("responses", "chat")
        )

    def endpoint(self, config: Config) -> str:
        """Client, then Config.base_url, then OPENAI_BASE_URL, then OpenAI's own."""
        if config.client is not None:
            return str(getattr(config.client, "base_url", "client")).rstrip("/")
        return (config.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1").rstrip("/")

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """By model; see `models`."""
        return models.capabilities(model, options)

    def render(self, request: Request) -> Wire:
        """The request in the dialect of its options."""
        return chat_render(request, CHAT) if self.dialect(request.options) == "chat" else render(request)

    def render_count(self, request: Request) -> Wire:
        """For `count_tokens`: Responses only."""
        if self.dialect(request.options) == "chat":
            raise ConfigurationError(
                "chat completions count no tokens before a turn", hint="Use the Responses API, or read Output.usage"
            )
        return render_count(request)

    def portable(self, turn: Turn) -> Portable:
        """For `handoff`."""
        return chat_portable(turn) if turn.stamp.dialect == "chat" else parse.portable(turn)

    def connect(self, config: Config) -> Adapter:
        """Imports the SDK."""
        from .adapter import connect

        return connect(config)


vendor: Vendor = OpenAI()

__all__ = ["OpenAI", "vendor"]
