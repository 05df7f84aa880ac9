"""Tools and the choice among them, in Anthropic's form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pollux_like import checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Notice
from pollux_like.provider import Request
from pollux_like.schemas.anthropic import (
    MAX_OPTIONAL_PARAMS,
    MAX_STRICT_TOOLS,
    MAX_UNION_PARAMS,
    count_strict_costs,
)
from pollux_like.tools import ToolDeclaration
from pollux_like.turns import folded
from pollux_like.wire_ids import wire_name

from .models import family


def tools_of(request: Request, notices: list[Notice]) -> list[dict[str, Any]]:
    """The declared tools, strict as far as the caps reach in declaration order, then the provider's own.

    A conversation that holds tool calls needs tools in the request: where none are given, stubs for the names in it.
    """
    hosted = checks.json_objects(request.options.get("tools"), 'provider_options["anthropic"]["tools"]')
    for tool in hosted:
        if any(tool.get("name") == declared.name for declared in request.tools):
            raise ConfigurationError(
                f"a tool of provider_options has the name {tool['name']!r} of a declared one", hint="Rename one of them"
            )
    if not request.tools and not hosted:
        return _stubs(request, notices)
    budget = [MAX_STRICT_TOOLS, MAX_OPTIONAL_PARAMS, MAX_UNION_PARAMS]
    return [*(_tool(tool, request.model, budget, notices) for tool in request.tools), *hosted]


def _normal(tool: ToolDeclaration, strict: bool) -> schemas.Normalised:
    return tool.remember(
        ("anthropic", strict), lambda: schemas.normalise(tool.schema, "anthropic", strict=strict, name=tool.name)
    )


def _tool(tool: ToolDeclaration, model: str, budget: list[int], notices: list[Notice]) -> dict[str, Any]:
    wanted = tool.strict and family(model).structured
    normal = _normal(tool, wanted)
    strict = normal.strict
    if strict:
        costs = tool.remember("anthropic.costs", lambda: count_strict_costs(normal.schema))
        left = [budget[0] - 1, budget[1] - costs.optional, budget[2] - costs.unions]
        if min(left) < 0:
            strict = False
            normal = _normal(tool, False)
            notices.append(Notice("strict_fallback", f"tool {tool.name} is not strict: Anthropic's caps are reached"))
        else:
            budget[:] = left
    notices.extend(Notice("schema", loss) for loss in normal.losses)
    result: dict[str, Any] = {"name": tool.name, "description": tool.description, "input_schema": normal.schema}
    if strict:
        result["strict"] = True
    return result


def _stubs(request: Request, notices: list[Notice]) -> list[dict[str, Any]]:
    past = folded(request.turns, "anthropic.names", _distinct(), partial(_met, request))
    names = [*past, *_names((), request.added)]
    if not names:
        return []
    notices.append(
        Notice("tool_stubs", "the conversation holds tool calls and no tools are given; they are named only")
    )
    return [{"name": wire_name(name), "input_schema": {"type": "object"}} for name in dict.fromkeys(names)]


def _met(request: Request, before: tuple[str, ...], index: int) -> tuple[str, ...]:
    turn = request.turns[index]
    return _distinct(*before, *_names(turn.calls, turn.added))


def _distinct(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _names(calls: Sequence[ToolCall], messages: Sequence[Message]) -> list[str]:
    return [call.name for call in (*calls, *(call for message in messages for call in message.tool_calls))]


def tool_choice(request: Request) -> dict[str, Any] | None:
    """auto, any, tool or none, with the parallel switch; none where the tools are stubs."""
    settings = request.settings
    choice: dict[str, Any] | None = None
    match settings.tool_choice.mode if settings.tool_choice else None:
        case None:
            if not request.tools and not request.options.get("tools"):
                return {"type": "none"} if _stubs(request, []) else None
        case "required":
            choice = {"type": "any"}
        case "tool":
            choice = {"type": "tool", "name": settings.tool_choice.name if settings.tool_choice else None}
        case mode:
            choice = {"type": mode}
    if settings.parallel_tool_calls is not None and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": not settings.parallel_tool_calls}
    return choice
