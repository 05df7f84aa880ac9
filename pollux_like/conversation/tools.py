"""Tool declarations of an environment, and their form in each format that messages have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from pollux_like import schemas
from pollux_like.conversation.formats import check_format

_DIALECTS = {
    "openai": "openai", "openai-responses": "openai", "openrouter": "openai", "anthropic": "anthropic",
    "google": "gemini",
}  # fmt: skip


class ToolSpec(BaseModel):
    """A tool as an environment declares it; `input_schema` is JSON Schema of an object, None means no arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str
    description: str
    input_schema: dict[str, Any] | None


def convert_tools(tools: Sequence[ToolSpec], format: str | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
    """The tools in the shape that goes with messages of the same format; None gives them as they are.

    Schemas are written by the library's own normalisation, so no property is lost. Raises FormatError for an unknown
    format, ConfigurationError for a schema that is none.
    """
    if format is None:
        return list(tools)
    name = check_format(format)
    return [_shaped(tool, name) for tool in tools]


def _shaped(tool: ToolSpec, format: str) -> dict[str, Any]:
    schema = schemas.normalise(tool.input_schema or {}, _DIALECTS[format], strict=False, name=tool.name).schema
    head: dict[str, Any] = {"name": tool.name, "description": tool.description}
    match format:
        case "openai" | "openrouter":
            return {"type": "function", "function": {**head, "parameters": schema}}
        case "openai-responses":
            return {"type": "function", **head, "parameters": schema, "strict": False}
        case "anthropic":
            return {**head, "input_schema": schema}
        case _:
            return {**head, "parameters": schema}
