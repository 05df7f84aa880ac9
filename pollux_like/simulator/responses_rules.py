"""What OpenAI Responses refuses in a request's headers, parameters and tools.

Texts are the API's own where a public source quotes them; `docs/simulator.md` says which are ours.
"""

from __future__ import annotations

import re
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator import accepts
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.models import Gpt, gpt
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses_items import as_items, bad, check_pairs, check_shape, check_state, drop_unbound
from pollux_like.simulator.schemas import openai_strict
from pollux_like.simulator.shapes import as_object, as_objects, is_array, is_object
from pollux_like.simulator.wire import Exchange, Fault, tokens

_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def check_key(exchange: Exchange, options: Options) -> Fault | None:
    """Authorization, for both of OpenAI's APIs."""
    key = exchange.headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not key:
        return Fault(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
            "auth (i.e. Authorization: Bearer YOUR_KEY).",
        )
    return Fault(401) if options.api_key is not None and key != options.api_key else None


def check_window(exchange: Exchange, options: Options, param: str) -> Fault | None:
    """The context window, where one is set."""
    if options.max_input_tokens is None or tokens(dumps(exchange.body)) <= options.max_input_tokens:
        return None
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return bad(text, param, "context_length_exceeded")


class ResponsesRules:
    """All rules of the dialect, in the order in which the API meets them."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options

    def check(self, exchange: Exchange) -> Fault | None:
        body, options = exchange.body, self.options
        fault = check_key(exchange, options)
        if fault is not None:
            return fault
        if not isinstance(body.get("model"), str):
            return bad("Missing required parameter: 'model'.", "model", "missing_required_parameter")
        if options.models is not None and exchange.model not in options.models:
            return bad(f"The requested model '{exchange.model}' does not exist.", "model", "model_not_found")
        given = as_items(body.get("input"))
        before: list[dict[str, Any]] = []
        previous = body.get("previous_response_id")
        if previous is not None:
            stored = self.ledger.responses.get(previous)
            if stored is None:
                text = f"Previous response with id '{previous}' not found."
                return bad(text, "previous_response_id", "previous_response_not_found")
            before = [*stored.context, *stored.body["output"]]
        exchange.context = [*before, *given]
        fault = check_window(exchange, options, "input")
        if fault is not None or not options.strict:
            return fault
        gates = gpt(exchange.model)
        fault = _parameters(exchange, gates) or check_tools(body) or _choice(body)
        for n, item in enumerate(given):
            fault = fault or check_shape(n, item, last=n == len(given) - 1)
        fault = fault or check_state(self.ledger, exchange, given) or check_pairs(before, self._resolved(given))
        if fault is None:
            drop_unbound(self.ledger, exchange)
        return fault

    def _resolved(self, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """References as the items that they name."""
        known = self.ledger.items
        return [known[i["id"]].item if i.get("type") == "item_reference" and i["id"] in known else i for i in given]


def _parameters(exchange: Exchange, gates: Gpt) -> Fault | None:
    body = exchange.body
    for name in body:
        if name not in accepts.RESPONSES:
            return bad(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    given = body.get("input")
    if not isinstance(given, (str, list, type(None))):
        return bad("Invalid type for 'input': expected a string or an array.", "input", "invalid_type")
    if is_array(given) and not all(is_object(item) for item in given):
        return bad("Invalid type for 'input[0]': expected an object.", "input", "invalid_type")
    if body.get("previous_response_id") is not None and body.get("conversation") is not None:
        return bad(
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'.",
            "previous_response_id",
            "mutually_exclusive_parameters",
        )
    if not given and not any(body.get(name) for name in ("previous_response_id", "prompt", "conversation")):
        return bad("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    limit = body.get("max_output_tokens")
    if limit is not None and limit < 16:
        return bad(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got "
            f"{limit} instead."
        )
    effort = as_object(body.get("reasoning")).get("effort")
    if effort in gates.efforts_refused:
        return bad(
            f"Unsupported value: '{effort}' is not supported with this model.", "reasoning.effort", "unsupported_value"
        )
    if body.get("reasoning") and not gates.reasons:
        text = "Unsupported parameter: 'reasoning.effort' is not supported with this model."
        return bad(text, "reasoning.effort", "unsupported_parameter")
    return check_sampling(body, gates, effort)


def check_sampling(body: dict[str, Any], gates: Gpt, effort: Any) -> Fault | None:
    """Temperature and top_p, for both of OpenAI's APIs."""
    for name, most in (("temperature", 2), ("top_p", 1)):
        value = body.get(name)
        if value is None:
            continue
        if value < 0:
            return bad(
                f"Invalid '{name}': decimal below minimum value. Expected a value >= 0, but got {value} instead.",
                name,
                "decimal_below_min_value",
            )
        if value > most:
            return bad(
                f"Invalid '{name}': decimal above maximum value. Expected a value <= {most}, but got {value} instead.",
                name,
                "decimal_above_max_value",
            )
        if gates.reasons and effort != "none":
            return bad(f"Unsupported parameter: '{name}' is not supported with this model.")
    return None


