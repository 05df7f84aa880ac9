"""What Anthropic Messages refuses in a request's headers, parameters, tools and thinking configuration.

Texts are the API's own where a public source quotes them; `docs/simulator.md` says which are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator import accepts
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.messages_history import check_history
from pollux_like.simulator.messages_thinking import betas, blocks, on_beta
from pollux_like.simulator.models import Claude, claude
from pollux_like.simulator.options import Options
from pollux_like.simulator.schemas import anthropic_strict
from pollux_like.simulator.shapes import as_object, as_objects, is_array, is_object
from pollux_like.simulator.wire import Exchange, Fault, tokens

VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_EXTRA = "Extra inputs are not permitted"


class MessagesRules:
    """All rules of the dialect, in the order in which the API meets them."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options

    def check(self, exchange: Exchange) -> Fault | None:
        found = self._door(exchange)
        if found is not None or not self.options.strict:
            return found
        rules: tuple[Callable[[Exchange, Claude], Fault | None], ...] = (
            _parameters,
            _sampling,
            _tools,
            _tool_choice,
            _thinking,
            lambda exchange, gates: check_history(self.ledger, self.options, exchange, gates),
        )
        gates = claude(exchange.model)
        return next((bad for bad in (rule(exchange, gates) for rule in rules) if bad is not None), None)

    def _door(self, exchange: Exchange) -> Fault | None:
        headers, body = exchange.headers, exchange.body
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not key:
            return Fault(401, "x-api-key header is required")
        if self.options.api_key is not None and key != self.options.api_key:
            return Fault(401)
        version = headers.get("anthropic-version")
        if self.options.strict and version is None:
            return Fault(400, "anthropic-version: header is required")
        if self.options.strict and version not in VERSIONS:
            return Fault(400, f'anthropic-version: "{version}" is not a valid version')
        for name in ("model", "messages", "max_tokens"):
            if body.get(name) is None:
                return Fault(400, f"{name}: Field required")
        if self.options.models is not None and exchange.model not in self.options.models:
            return Fault(404, f"model: {exchange.model}")
        if not is_array(body["messages"]) or not all(is_object(m) for m in body["messages"]):
            return Fault(400, "messages: Input should be a valid list")
        limit = self.options.max_input_tokens
        if limit is not None and (length := tokens(dumps(body))) > limit:
            return Fault(400, f"prompt is too long: {length} tokens > {limit} maximum")
        return None


def _parameters(exchange: Exchange, gates: Claude) -> Fault | None:
    body = exchange.body
    known = accepts.MESSAGES_BETA if on_beta(exchange) else accepts.MESSAGES
    for name in body:
        if name not in known:
            return Fault(400, f"{name}: {_EXTRA}")
    limit = body["max_tokens"]
    if isinstance(limit, bool) or not isinstance(limit, int):
        return Fault(400, "max_tokens: Input should be a valid integer")
    if limit < 0:
        return Fault(400, "max_tokens: Input should be greater than or equal to 0")
    if "stream" in body and not isinstance(body["stream"], bool):
        return Fault(400, "stream: Input should be a valid boolean")
    if any(not block.get("text", "x") for block in blocks(body.get("system") or [])):
        return Fault(400, "system: text content blocks must be non-empty")
    output = as_object(body.get("output_config"))
    for name in output:
        if name not in ("effort", "format", "task_budget"):
            return Fault(400, f"output_config.{name}: {_EXTRA}")
    effort = output.get("effort")
    if effort is not None and effort not in gates.efforts:
        levels = ", ".join(gates.efforts)
        return Fault(400, f"This model does not support effort level '{effort}'. Supported levels: {levels}.")
    return None


def _sampling(exchange: Exchange, gates: Claude) -> Fault | None:
    body = exchange.body
    for name in ("temperature", "top_p", "top_k"):
        if body.get(name) is not None and exchange.headers.get("anthropic-version") == "2026-10-21":
            return Fault(400, f"{name}: {_EXTRA}")
    temperature = body.get("temperature")
    if temperature is None:
        return None
    if isinstance(temperature, bool) or not isinstance(temperature, (int, float)) or not 0 <= temperature <= 1:
        return Fault(400, "temperature: range: 0..1")
    if temperature != 1 and thinks(exchange, gates):
        return Fault(400, "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode")
    return None


