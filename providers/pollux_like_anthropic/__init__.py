"""Anthropic: the Messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pollux_like.config import Config
from pollux_like.provider import Adapter, Capabilities, Portable, Request, Vendor, Wire
from pollux_like.turns import Turn

from . import models, parse
from .render import render, render_count


class Anthropic:
    """The vendor object; see `pollux_like.provider.Vendor`."""

    name = "anthropic"
    key_variables = ("ANTHROPIC_API_KEY",)
    packages = ("anthropic",)
    default_model = None

    def dialect(self, options: Mapping[str, Any]) -> str:
        """There is one."""
        return "messages"

    def endpoint(self, config: Config) -> str:
        """Client, then Config.base_url, then ANTHROPIC_BASE_URL, then Anthropic's own."""
        if config.client is not None:
            return str(getattr(config.client, "base_url", "client")).rstrip("/")
        return (config.base_url or os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com").rstrip("/")

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """By model and pinned API version; see `models`."""
        return models.capabilities(model, options)

    def render(self, request: Request) -> Wire:
        """The request as a Messages body."""
        return render(request)

    def render_count(self, request: Request) -> Wire:
        """For `count_tokens`."""
        return render_count(request)

    def portable(self, turn: Turn) -> Portable:
        """For `handoff`."""
        return parse.portable(turn)

    def connect(self, config: Config) -> Adapter:
        """Imports the SDK."""
        from .adapter import connect

        return connect(config)


vendor: Vendor = Anthropic()

__all__ = ["Anthropic", "vendor"]
