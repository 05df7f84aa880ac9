"""Settings: the arguments of one turn that shape generation. Each is sent or refused, never dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from pollux_like import canonical, checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.tools import ToolChoice

if TYPE_CHECKING:
    from pydantic import BaseModel

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Arguments(TypedDict, total=False):
    """The keyword arguments of a turn. Each is sent or refused (see docs/capabilities.md), never dropped.

    `tool_choice`: "auto", "required", "none" or {"name": ...}. `output`: pydantic model class or JSON Schema.
    `stop`: a str or a list of them. `reasoning_effort`: none, minimal, low, medium, high, xhigh or max.
    `timeout_s`: longest silence of the provider. `provider_options`: `{"provider": {"option": value}}`.
    """

    tool_choice: Literal["auto", "required", "none"] | Mapping[str, str] | ToolChoice | None
    parallel_tool_calls: bool | None
    output: type[BaseModel] | Mapping[str, Any] | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: str | Sequence[str] | None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    reasoning_budget_tokens: int | None
    timeout_s: float | None
    provider_options: Mapping[str, Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The form that the answer must have: a JSON Schema, and the pydantic model where one was given."""

    name: str
    schema: dict[str, Any] = field(repr=False, hash=False)
    model: type[Any] | None = None

    @classmethod
    def of(cls, value: object) -> OutputSchema:
        """From a pydantic model class or a JSON Schema of an object."""
        if isinstance(value, Mapping):
            schema = checks.json_object(cast("object", value), "output")
            schemas.check_schema(schema, name="output")
            return cls("output", schema)
        model = _model(value)
        if model is None:
            raise ConfigurationError(
                f"output is {checks.kind(value)}", hint="Give a pydantic model class or a JSON Schema of type object"
            )
        return cls(model.__name__[:64], model.model_json_schema(), model)


def _model(value: object) -> type[BaseModel] | None:
    if not isinstance(value, type):
        return None
    import pydantic

    return value if issubclass(value, pydantic.BaseModel) else None


@dataclass(frozen=True, slots=True)
class Settings:
    """All checked. `None` (or `()` for `stop`) means: not asked for."""

    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output: OutputSchema | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    reasoning_effort: str | None = None
    reasoning_budget_tokens: int | None = None
    timeout_s: float | None = None
    provider_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], hash=False)

    @classmethod
    def of(cls, **given: Any) -> Settings:
        """Check the keyword arguments of `interact` and `stream`. Raises ConfigurationError naming the argument."""
        asked = {name: value for name, value in given.items() if value is not None}
        unknown = given.keys() - _CHECKS.keys()
        if unknown:
            raise ConfigurationError(
                f"{min(unknown)!r} is no argument of a turn",
                hint="Put what only one provider knows into provider_options",
            )
        return cls(**{name: _CHECKS[name](value, name) for name, value in asked.items()}) if asked else _NOTHING

    def parts(self) -> dict[str, str]:
        """What of these a provider may read before the conversation, for `Stamp.prefix`: words, or a short digest."""
        parts: dict[str, str] = {}
        if self.output is not None:
            parts["output"] = canonical.sha256(canonical.canonical(self.output.schema))[:8]
        if self.tool_choice is not None:
            parts["tool_choice"] = self.tool_choice.name or self.tool_choice.mode
        if self.parallel_tool_calls is not None:
            parts["parallel_tool_calls"] = "on" if self.parallel_tool_calls else "off"
        if self.reasoning_effort is not None:
            parts["reasoning"] = f"effort {self.reasoning_effort}"
        if self.reasoning_budget_tokens is not None:
            parts["reasoning"] = f"{self.reasoning_budget_tokens} tokens"
        return parts

    def asked(self) -> tuple[str, ...]:
        """The names of the settings that were asked for, in declaration order."""
        return tuple(name for name in _ASKABLE if getattr(self, name) not in (None, ()))


def _stop(value: object, name: str) -> tuple[str, ...]:
    items: Sequence[str] = (value,) if isinstance(value, str) else checks.sequence(value, name, str)
    return tuple(
        checks.text(item, f"{name}[{index}]") or checks.filled(item, f"{name}[{index}]")
        for index, item in enumerate(items)
    )


def _options(value: object, name: str) -> dict[str, dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} is {checks.kind(value)}", hint='Give {"provider": {"option": value}}')
    from pollux_like import plugins

    result: dict[str, dict[str, Any]] = {}
    for provider, options in cast("Mapping[object, object]", value).items():
        if not isinstance(provider, str) or not plugins.known(provider):
            raise ConfigurationError(
                f"{name} names {provider!r}, which is no provider", hint=f"Use: {', '.join(plugins.names())}"
            )
        result[provider] = checks.json_object(options, f"{name}[{provider!r}]")
    return result


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "tool_choice": lambda value, _: ToolChoice.of(value),
    "parallel_tool_calls": checks.flag,
    "output": lambda value, _: OutputSchema.of(value),
    "max_tokens": partial(checks.whole, least=1),
    "temperature": partial(checks.number, least=0, most=2),
    "top_p": partial(checks.number, least=0, most=1),
    "seed": partial(checks.whole, least=-(2**63), most=2**63 - 1),
    "stop": _stop,
    "reasoning_effort": partial(checks.one_of, allowed=EFFORTS),
    "reasoning_budget_tokens": partial(checks.whole, least=1),
    "timeout_s": partial(checks.number, least=0.001, most=86_400),
    "provider_options": _options,
}
_ASKABLE = tuple(name for name in _CHECKS if name not in ("timeout_s", "provider_options"))
_NOTHING = Settings()
