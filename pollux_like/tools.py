"""Tools that the application runs: ToolDeclaration and ToolChoice, with the checks that hold for every provider."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pollux_like import checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.memo import Memo
from pollux_like.shown import Shown

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""The names that every provider takes: OpenAI allows 64 characters, Gemini wants a letter or underscore first."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ToolDeclaration(Memo, Shown):
    """A function that the model may ask for.

    `parameters` is a JSON Schema of an object, in any style (pydantic, MCP, hand-written); `{}` or None means "no
    arguments". Each provider gets the form it accepts, the declaration itself never changes. `strict` asks for
    arguments that always fit the schema, where the provider and the schema allow it.
    """

    name: str
    description: str
    _parameters: dict[str, Any] = field(repr=False, hash=False)
    strict: bool

    def __init__(
        self,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        strict: bool = True,
    ) -> None:
        if not NAME.fullmatch(checks.filled(name, "ToolDeclaration.name")):
            raise ConfigurationError(
                f"tool name {name[:80]!r} is not accepted by every provider",
                hint="Use a letter or underscore first, then letters, digits, _ or -, at most 64 characters",
            )
        checks.text(description, f"description of tool {name}")
        checks.flag(strict, f"strict of tool {name}")
        schema = checks.json_object(parameters or {}, f"parameters of tool {name}")
        schemas.check_schema(schema, name=name)
        for key, value in (
            ("name", name), ("description", description), ("_parameters", schema), ("strict", strict)
        ):  # fmt: skip
            object.__setattr__(self, key, value)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments as it was declared, copied."""
        return checks.copied_object(self._parameters)

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments, to read only."""
        return self._parameters

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, strict: bool = True
    ) -> ToolDeclaration:
        """Declare a Python function by its signature and docstring.

        The parameters' types become the schema (through pydantic: models, Literal, Annotated, dataclasses, unions …),
        defaults make them optional, and the docstring (Google, NumPy, reST or Epydoc style) gives the descriptions.
        Raises ConfigurationError for *args, **kwargs, positional-only parameters and types without a JSON form.
        """
        import docstring_parser
        import pydantic

        if not callable(cast("object", function)):
            raise ConfigurationError(f"from_function got {checks.kind(function)}", hint="Pass a function")
        tool = str(name or getattr(function, "__name__", type(function).__name__))
        doc = docstring_parser.parse(inspect.getdoc(function) or "")
        texts = {parameter.arg_name: parameter.description for parameter in doc.params}
        try:
            signature = inspect.signature(function, eval_str=True)
        except (NameError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the signature of {tool} cannot be read: {error}", hint="Annotate it with types that exist at run time"
            ) from None
        fields: dict[str, Any] = {}
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ConfigurationError(
                    f"parameter {parameter.name} of {tool} cannot be passed by name",
                    hint="Use ordinary or keyword-only parameters",
                )
            annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
            default = ... if parameter.default is parameter.empty else parameter.default
            # The alias keeps names that pydantic reserves, such as `schema` or `_hidden`.
            fields[f"p{len(fields)}"] = (
                annotation,
                pydantic.Field(default, alias=parameter.name, description=texts.get(parameter.name)),
            )
        try:
            model = pydantic.create_model(tool, **fields)
            schema = model.model_json_schema(by_alias=True)
        except pydantic.errors.PydanticUserError as error:
            raise ConfigurationError(
                f"the parameters of {tool} have no JSON Schema: {error.message.splitlines()[0]}",
                hint="Use types that pydantic can describe",
            ) from None
        for key, text in (("title", None), ("description", None)):
            schema.pop(key, text)
        for path in cast("dict[str, dict[str, Any]]", schema.get("properties", {})).values():
            path.pop("title", None)
        return cls(tool, (doc.description or "").strip(), schema, strict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolDeclaration:
        """From a tool in OpenAI, Anthropic (`input_schema`) or MCP (`inputSchema`) shape.

        Raises ConfigurationError for provider-hosted tools, which belong in `provider_options`.
        """
        fields = checks.json_object(data, "tool")
        if fields.get("type", "function") == "function" and isinstance(fields.get("function"), dict):
            fields = cast("dict[str, Any]", fields["function"])
        if fields.get("type", "function") not in ("function", "custom"):
            raise ConfigurationError(
                f"tool type {fields['type']!r} is run by the provider", hint="Put it into provider_options"
            )
        schema: Any = {}
        for key in ("parameters", "input_schema", "inputSchema"):
            if fields.get(key) is not None:
                schema = fields[key]
        strict = fields.get("strict")
        return cls(
            fields.get("name"),  # type: ignore[arg-type]  # checked there
            fields.get("description") or "",
            schema,
            True if strict is None else strict,
        )


@dataclass(frozen=True, slots=True, repr=False)
class ToolChoice(Shown):
    """Whether the model may, must or must not call a tool: mode auto, required, none, or tool with its `name`."""

    mode: str
    name: str | None = None

    @classmethod
    def of(cls, value: object) -> ToolChoice:
        """From "auto", "required", "none", `{"name": ...}` or a ToolChoice. Raises ConfigurationError for the rest."""
        if isinstance(value, ToolChoice):
            return value
        if isinstance(value, str):
            return cls(checks.one_of(value, "tool_choice", ("auto", "required", "none")))
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, object]", value)
            if set(fields.keys()) == {"name"}:
                return cls("tool", checks.filled(fields["name"], "tool_choice.name"))
        raise ConfigurationError(
            "tool_choice has an unknown form",
            hint='Use "auto", "required", "none" or {"name": "a_declared_tool"}',
        )

    def check(self, tools: Sequence[ToolDeclaration]) -> None:
        """Refuse a choice that these tools cannot satisfy."""
        if not tools and self.mode in ("required", "tool"):
            raise ConfigurationError("tool_choice forces a tool and there are none", hint="Give Environment.tools")
        if self.name is not None and self.name not in {tool.name for tool in tools}:
            raise ConfigurationError(
                f"tool_choice names {self.name!r}, which is not declared",
                hint=f"Declared: {', '.join(tool.name for tool in tools)}",
            )
