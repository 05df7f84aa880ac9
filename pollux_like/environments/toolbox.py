"""The tools of an environment class: found once, checked, and described as the protocol wants it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel

from pollux_like.conversation import BLOCK_TYPES, ToolSpec
from pollux_like.environments.authoring import Environment, Traits, marks, overrides
from pollux_like.errors import ConfigurationError

MARKER = "pollux_like"
"""The key of our own additions in the tools document; other clients pass over it."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool method: `model` validates its input; None where it takes none."""

    name: str
    description: str
    model: type[BaseModel] | None
    traits: Traits

    @property
    def spec(self) -> ToolSpec:
        """As the protocol describes it: exactly three keys."""
        schema = None if self.model is None else self.model.model_json_schema()
        return ToolSpec(name=self.name, description=self.description, input_schema=schema)

    @property
    def exclusive(self) -> bool:
        """Whether it runs alone."""
        return self.traits.exclusive or self.traits.terminal


def tools_of(cls: type[Environment]) -> Mapping[str, Tool]:
    """The tools of a class by name. Raises ConfigurationError for what cannot be called."""
    found: dict[str, Tool] = {}
    for name in sorted(dir(cls)):
        method = inspect.getattr_static(cls, name)
        traits = marks(method)
        if traits is not None:
            found[name] = _tool(cls, name, method, traits)
    final = [found_tool.name for found_tool in found.values() if found_tool.traits.terminal]
    if len(final) > 1:
        raise ConfigurationError(f"{cls.__name__} has the terminal tools {', '.join(final)}", hint="Keep one")
    return found


def _tool(cls: type[Environment], name: str, method: Any, traits: Traits) -> Tool:
    if traits.terminal and traits.concurrent:
        raise ConfigurationError(f"{cls.__name__}.{name} is terminal and concurrent", hint="A terminal tool runs alone")
    try:
        hints = get_type_hints(method)
        parameters = [part for part in inspect.signature(method).parameters if part != "self"]
    except (NameError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the signature of {cls.__name__}.{name} cannot be read: {error}",
            hint="Annotate it with types that exist at run time",
        ) from None
    model = _model(hints.get(parameters[0])) if parameters else None
    if len(parameters) > 1 or (parameters and model is None):
        raise ConfigurationError(
            f"{cls.__name__}.{name} does not take one pydantic model", hint="Give it self, or self and a pydantic model"
        )
    if traits.terminal and model is not None and len(model.model_fields) != 1:
        raise ConfigurationError(
            f"the terminal tool {cls.__name__}.{name} takes {len(model.model_fields)} fields",
            hint="Its model has one field, which receives the final message",
        )
    return Tool(name, inspect.getdoc(method) or "", model, traits)


def _model(value: object) -> type[BaseModel] | None:
    return value if isinstance(value, type) and issubclass(value, BaseModel) else None


def document(
    cls: type[Environment], tools: Mapping[str, Tool], of_task: Sequence[str | ToolSpec] = ()
) -> dict[str, Any]:
    """The tools document: class tools, then those of the task, then the capabilities of the server."""
    listed = [tool.spec for tool in tools.values() if tool.traits.shared and not tool.traits.terminal]
    listed += task_tools(cls, tools, of_task).values()
    final = next((tool for tool in tools.values() if tool.traits.terminal), None)
    return {
        "tools": [spec.model_dump() for spec in listed],
        "terminal_tool": None if final is None else _terminal(final),
        "supports_score_group": overrides(cls, "score_group"),
        "message_block_types": list(BLOCK_TYPES),
        MARKER: {"call_ids": True},
    }


def _terminal(tool: Tool) -> dict[str, Any]:
    arg = None if tool.model is None else next(iter(tool.model.model_fields))
    return {"name": tool.name, "arg": arg, "description": tool.description}


def task_tools(
    cls: type[Environment], tools: Mapping[str, Tool], given: Sequence[str | ToolSpec]
) -> dict[str, ToolSpec]:
    """The tools of one task by name. Raises ConfigurationError for a name that is no `@tool(shared=False)` method."""
    found: dict[str, ToolSpec] = {}
    for entry in given:
        name = entry if isinstance(entry, str) else entry.name
        if name not in tools or tools[name].traits.shared or tools[name].traits.terminal or name in found:
            raise ConfigurationError(
                f"list_task_tools of {cls.__name__} names {name!r}",
                hint="Name each @tool(shared=False) method of the class at most once",
            )
        found[name] = tools[name].spec if isinstance(entry, str) else entry
    return found
