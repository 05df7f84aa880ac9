"""What models take through OpenRouter: what holds for all, and what its list of models says of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pollux_like import api_errors
from pollux_like.errors import ConfigurationError
from pollux_like.provider import Capabilities, Wire

_SETTINGS = frozenset({
    "tool_choice", "parallel_tool_calls", "output", "max_tokens", "temperature", "top_p", "seed", "stop",
    "reasoning_effort", "reasoning_budget_tokens",
})  # fmt: skip
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
"""Source: ChatRequestEffort in openrouter.ai/docs/client-sdks."""

Listed = Mapping[str, frozenset[str]]
"""The parameters that models advertise, by model."""


def capabilities(model: str) -> Capabilities:
    """The same for every model but Anthropic's: forced to call a tool they leave the reasoning out without a word."""
    return Capabilities(
        settings=_SETTINGS,
        efforts=_EFFORTS,
        media=frozenset({"text", "image", "pdf"}),
        forced_choice_with_reasoning=not model.startswith("anthropic/"),
        max_stop=4,
        caches=False,  # by model and by the provider behind, which only the answer tells
    )


@dataclass(frozen=True, slots=True)
class ToolWire(Wire):
    """A request with tools, for a model that must take them."""

    model: str = ""


def with_tools_of(wire: Wire, model: str) -> ToolWire:
    """The same request, with the model that its tools are for."""
    return ToolWire(**{one.name: getattr(wire, one.name) for one in fields(Wire)}, model=model)


def listed(body: str) -> Listed:
    """The answer to `GET /models`: `{"data": [{"id", "supported_parameters"}]}`. Raises APIError where it is none."""
    found: dict[str, frozenset[str]] = {}
    for model in api_errors.objects(api_errors.decoded("openrouter", body), "data"):
        name, parameters = model.get("id"), model.get("supported_parameters")
        if isinstance(name, str) and isinstance(parameters, list):
            found[name] = frozenset(map(str, parameters))  # pyright: ignore[reportUnknownArgumentType]
    return found


def check_tools(model: str, known: Listed) -> None:
    """Raises ConfigurationError for a model that is listed and does not advertise tools.

    A variant that is not listed (`author/model:nitro`) is its model. OpenRouter's own names (`openrouter/auto`) stand
    for whichever model it chooses, so nothing is known of them.
    """
    parameters = known.get(model, known.get(model.partition(":")[0]))
    if parameters is not None and "tools" not in parameters and not model.startswith("openrouter/"):
        raise ConfigurationError(
            f"{model} does not support tools, as OpenRouter's list of models says",
            hint="Choose a model that does, or give no tools",
        )
