"""What OpenAI's models take on the Responses API. A table, since the limits change by model and date.

Sources: the API reference of `POST /v1/responses`, the model pages, and the answers of the API to refused arguments
(`Unsupported parameter: 'top_p' is not supported with this model.`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pollux_like.provider import Capabilities

_ALWAYS = frozenset({"tool_choice", "parallel_tool_calls", "output", "max_tokens"})
_SAMPLING = frozenset({"temperature", "top_p"})
_MEDIA = frozenset({"text", "image", "pdf"})
_NO_SEED = "the Responses API has no seed"
_NO_STOP = "the Responses API has no stop sequences"
_NO_BUDGET = "OpenAI takes reasoning_effort instead"
_REASONS = {"seed": _NO_SEED, "stop": _NO_STOP, "reasoning_budget_tokens": _NO_BUDGET}

NO_REASONING = re.compile(r"gpt-3|gpt-4|chatgpt-|gpt-5(\.\d)?-chat")
"""Models without reasoning items: they refuse `reasoning` and `include: [reasoning.encrypted_content]`."""

CACHE_OPTIONS = re.compile(r"gpt-(5\.[6-9]|[6-9])")
"""Models that take `prompt_cache_options` ("Supported for gpt-5.6 and later models", POST /v1/responses)."""

_EFFORTS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (re.compile(r"o\d"), frozenset({"low", "medium", "high"})),
    (re.compile(r"gpt-5(-|$)"), frozenset({"minimal", "low", "medium", "high"})),
    (re.compile(r"gpt-5\.1"), frozenset({"none", "low", "medium", "high"})),
    (re.compile(r"gpt-5\.[2-9]"), frozenset({"none", "low", "medium", "high", "xhigh"})),
    (re.compile(r"gpt-6\.(1-sol|2)"), frozenset({"low", "medium", "high", "xhigh", "max"})),
    (re.compile(r"gpt-6"), frozenset({"none", "low", "medium", "high", "xhigh", "max"})),
)
_ANY_EFFORT = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})


def capabilities(model: str, options: Mapping[str, Any]) -> Capabilities:
    """By model name; a name that the table does not know may take everything, and the API decides."""
    return _chat(model) if options.get("api") == "chat" else _responses(model)


@lru_cache(256)
def _responses(model: str) -> Capabilities:
    return replace(_by_table(model), cache_off=CACHE_OPTIONS.match(model) is not None)


def _by_table(model: str) -> Capabilities:
    if NO_REASONING.match(model):
        return Capabilities(
            settings=_ALWAYS | _SAMPLING,
            media=_MEDIA,
            reasons={**_REASONS, "reasoning_effort": "the model does not reason"},
        )
    for pattern, efforts in _EFFORTS:
        if pattern.match(model):
            return Capabilities(
                settings=_ALWAYS | {"reasoning_effort"},
                efforts=efforts,
                media=_MEDIA,
                reasons={
                    **_REASONS,
                    "temperature": "reasoning models refuse it",
                    "top_p": "reasoning models refuse it",
                },
            )
    return Capabilities(
        settings=_ALWAYS | _SAMPLING | {"reasoning_effort"}, efforts=_ANY_EFFORT, media=_MEDIA, reasons=_REASONS
    )


@lru_cache(256)
def _chat(model: str) -> Capabilities:
    """Chat completions: with seed and stop; from GPT-6.1 on tools need the Responses API."""
    plain = NO_REASONING.match(model) is not None
    return Capabilities(
        settings=_ALWAYS | {"seed", "stop"} | (_SAMPLING if plain else {"reasoning_effort"}),
        efforts=frozenset[str]() if plain else next((e for p, e in _EFFORTS if p.match(model)), _ANY_EFFORT),
        media=_MEDIA,
        tools=re.match(r"gpt-6\.([1-9])", model) is None,
        max_stop=4,
        reasons={
            "reasoning_budget_tokens": _NO_BUDGET,
            "temperature": "reasoning models refuse it",
            "top_p": "reasoning models refuse it",
            "reasoning_effort": "the model does not reason",
        },
    )