def thinks(exchange: Exchange, gates: Claude) -> bool:
    """Whether thinking is on: asked for, or the model's default."""
    thinking = exchange.body.get("thinking")
    return gates.adaptive if thinking is None else thinking.get("type") != "disabled"


def _tools(exchange: Exchange, gates: Claude) -> Fault | None:
    names: set[str] = set()
    tools = as_objects(exchange.body.get("tools"))
    for n, tool in enumerate(tools):
        name = tool.get("name")
        if name is not None and name in names:
            return Fault(400, "tools: Tool names must be unique.")
        names.add(str(name))
        if tool.get("type", "custom") != "custom":
            continue
        path = f"tools.{n}.custom"
        for key in tool:
            if key not in accepts.MESSAGES_TOOL:
                return Fault(400, f"{path}.{key}: {_EXTRA}")
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            return Fault(400, f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        schema = tool.get("input_schema")
        if not is_object(schema):
            return Fault(400, f"{path}.input_schema: Field required")
        if schema.get("type") != "object":
            text = "Field required" if "type" not in schema else "Input should be 'object'"
            return Fault(400, f"{path}.input_schema.type: {text}")
    fmt = as_object(exchange.body.get("output_config")).get("format")
    return anthropic_strict(tools, fmt if is_object(fmt) else None)


def _tool_choice(exchange: Exchange, gates: Claude) -> Fault | None:
    choice = exchange.body.get("tool_choice")
    if choice is None:
        return None
    tools = as_objects(exchange.body.get("tools"))
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        tags = "'any', 'auto', 'none', 'tool'"
        return Fault(
            400, f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
    for name in choice:
        if name not in ("type", "name", "disable_parallel_tool_use"):
            return Fault(400, f"tool_choice.{kind}.{name}: {_EXTRA}")
    if not tools:
        return Fault(400, "tool_choice may only be specified while providing tools.")
    if kind == "tool" and choice.get("name") not in {tool.get("name") for tool in tools}:
        return Fault(400, f"Tool '{choice.get('name')}' not found in provided tools")
    manual = as_object(exchange.body.get("thinking")).get("type") == "enabled"
    if kind in ("any", "tool") and (manual or not gates.force):
        return Fault(400, "Thinking may not be enabled when tool_choice forces tool use.")
    return None


_THINKING: dict[Any, tuple[str, ...]] = {
    "enabled": ("type", "budget_tokens", "display", "block_binding"),
    "adaptive": ("type", "display", "block_binding"),
    "disabled": ("type", "block_binding"),
    "between_tools": ("type", "block_binding"),
}


def _thinking(exchange: Exchange, gates: Claude) -> Fault | None:
    thinking = exchange.body.get("thinking")
    if thinking is None:
        return None
    kind = thinking.get("type")
    if kind not in _THINKING:
        tags = ", ".join(f"'{name}'" for name in sorted(_THINKING))
        return Fault(
            400, f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
    for name in thinking:
        if name not in _THINKING[kind]:
            return Fault(400, f"thinking.{kind}.{name}: {_EXTRA}")
    if (kind == "enabled" and not gates.budget) or (kind == "disabled" and not gates.disable):
        return Fault(
            400,
            f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.',
        )
    if kind == "adaptive" and not gates.adapts:
        return Fault(400, "adaptive thinking is not supported on this model")
    if kind != "enabled":
        return None
    budget = thinking.get("budget_tokens")
    if isinstance(budget, bool) or not isinstance(budget, int):
        return Fault(400, "thinking.enabled.budget_tokens: Field required")
    if budget < 1024:
        return Fault(400, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    interleaved = any(name.startswith("interleaved-thinking") for name in betas(exchange))
    if budget >= exchange.body["max_tokens"] and not interleaved:
        return Fault(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None
