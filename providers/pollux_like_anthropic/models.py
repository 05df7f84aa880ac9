"""What Anthropic's models take. A table, since the limits change by model and date.

Sources: the model pages and "What's new" pages of platform.claude.com, the extended-thinking and effort guides, and the
answers of the API to refused arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pollux_like.provider import Capabilities

LAST_SAMPLING_VERSION = "2026-10-20"
"""From `anthropic-version: 2026-10-21` on, temperature, top_p and top_k are refused (the migration guide)."""


@dataclass(frozen=True, slots=True)
class Family:
    """`adaptive`: takes adaptive thinking. `budget`: takes a thinking budget. `unasked`: thinks where
    the request says nothing (recorded on claude-sonnet-5). `always`: thinks whatever is asked."""

    pattern: re.Pattern[str]
    adaptive: bool = True
    budget: bool = True
    unasked: bool = False
    always: bool = False
    efforts: frozenset[str] = frozenset()
    structured: bool = True
    max_tokens: int = 16_384


_BASE = frozenset({"low", "medium", "high", "max"})
_WIDE = _BASE | {"xhigh"}

_FAMILIES = (
    Family(
        re.compile(r"claude-(opus|sonnet|haiku)-5-[5-9]|claude-(fable|mythos)-5-[1-9]"),
        budget=False, unasked=True, always=True, efforts=_WIDE,
    ),
    Family(re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-5"), budget=False, unasked=True, efforts=_WIDE),
    Family(re.compile(r"claude-opus-4-[7-9]"), budget=False, efforts=_WIDE),
    Family(re.compile(r"claude-(opus|sonnet)-4-6"), efforts=_BASE),
    Family(re.compile(r"claude-opus-4-5"), adaptive=False, efforts=frozenset({"low", "medium", "high"})),
    Family(re.compile(r"claude-(sonnet|haiku)-4-5|claude-opus-4-1"), adaptive=False),
    Family(re.compile(r"claude-(opus|sonnet)-4|claude-3-7"), adaptive=False, structured=False),
    Family(re.compile(r"claude-3-5"), adaptive=False, budget=False, structured=False, max_tokens=8_192),
    Family(re.compile(r"claude-(3|2|instant)"), adaptive=False, budget=False, structured=False, max_tokens=4_096),
)  # fmt: skip
_UNKNOWN = Family(re.compile(""), unasked=True, efforts=_WIDE)
"""A name that the table does not know may take everything, and the API decides."""


def family(model: str) -> Family:
    """By model name, also with the prefixes of Bedrock and Vertex (`anthropic.`, `us.anthropic.`)."""
    name = re.sub(r"^([a-z]+\.)*anthropic\.", "", model)
    return next((one for one in _FAMILIES if one.pattern.match(name)), _UNKNOWN)


def samples(options: Mapping[str, Any]) -> bool:
    """Whether the pinned API version still takes sampling arguments."""
    return str(options.get("anthropic_version", "9999")) <= LAST_SAMPLING_VERSION


def capabilities(model: str, options: Mapping[str, Any]) -> Capabilities:
    """By model and pinned API version."""
    return _capabilities(model, samples(options))


@lru_cache(256)
def _capabilities(model: str, sampling: bool) -> Capabilities:
    one = family(model)
    settings = {"tool_choice", "parallel_tool_calls", "max_tokens", "stop"}
    if one.structured:
        settings.add("output")
    if one.efforts:
        settings.add("reasoning_effort")
    if one.budget:
        settings.add("reasoning_budget_tokens")
    if sampling:
        settings |= {"temperature", "top_p"}
    pin = (
        'this anthropic-version refuses it; an older one, {"anthropic": {"anthropic_version": "2023-06-01"}}, takes it'
    )
    return Capabilities(
        settings=frozenset(settings),
        efforts=one.efforts | ({"none"} if one.efforts and not one.always else frozenset[str]()),
        media=frozenset({"text", "image", "pdf"}),
        forced_choice=not one.always,
        forced_choice_with_reasoning=False,
        max_temperature=1.0,
        max_stop=8_191,
        cache_off=True,
        reasons={
            "seed": "the Messages API has no seed",
            "temperature": pin,
            "top_p": pin,
            "reasoning_budget_tokens": "the model decides itself how long to think; give reasoning_effort"
            if one.efforts
            else "the model does not think",
            "reasoning_effort": "the model has no effort levels; give reasoning_budget_tokens"
            if one.budget
            else "the model does not think",
            "output": "the model has no structured output",
        },
    )
