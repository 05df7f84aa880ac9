"""Rules of chat completions that every server has: roles, contents, calls and results (C1, C2), tools."""

from __future__ import annotations

from typing import Any

from pollux_like.simulator.responses_items import bad
from pollux_like.simulator.responses_rules import check_function, check_name
from pollux_like.simulator.shapes import as_array, as_object, as_objects, is_array, is_object
from pollux_like.simulator.wire import Fault

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def forced(body: dict[str, Any]) -> str | None:
    """How a request forces a call: "required", "specified" for one tool, or None."""
    choice = body.get("tool_choice")
    return "specified" if is_object(choice) else "required" if choice == "required" else None


def check_tools(body: dict[str, Any]) -> Fault | None:
    """Names, schemas, and a choice among the tools that are there."""
    seen: set[str] = set()
    tools = as_objects(body.get("tools"))
    for n, tool in enumerate(tools):
        if tool.get("type") != "function":
            continue
        function, path = as_object(tool.get("function")), f"tools[{n}].function"
        fault = check_name(function.get("name"), f"{path}.name", seen) or check_function(function, f"{path}.parameters")
        if fault is not None:
            return fault
    choice = body.get("tool_choice")
    if choice is not None and not tools:
        return bad("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
    if is_object(choice) and choice.get("type") == "function":
        name = as_object(choice.get("function")).get("name")
        if name not in seen:
            return bad(f"Invalid value for 'tool_choice': '{name}' is not one of the tools.", "tool_choice")
    return None


def check_messages(messages: list[Any]) -> Fault | None:
    """Roles, contents and pairing (C1, C2)."""
    pending: list[str] = []
    asked: set[str] = set()
    for n, message in enumerate(messages):
        role = message.get("role") if is_object(message) else None
        param = f"messages.[{n}].role"
        if role not in _ROLES:
            names = ", ".join(f"'{name}'" for name in _ROLES)
            return bad(
                f"Invalid value: '{role}'. Supported values are: {names}.", f"messages[{n}].role", "invalid_value"
            )
        if role == "tool":
            made = message.get("tool_call_id")
            if made not in asked:
                text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                return bad(text, param)
            pending = [other for other in pending if other != made]
        elif pending:
            return _unanswered(pending, param)
        else:
            asked = set()
        if is_array(message.get("content")) and not all(is_object(part) for part in message["content"]):
            text = "Invalid type for 'content': expected an array of objects."
            return bad(text, f"messages.[{n}].content", "invalid_type")
        if role == "assistant":
            fault = _assistant(n, message)
            if fault is not None:
                return fault
            pending = [call["id"] for call in as_array(message.get("tool_calls"))]
            asked = set(pending)
        elif message.get("content") is None:
            text = "Invalid value for 'content': expected a string, got null."
            return bad(text, f"messages.[{n}].content")
    return _unanswered(pending, f"messages.[{len(messages)}].role") if pending else None


def _unanswered(pending: list[str], param: str) -> Fault:
    return bad(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(pending)}",
        param,
    )


def _assistant(n: int, message: dict[str, Any]) -> Fault | None:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        text = (
            f"Invalid 'messages[{n}].tool_calls': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead."
        )
        return bad(text, f"messages[{n}].tool_calls", "empty_array")
    for m, call in enumerate(calls or []):
        path = f"messages[{n}].tool_calls[{m}]"
        if not isinstance(call.get("id"), str):
            return bad(f"Missing required parameter: '{path}.id'.", f"{path}.id", "missing_required_parameter")
        if not isinstance(as_object(call.get("function")).get("arguments"), str):
            text = f"Invalid type for '{path}.function.arguments': expected a string, but got an object instead."
            return bad(text, f"{path}.function.arguments", "invalid_type")
    if not calls and message.get("content") is None and message.get("refusal") is None:
        return bad("Invalid value for 'content': expected a string, got null.", f"messages.[{n}].content")
    return None
