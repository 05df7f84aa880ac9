"""Gemini: generateContent, on the Gemini API and, with a client of the application's own, on Vertex."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pollux_like.config import Config
from pollux_like.provider import Adapter, Capabilities, Portable, Request, Vendor, Wire
from pollux_like.turns import Turn

from . import inside, models, parse
from .render import render, render_count


class Gemini:
    """The vendor object; see `pollux_like.provider.Vendor`."""

    name = "gemini"
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    packages = ("google-genai",)
    default_model = None

    def dialect(self, options: Mapping[str, Any]) -> str:
        """There is one."""
        return "generate_content"

    def endpoint(self, config: Config) -> str:
        """Client, then Config.base_url, then GOOGLE_GEMINI_BASE_URL, then Google's own."""
        if config.client is not None:
            return inside.address(config.client)
        own = "https://generativelanguage.googleapis.com"
        return (config.base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or own).rstrip("/")

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """By model; see `models`."""
        return models.capabilities(model)

    def render(self, request: Request) -> Wire:
        """The request as a generateContent body."""
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

        return connect(config, self.endpoint(config))


vendor: Vendor = Gemini()

__all__ = ["Gemini", "vendor"]