def check_tools(body: dict[str, Any]) -> Fault | None:
    """Function tools: keys, names, strict schemas (O13); and the schema of a strict text format."""
    names: set[str] = set()
    for n, tool in enumerate(as_objects(body.get("tools"))):
        path, name = f"tools[{n}]", tool.get("name")
        if tool.get("type") not in ("function", "custom"):
            continue
        if tool["type"] == "function":
            for key in tool:
                if key not in accepts.RESPONSES_FUNCTION:
                    return bad(f"Unknown parameter: '{path}.{key}'.", f"{path}.{key}", "unknown_parameter")
        fault = check_name(name, f"{path}.name", names)
        if fault is not None:
            return fault
        if tool["type"] == "function":
            fault = check_function(tool, f"{path}.parameters")
            if fault is not None:
                return fault
    fmt = as_object(as_object(body.get("text")).get("format"))
    if fmt.get("type") == "json_schema" and fmt.get("strict") is True:
        wrong = openai_strict(fmt.get("schema"))
        if wrong is not None:
            return bad(f"Invalid schema for response_format '{fmt.get('name')}': {wrong}")
    return None


def check_name(name: Any, param: str, seen: set[str]) -> Fault | None:
    """A tool's name: present, in the alphabet, at most 64 characters, not used before."""
    if not isinstance(name, str):
        return bad(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
    if not _NAME.fullmatch(name):
        return bad(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            param,
            "invalid_value",
        )
    if len(name) > 64:
        return bad(
            f"Invalid '{param}': string too long. Expected a string with maximum length 64, but got a string with "
            f"length {len(name)} instead.",
            param,
            "string_above_max_length",
        )
    if name in seen:
        return bad(f"Invalid '{param}': the tool name '{name}' is used twice.", param, "invalid_value")
    seen.add(name)
    return None


def check_function(tool: dict[str, Any], param: str) -> Fault | None:
    """A function's parameters: an object schema, and a strict one where the tool is strict."""
    schema, name = tool.get("parameters"), tool.get("name")
    wrong: str | None = None
    if schema is not None and (not is_object(schema) or schema.get("type") != "object"):
        kind = schema.get("type") if is_object(schema) else None
        wrong = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    elif tool.get("strict") is True:
        wrong = openai_strict(schema)
    if wrong is None:
        return None
    return bad(f"Invalid schema for function '{name}': {wrong}", param, "invalid_function_parameters")


def _choice(body: dict[str, Any]) -> Fault | None:
    choice, tools = body.get("tool_choice"), as_objects(body.get("tools"))
    kind = choice.get("type") if is_object(choice) else choice
    if kind == "required" and not tools:
        return bad("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")
    if not is_object(choice) or kind not in ("function", "custom"):
        return None
    if all((tool.get("type"), tool.get("name")) != (kind, choice.get("name")) for tool in tools):
        return bad(f"Tool choice '{kind}' not found in 'tools' parameter.", "tool_choice")
    return None
