"""What Gemini's models take. A table, since the limits change by model and date.

Sources: the model pages and the guides "Thinking", "Thought signatures", "Function calling" and "Structured output" of
ai.google.dev/gemini-api/docs; the table of efforts is that of its page on OpenAI compatibility.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pollux_like.provider import Capabilities

MAX_STOP = 5
"""`stopSequences`: "up to 5"."""

_ALWAYS = frozenset({"tool_choice", "output", "max_tokens", "temperature", "top_p", "seed", "stop"})


@dataclass(frozen=True, slots=True)
class Family:
    """`levels`: the efforts that become a `thinkingLevel`. `budgets`: efforts that become a `thinkingBudget`, in
    tokens. `least`, `most`: the range of a budget, in tokens; `most` 0 where the model takes none. `signs`: the first
    call of a step needs a signature. `mixes`: tools go with JSON output and with tools that Google runs."""

    pattern: re.Pattern[str]
    levels: frozenset[str] = frozenset()
    budgets: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    least: int = 0
    most: int = 0
    signs: bool = True
    mixes: bool = True


_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_FOUR = frozenset({"minimal", "low", "medium", "high"})

_FAMILIES = (
    Family(re.compile(r"gemini-2\.5-pro"), budgets=_BUDGETS, least=128, most=32768, signs=False, mixes=False),
    Family(
        re.compile(r"gemini-2\.5-flash-lite"),
        budgets={"none": 0, **_BUDGETS}, least=512, most=24576, signs=False, mixes=False,
    ),
    Family(
        re.compile(r"gemini-2\.5-flash(?!-image)"),
        budgets={"none": 0, **_BUDGETS}, least=1, most=24576, signs=False, mixes=False,
    ),
    Family(re.compile(r"gemini-[12]\.|gemini-(pro|flash)$|gemma"), signs=False, mixes=False),
    Family(re.compile(r"gemini-3(\.\d)?-pro-image"), signs=False),
    Family(re.compile(r"gemini-3-pro"), levels=frozenset({"low", "high"})),
    Family(re.compile(r"gemini-3\.1-pro"), levels=frozenset({"low", "medium", "high"})),
    Family(re.compile(r"gemini-3"), levels=_FOUR),
)  # fmt: skip
_UNKNOWN = Family(re.compile(""), levels=_FOUR | {"xhigh"})
"""A name that the table does not know is a newer one, and the API decides."""


def family(model: str) -> Family:
    """By model name, also as a path (`models/…`, `publishers/google/models/…`)."""
    name = model.rsplit("/", 1)[-1]
    return next((one for one in _FAMILIES if one.pattern.match(name)), _UNKNOWN)


@lru_cache(256)
def capabilities(model: str) -> Capabilities:
    """By model name."""
    one = family(model)
    settings = set(_ALWAYS)
    efforts = one.levels | frozenset(one.budgets)
    if efforts:
        settings.add("reasoning_effort")
    if one.most:
        settings.add("reasoning_budget_tokens")
    return Capabilities(
        settings=frozenset(settings),
        efforts=efforts,
        media=frozenset({"text", "image", "pdf"}),
        max_stop=MAX_STOP,
        reasons={
            "parallel_tool_calls": "the API has no switch for parallel calls",
            "reasoning_effort": "the model does not think",
            "reasoning_budget_tokens": "the model takes a thinking level; give reasoning_effort"
            if one.levels
            else "the model does not think",
        },
    )
