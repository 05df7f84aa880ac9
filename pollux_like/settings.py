"""Settings: the arguments of one turn that shape generation. Each is sent or refused, never dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
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
        if not given:
            return _NOTHING
        unknown = given.keys() - _NAMES
        if unknown:
            raise ConfigurationError(
                f"{min(unknown)!r} is no argument of a turn",
                hint="Put what only one provider knows into provider_options",
            )
        choice, output, effort = given.get("tool_choice"), given.get("output"), given.get("reasoning_effort")
        return cls(
            tool_choice=None if choice is None else ToolChoice.of(choice),
            parallel_tool_calls=_maybe(given, "parallel_tool_calls", checks.flag),
            output=None if output is None else OutputSchema.of(output),
            max_tokens=_maybe(given, "max_tokens", partial(checks.whole, least=1)),
            temperature=_maybe(given, "temperature", partial(checks.number, least=0, most=2)),
            top_p=_maybe(given, "top_p", partial(checks.number, least=0, most=1)),
            seed=_maybe(given, "seed", partial(checks.whole, least=-(2**63), most=2**63 - 1)),
            stop=_stop(given.get("stop")),
            reasoning_effort=None if effort is None else checks.one_of(effort, "reasoning_effort", EFFORTS),
            reasoning_budget_tokens=_maybe(given, "reasoning_budget_tokens", partial(checks.whole, least=1)),
            timeout_s=_maybe(given, "timeout_s", partial(checks.number, least=0.001, most=86_400)),
            provider_options=_options(given.get("provider_options")),
        )

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


_NOTHING = Settings()
_NAMES = tuple(one.name for one in fields(Settings))
_ASKABLE = tuple(name for name in _NAMES if name not in ("timeout_s", "provider_options"))


def _maybe(given: Mapping[str, Any], name: str, check: Any) -> Any:
    value = given.get(name)
    return None if value is None else check(value, name)


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    items: Sequence[str] = checks.sequence(value, "stop", str)
    return tuple(
        checks.text(item, f"stop[{index}]") or checks.filled(item, f"stop[{index}]") for index, item in enumerate(items)
    )


def _options(value: object) -> dict[str, dict[str, Any]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"provider_options is {checks.kind(value)}", hint='Give {"provider": {"option": value}}'
        )
    from pollux_like import plugins

    result: dict[str, dict[str, Any]] = {}
    for name, options in cast("Mapping[object, object]", value).items():
        if not isinstance(name, str) or name not in plugins.names():
            raise ConfigurationError(
                f"provider_options names {name!r}, which is no provider", hint=f"Use: {', '.join(plugins.names())}"
            )
        result[name] = checks.json_object(options, f"provider_options[{name!r}]")
    return result
