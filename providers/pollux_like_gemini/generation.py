"""`generationConfig`: the settings of a turn in Gemini's words, merged with the caller's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pollux_like import checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.output import Notice
from pollux_like.provider import Request

from .models import family

_NAMES = (
    ("max_tokens", "maxOutputTokens"), ("temperature", "temperature"), ("top_p", "topP"), ("seed", "seed"),
)  # fmt: skip
MAX_SEED = 2**31 - 1
"""`seed` is an int32."""


def generation_config(request: Request, notices: list[Notice]) -> dict[str, Any]:
    """The members that were asked for. Raises ConfigurationError for two that contradict each other."""
    settings = request.settings
    ours: dict[str, Any] = {
        theirs: getattr(settings, name) for name, theirs in _NAMES if getattr(settings, name) is not None
    }
    if settings.seed is not None and not -MAX_SEED - 1 <= settings.seed <= MAX_SEED:
        raise ConfigurationError(f"seed is {settings.seed}", hint=f"Gemini's most is {MAX_SEED}")
    if settings.stop:
        ours["stopSequences"] = list(settings.stop)
    if settings.output is not None:
        if request.tools and not family(request.model).mixes:
            raise ConfigurationError(
                f"{request.model} does not take tools together with output", hint="Leave one of the two out"
            )
        normal = schemas.normalise(settings.output.schema, "gemini", strict=False, name=settings.output.name)
        notices.extend(Notice("schema", loss) for loss in normal.losses)
        ours.update({"responseMimeType": "application/json", "responseJsonSchema": normal.schema})
    thinking = _thinking(request)
    if thinking:
        ours["thinkingConfig"] = thinking
    where = 'provider_options["gemini"]["generationConfig"]'
    given = checks.maybe_object(request.options.get("generationConfig"), where)
    if given.get("candidateCount", 1) != 1:
        raise ConfigurationError("candidateCount asks for several answers", hint="A conversation has one; leave it out")
    result = merged(ours, given, "generationConfig")
    both = checks.maybe_object(result.get("thinkingConfig"), f'{where}["thinkingConfig"]')
    if "thinkingLevel" in both and "thinkingBudget" in both:
        raise ConfigurationError("both a thinking level and a thinking budget are given", hint="Give only one")
    return result


def _thinking(request: Request) -> dict[str, Any]:
    """`thinkingConfig`. Thoughts are included where thinking was asked for, so that `Output.reasoning` shows them."""
    effort, budget = request.settings.reasoning_effort, request.settings.reasoning_budget_tokens
    if effort is not None and budget is not None:
        raise ConfigurationError("both reasoning_effort and reasoning_budget_tokens are given", hint="Give only one")
    one = family(request.model)
    if budget is not None:
        if not one.least <= budget <= one.most:
            raise ConfigurationError(
                f"reasoning_budget_tokens is {budget}", hint=f"{request.model} takes {one.least} to {one.most}"
            )
        return {"thinkingBudget": budget, "includeThoughts": True}
    if effort is None:
        return {}
    if effort in one.levels:
        return {"thinkingLevel": effort.upper(), "includeThoughts": True}
    tokens = one.budgets[effort]
    return {"thinkingBudget": tokens, "includeThoughts": True} if tokens else {"thinkingBudget": 0}


def merged(ours: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Both, objects merged member by member. Raises ConfigurationError for a member that both set to other values."""
    result = dict(ours)
    for key, value in given.items():
        mine = result.get(key)
        if isinstance(mine, dict) and isinstance(value, dict):
            both = cast("dict[str, Any]", mine), cast("dict[str, Any]", value)
            result[key] = merged(*both, f"{where}.{key}")
        elif key == "includeThoughts" or key not in result:
            result[key] = value
        else:
            raise ConfigurationError(
                f"provider_options set {where}.{key} beside an argument", hint="Give only one of the two"
            )
    return result
