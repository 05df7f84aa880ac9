"""OpenRouter: chat completions of many providers' models, with the reasoning that each of them signed or sealed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pollux_like_chat import Dialect, Reasoning, portable
from pollux_like_chat import render as chat_render

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError
from pollux_like.provider import Adapter, Capabilities, Portable, Request, Vendor, Wire
from pollux_like.settings import Settings
from pollux_like.turns import Turn

from . import models

DIALECT = Dialect(
    "openrouter",
    max_tokens="max_tokens",
    strict_tools=False,
    stream_usage=False,  # usage comes with every stream
    reasoning=Reasoning("ignore"),
    stubs=True,
    details="reasoning_details",
    failed=frozenset({"error"}),
)
"""Sources: openrouter.ai/docs, guides/best-practices/reasoning-tokens, api/reference/errors-and-debugging and
features/tool-calling; recorded exchanges."""


class OpenRouter:
    """The vendor object; see `pollux_like.provider.Vendor`."""

    name = "openrouter"
    key_variables = ("OPENROUTER_API_KEY",)
    packages = ("openai",)
    default_model = None

    def dialect(self, options: Mapping[str, Any]) -> str:
        """There is one."""
        return "chat"

    def endpoint(self, config: Config) -> str:
        """Client, then Config.base_url, then OPENROUTER_BASE_URL, then OpenRouter's own."""
        if config.client is not None:
            return str(getattr(config.client, "base_url", "client")).rstrip("/")
        return (config.base_url or os.environ.get("OPENROUTER_BASE_URL") or "https://openrouter.ai/api/v1").rstrip("/")

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """By model; see `models`."""
        return models.capabilities(model)

    def render(self, request: Request) -> Wire:
        """The request as a chat completion; the reasoning arguments become the option `reasoning`."""
        reasoning = _reasoning(request.settings, request.options)
        wire = chat_render(
            replace(
                request,
                settings=replace(request.settings, reasoning_effort=None, reasoning_budget_tokens=None),
                options={**request.options, "reasoning": reasoning} if reasoning else request.options,
            ),
            DIALECT,
        )
        hosted = checks.json_objects(request.options.get("tools"), 'provider_options["openrouter"]["tools"]')
        functions = bool(request.tools) or any(tool.get("type") == "function" for tool in hosted)
        return models.with_tools_of(wire, request.model) if functions else wire

    def portable(self, turn: Turn) -> Portable:
        """For `handoff`."""
        return portable(turn)

    def connect(self, config: Config) -> Adapter:
        """Imports the SDK."""
        from .adapter import connect

        return connect(config)


def _reasoning(settings: Settings, options: Mapping[str, Any]) -> dict[str, Any]:
    """`effort` or `max_tokens`, not both (guides/best-practices/reasoning-tokens), beside the caller's own members."""
    reasoning = checks.maybe_object(options.get("reasoning"), 'provider_options["openrouter"]["reasoning"]')
    asked = {"effort": settings.reasoning_effort, "max_tokens": settings.reasoning_budget_tokens}
    given = {key: value for key, value in asked.items() if value is not None}
    if len(given) == 2:
        raise ConfigurationError(
            "OpenRouter takes reasoning_effort or reasoning_budget_tokens, and both are given",
            hint="Give only one of the two",
        )
    clash = {"effort", "max_tokens"} & reasoning.keys() if given else set[str]()
    if clash:
        raise ConfigurationError(
            f"provider_options set reasoning.{min(clash)} beside the argument of interact()",
            hint="Give only one of the two",
        )
    return {**reasoning, **given}


vendor: Vendor = OpenRouter()

__all__ = ["OpenRouter", "vendor"]
