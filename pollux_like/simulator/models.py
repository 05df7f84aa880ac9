"""Models: what each family of models accepts, as a table. Limits here are facts of a date; the rules read them.

A model that no row names follows the last row of its vendor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from pollux_like.simulator.ledger import family


@dataclass(frozen=True, slots=True)
class Claude:
    """Gates of a Claude model.

    `budget`, `adapts`, `disable`: takes thinking of the type "enabled", "adaptive", "disabled". `adaptive`: thinks
    adaptively where the request does not say. `force`: takes tool_choice any and tool. `prefill`: may continue
    an assistant message. `system_role`: takes system messages inside the conversation ("beta": on the beta path
    only). `preserves`: thinking bound to
    its prefix. `reads`: other models whose bound thinking it reads.
    """

    budget: bool = True
    adapts: bool = False
    disable: bool = True
    adaptive: bool = False
    force: bool = True
    prefill: bool = True
    system_role: Literal["no", "beta", "yes"] = "no"
    efforts: tuple[str, ...] = ("high", "low", "max", "medium", "xhigh")
    preserves: bool = False
    reads: frozenset[str] = frozenset()


_OLD = Claude()
_46 = replace(_OLD, adapts=True, prefill=False, efforts=("high", "low", "max", "medium"))
_47 = replace(_46, budget=False, efforts=("high", "low", "max", "medium", "xhigh"))
_48 = replace(_47, system_role="beta")
_5 = replace(_48, adaptive=True, system_role="yes")
_BOUND = replace(_5, preserves=True)
_FABLE = replace(_BOUND, disable=False, force=False)

_CLAUDES: tuple[tuple[str, Claude], ...] = (
    (r"claude-opus-5-5", _FABLE),
    (
        r"claude-(fable|mythos)-5-[1-9]",
        replace(_FABLE, reads=frozenset({"claude-opus-5", "claude-opus-5-5"})),
    ),
    (r"claude-(sonnet|haiku)-5-5", replace(_BOUND, budget=True)),
    (r"claude-opus-5", _5),
    (r"claude-[a-z]+-5", replace(_5, budget=True)),
    (r"claude-opus-4-8", _48),
    (r"claude-opus-4-7", _47),
    (r"claude-[a-z]+-4-[6-9]", _46),
    (r"", _OLD),
)


@cache
def claude(model: str) -> Claude:
    """The gates of a Claude model, its date apart."""
    name = family(model)
    return next(gates for pattern, gates in _CLAUDES if re.match(pattern, name))


@dataclass(frozen=True, slots=True)
class Gpt:
    """Gates of an OpenAI model.

    `reasons`: refuses sampling arguments and takes `reasoning`. `samples_without_effort`: takes them at effort "none".
    `efforts_refused`. `empty_content`: writes `content: []` on reasoning items. `binds`: replayed reasoning is bound
    to its prefix; `binds_instructions`: which counts the instructions. `chat_tools`: tools over chat completions.
    """

    reasons: bool = False
    efforts_refused: tuple[str, ...] = ()
    empty_content: bool = False
    binds: bool = False
    binds_instructions: bool = True
    chat_tools: bool = True


_GPT5 = Gpt(reasons=True)
_GPT56 = replace(_GPT5, empty_content=True)
_GPT61 = replace(_GPT56, chat_tools=False)

_GPTS: tuple[tuple[str, Gpt], ...] = (
    (
        r"gpt-6\.[2-9]",
        replace(_GPT61, efforts_refused=("none", "minimal"), binds=True, binds_instructions=False),
    ),
    (r"gpt-6\.1-sol", replace(_GPT61, efforts_refused=("none", "minimal"))),
    (r"gpt-6\.1", _GPT61),
    (r"gpt-(6|5\.[6-9])", _GPT56),
    (r"gpt-5-chat", Gpt()),
    (r"gpt-5|o\d", _GPT5),
    (r"", Gpt()),
)


@cache
def gpt(model: str) -> Gpt:
    """The gates of an OpenAI model, its date apart."""
    name = family(model)
    return next(gates for pattern, gates in _GPTS if re.match(pattern, name))


@dataclass(frozen=True, slots=True)
class Gemini:
    """Gates of a Gemini model.

    `signs`: the first call of each step needs its signature. `thinks`: takes a `thinkingConfig`. `levels`: its thinking
    levels. `least`, `most`: the range of a thinking budget, 0 and -1 apart. `rests`: takes a budget of 0. `mixes`:
    takes functions together with JSON output and with tools that Google runs.
    """

    signs: bool = True
    thinks: bool = True
    levels: frozenset[str] = frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH"})
    least: int = 1
    most: int = 65536
    rests: bool = True
    mixes: bool = True


_25 = Gemini(signs=False, levels=frozenset(), most=24576, mixes=False)
_BEFORE = replace(_25, thinks=False)

_GEMINIS: tuple[tuple[str, Gemini], ...] = (
    (r"gemini-2\.5-pro", replace(_25, least=128, most=32768, rests=False)),
    (r"gemini-2\.5-flash-lite", replace(_25, least=512)),
    (r"gemini-2\.5-flash-image", _BEFORE),
    (r"gemini-2\.5", _25),
    (r"gemini-[12]\.|gemini-(pro|flash)$|gemma", _BEFORE),
    (r"gemini-3(\.\d)?-pro-image", Gemini(signs=False)),
    (r"gemini-3-pro", Gemini(levels=frozenset({"LOW", "HIGH"}))),
    (r"gemini-3\.1-pro", Gemini(levels=frozenset({"LOW", "MEDIUM", "HIGH"}))),
    (r"gemini-3", Gemini()),
    (r"", Gemini(levels=frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"}))),
)


@cache
def gemini(model: str) -> Gemini:
    """The gates of a Gemini model."""
    return next(gates for pattern, gates in _GEMINIS if re.match(pattern, model))
