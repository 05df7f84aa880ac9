"""Tools and the choice among them, in Gemini's form."""

from __future__ import annotations

from typing import Any

from pollux_like import checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.output import Notice
from pollux_like.provider import Request
from pollux_like.tools import ToolDeclaration

from .generation import merged
from .models import family

FORMS = {"json": ("gemini", "parametersJsonSchema"), "openapi": ("gemini-openapi", "parameters")}
"""`provider_options={"gemini": {"schemas": ...}}`: the dialect and the field. The second is for endpoints that do not
know the first; the two exclude each other."""

_DECLARED = frozenset({"functionDeclarations", "function_declarations"})
"""The member of a tool that holds functions: the API takes both spellings."""


def tools_of(request: Request, notices: list[Notice]) -> list[dict[str, Any]]:
    """One tool with all declared functions, then the provider's own."""
    hosted = checks.json_objects(request.options.get("tools"), 'provider_options["gemini"]["tools"]')
    form = checks.one_of(request.options.get("schemas", "json"), 'provider_options["gemini"]["schemas"]', tuple(FORMS))
    declared = [_declaration(tool, form, notices) for tool in request.tools]
    theirs = [
        one
        for tool in hosted
        for key in _DECLARED & tool.keys()
        for one in checks.json_objects(tool[key], f'provider_options["gemini"]["tools"]["{key}"]')
    ]
    for name in {one["name"] for one in declared} & {one.get("name") for one in theirs}:
        raise ConfigurationError(
            f"a tool of provider_options has the name {name!r} of a declared one", hint="Rename one of them"
        )
    runs = [key for tool in hosted for key in tool if key not in _DECLARED]
    if (declared or theirs) and runs and not family(request.model).mixes:
        raise ConfigurationError(
            f"{request.model} does not take functions together with {runs[0]}", hint="Leave one of the two out"
        )
    return [*([{"functionDeclarations": declared}] if declared else []), *hosted]


def _declaration(tool: ToolDeclaration, form: str, notices: list[Notice]) -> dict[str, Any]:
    dialect, field = FORMS[form]
    normal = tool.remember(dialect, lambda: schemas.normalise(tool.schema, dialect, strict=tool.strict, name=tool.name))
    notices.extend(Notice("schema", loss) for loss in normal.losses)
    return {"name": tool.name, "description": tool.description, field: normal.schema}


def tool_config(request: Request) -> dict[str, Any]:
    """`toolConfig`: AUTO, ANY or NONE; one named tool is ANY among that one."""
    ours: dict[str, Any] = {}
    choice = request.settings.tool_choice
    if choice is not None:
        calling: dict[str, Any] = {"mode": {"auto": "AUTO", "none": "NONE"}.get(choice.mode, "ANY")}
        if choice.name is not None:
            calling["allowedFunctionNames"] = [choice.name]
        ours["functionCallingConfig"] = calling
    where = 'provider_options["gemini"]["toolConfig"]'
    result = merged(ours, checks.maybe_object(request.options.get("toolConfig"), where), "toolConfig")
    calling_now = checks.maybe_object(result.get("functionCallingConfig"), f'{where}["functionCallingConfig"]')
    if calling_now.get("streamFunctionCallArguments"):
        raise ConfigurationError(
            "toolConfig asks for arguments in pieces, which cannot be replayed",
            hint="Leave streamFunctionCallArguments out",
        )
    return result
