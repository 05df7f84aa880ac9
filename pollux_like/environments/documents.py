"""What a server says, read leniently: the tools document and a tool's output, from old servers and from newer ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from pollux_like.conversation import ToolSpec
from pollux_like.environments.authoring import ToolOutput
from pollux_like.environments.http import SAID, list_of, malformed, object_of, shortened, text_of
from pollux_like.environments.toolbox import MARKER
from pollux_like.errors import ToolRefusedError


class UnknownBlockWarning(UserWarning):
    """A server sent blocks of a type that this version does not know; they were left out."""


@dataclass(frozen=True, slots=True)
class TerminalTool:
    """The tool that takes the final answer; `arg` is its field, None where it takes nothing."""

    name: str
    arg: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools document. `message_block_types` is None where the server does not say: it is older than 0.1.157."""

    tools: tuple[ToolSpec, ...]
    terminal: TerminalTool | None = None
    scores_groups: bool = False
    message_block_types: tuple[str, ...] | None = None
    call_ids: bool = False


def tools_of(value: object) -> Tools:
    """Read a tools document. Raises EnvironmentServerError where it is none."""
    found = object_of(value, "the tools document")
    types = found.get("message_block_types")
    ours = found.get(MARKER)
    return Tools(
        tuple(_spec(entry) for entry in list_of(found.get("tools"), "the list of tools")),
        _terminal(found.get("terminal_tool")),
        found.get("supports_score_group") is True,
        None if types is None else tuple(text_of(kind, "a block type") for kind in list_of(types, "block types")),
        isinstance(ours, Mapping) and cast("Mapping[str, object]", ours).get("call_ids") is True,
    )


def _spec(value: object) -> ToolSpec:
    fields = object_of(value, "a tool")
    try:
        return ToolSpec(
            name=fields["name"], description=fields.get("description") or "", input_schema=fields.get("input_schema")
        )
    except (KeyError, ValidationError):
        raise malformed("a tool has no name, or a schema that is no object") from None


def _terminal(value: object) -> TerminalTool | None:
    if value is None:
        return None
    fields = object_of(value, "terminal_tool")
    arg = fields.get("arg")
    return TerminalTool(
        text_of(fields.get("name"), "the name of the terminal tool"),
        None if arg is None else text_of(arg, "the field of the terminal tool"),
        text_of(fields.get("description") or "", "the description of the terminal tool"),
    )


def output_of(value: Mapping[str, Any]) -> ToolOutput:
    """The output of a result document. Raises ToolRefusedError where the tool was not run."""
    if value.get("ok") is not True:
        reason, said = value.get("reason"), value.get("error")
        raise ToolRefusedError(
            f"the tool was not run: {shortened(said, SAID) if isinstance(said, str) and said else 'no reason given'}",
            hint="Tell the model, or end the episode where it is finished",
            reason=reason if isinstance(reason, str) else None,
        )
    fields = object_of(value.get("output"), "the output")
    known = {name: fields[name] for name in ToolOutput.model_fields if name in fields}
    known["blocks"] = [_plain(block) for block in _readable(list_of(fields.get("blocks"), "blocks of the output"))]
    try:
        return ToolOutput.model_validate(known)
    except ValidationError as error:
        raise malformed(f"the output: {error.errors(include_url=False, include_input=False)[0]['msg']}") from None


def _readable(blocks: Sequence[object]) -> list[dict[str, Any]]:
    found = [object_of(block, "a block of the output") for block in blocks]
    unknown = [block for block in found if block.get("type") not in ("text", "image")]
    if unknown:
        warn([f"a block of the unknown type {str(block.get('type'))[:40]!r} in a tool's output" for block in unknown])
    return [block for block in found if block.get("type") in ("text", "image")]


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in block.items() if name in ("type", "text", "data", "mimeType", "detail")}


def warn(skipped: Sequence[str]) -> None:
    """Name what was left out."""
    warnings.warn(f"Left out: {'; '.join(skipped)}.", UnknownBlockWarning, stacklevel=3)
