"""Reads an OpenAI-chat-shaped request body. Pure; what the engine cannot do is refused by name.

The shape is that of OpenAI's `POST /v1/chat/completions`, without media, `n`, log-probabilities and penalties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pollux_like.canonical import JSONPolicyError, check_value
from pollux_like.errors import ConfigurationError
from pollux_like_local.prompt import DEFAULT_SYSTEM, Turn
from pollux_like_local.tools import Tool, call_parts, declarations, result_text

DEFAULT_MAX_TOKENS = 512
"""Most tokens of a reply where the request gives no `max_tokens`; the finish reason `length` tells when it was met."""

DEFAULT_TEMPERATURE = 0.0
"""Greedy: the same request gives the same reply."""

_KEYS = frozenset(
    [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "max_tokens",
        "temperature",
        "top_p",
        "seed",
        "stop",
        "stream",
        "stream_options",
    ]
)
_MESSAGE_KEYS = {
    "system": {"role", "content"},
    "developer": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id"},
}
_MAX_SEED = 2**32 - 2  # llama.cpp reads 2**32 - 1 as "choose one at random"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A checked request. `turns` begin with a system turn and end with a user turn, in alternation.

    `choice` is auto, none, required or, with a leading `=`, one tool's name. `schema` is the JSON schema of the answer.
    `last_message` is the last user text; `after_result` says that the request ends in tool results.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...]
    choice: str
    schema: dict[str, Any] | None
    schema_strict: bool
    max_tokens: int
    sampling: dict[str, Any]
    stop: tuple[str, ...]
    call_ids: frozenset[str]
    last_message: str
    after_result: bool


def read_request(body: dict[str, Any], *, model: str) -> ChatRequest:
    """Check a request body. Raises ConfigurationError naming the field."""
    try:
        check_value(body, path="body")
    except JSONPolicyError as error:
        raise ConfigurationError(f"The request is not JSON: {error}", hint="Pass plain JSON values") from None
    _known(body, _KEYS, "")
    if body.get("model") not in (None, model):
        raise _bad("model", f"is not {model!r}, the model that is open", "Leave it out, or open an engine for it")
    if body.get("stream_options") not in (None, {"include_usage": True}, {"include_usage": False}):
        raise _bad("stream_options", "asks for more than usage", "The usage chunk always comes; leave it out")
    for key in ("stream", "parallel_tool_calls"):
        if not isinstance(body.get(key), bool | None):
            raise _bad(key, "is not a boolean", "Pass true or false")
    tools = tuple(_tool(entry, f"tools[{i}]") for i, entry in enumerate(_list(body.get("tools"), "tools")))
    names = [tool.name for tool in tools]
    if len(set(names)) != len(names):
        raise _bad("tools", "declares one name twice", "Give each tool its own name")
    messages = _list(body.get("messages"), "messages")
    turns, call_ids, last_message = _turns(messages, tools)
    schema, strict = _response_format(body.get("response_format"))
    return ChatRequest(
        turns=turns,
        tools=tools,
        choice=_choice(body.get("tool_choice"), names),
        schema=schema,
        schema_strict=strict,
        max_tokens=int(_number(body, "max_tokens", DEFAULT_MAX_TOKENS, 1, 2**31 - 1, whole=True)),
        sampling=_sampling(body),
        stop=_stop(body.get("stop")),
        call_ids=call_ids,
        last_message=last_message,
        after_result=messages[-1]["role"] == "tool",
    )


def _turns(messages: list[Any], tools: Sequence[Tool]) -> tuple[tuple[Turn, ...], frozenset[str], str]:
    system: list[str] = []
    turns: list[Turn] = []
    names: dict[str, str] = {}
    last_message = ""
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        message = _object(message)
        role = message.get("role")
        if not isinstance(role, str) or role not in _MESSAGE_KEYS:
            raise _bad(f"{where}.role", "is none of system, user, assistant, tool", "Pass one of these")
        _known(message, _MESSAGE_KEYS[role], f"{where}.")
        text = _text(message.get("content"), f"{where}.content")
        if role in ("system", "developer"):
            if turns:
                raise _bad(where, "is a system message after the conversation began", "Put it first")
            system.append(text)
        elif role == "assistant":
            _append(turns, "assistant", _assistant_parts(message, text, where, names), "\n")
        elif role == "tool":
            call = message.get("tool_call_id")
            if call not in names:
                raise _bad(f"{where}.tool_call_id", "answers no earlier call", "Send the call that it answers first")
            _append(turns, "user", (result_text(names[call], text),), "\n")
        else:
            last_message = text
            _append(turns, "user", (text,), "\n\n")
    if not turns or turns[-1].role != "user":
        raise _bad("messages", "does not end in a user message or a tool result", "End it with one of these")
    if turns[0].role != "user":
        raise _bad("messages", "begins with an assistant message", "Begin the conversation with a user message")
    first = Turn("system", ("\n\n".join(filter(None, system)) or DEFAULT_SYSTEM, declarations(tools)))
    return (first, *turns), frozenset(names), last_message


def _append(turns: list[Turn], role: str, parts: tuple[str, ...], between: str) -> None:
    """Add to the last turn where it has the same role: many templates demand alternation."""
    if turns and turns[-1].role == role:
        turns[-1] = Turn(role, (*turns[-1].parts, between, *parts))
    else:
        turns.append(Turn(role, parts))


def _assistant_parts(message: dict[str, Any], text: str, where: str, names: dict[str, str]) -> tuple[str, ...]:
    if message.get("refusal") is not None:
        text += _text(message["refusal"], f"{where}.refusal")
    parts: list[str] = [text] if text else []
    for j, call in enumerate(_list(message.get("tool_calls"), f"{where}.tool_calls")):
        at = f"{where}.tool_calls[{j}]"
        call = _object(call)
        function = _object(call.get("function"))
        if call.get("type", "function") != "function" or not function or not isinstance(call.get("id"), str):
            raise _bad(at, "is not a function call with an id", "Send it as it was received")
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise _bad(f"{at}.function", "lacks a name or the text of arguments", "Send it as it was received")
        if call["id"] in names:
            raise _bad(f"{at}.id", "was already used by an earlier call", "Give every call its own id")
        names[call["id"]] = name
        parts += [*(["\n"] if parts else []), *call_parts(name, arguments)]
    return tuple(parts)


def _text(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for i, part in enumerate(_list(content, where)):
        text = _object(part).get("text")
        if _object(part).get("type") != "text" or not isinstance(text, str):
            raise _bad(f"{where}[{i}]", "is not a text part", "The embedded model reads text only")
        texts.append(text)
    return "".join(texts)


def _tool(entry: Any, where: str) -> Tool:
    function = _object(_object(entry).get("function"))
    if _object(entry).get("type") != "function" or not function:
        raise _bad(where, "is not a function tool", 'Pass {"type": "function", "function": {...}}')
    _known(function, {"name", "description", "parameters", "strict"}, f"{where}.function.")
    name, parameters = function.get("name"), _object(function.get("parameters"))
    if not isinstance(name, str) or not name or not all(c.isascii() and (c.isalnum() or c in "_-.") for c in name):
        raise _bad(f"{where}.function.name", "is not made of letters, digits, _, - and .", "Rename the tool")
    if not isinstance(function.get("parameters"), dict | None) or parameters.get("type", "object") != "object":
        raise _bad(f"{where}.function.parameters", "is not a schema of type object", "Wrap it in an object")
    schema = {"type": "object", **parameters}
    if not schema.keys() & {"$ref", "anyOf", "oneOf", "allOf"}:
        schema.setdefault("properties", {})
    return Tool(name, function.get("description") or "", schema, strict=function.get("strict") is True)


def _choice(choice: Any, names: list[str]) -> str:
    if choice is None:
        return "auto" if names else "none"
    if choice in ("auto", "none"):
        return choice if names else "none"
    name = _object(_object(choice).get("function")).get("name")
    if name in names and _object(choice).get("type") == "function":
        return f"={name}"
    if choice == "required" and names:
        return "required"
    raise _bad(
        "tool_choice", "asks for a tool that is not declared", "Declare the tool, or pass auto, none or required"
    )


def _response_format(form: Any) -> tuple[dict[str, Any] | None, bool]:
    kind = _object(form).get("type")
    if form is None or kind == "text":
        return None, False
    if kind == "json_object":
        return {"type": "object"}, True
    wrapped = _object(_object(form).get("json_schema"))
    if kind != "json_schema" or not isinstance(wrapped.get("schema"), dict):
        raise _bad("response_format", "is none of text, json_object, json_schema", "Pass one of these shapes")
    return wrapped["schema"], wrapped.get("strict") is True


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"temperature": _number(body, "temperature", DEFAULT_TEMPERATURE, 0, 2)}
    if body.get("top_p") is not None:
        found["top_p"] = _number(body, "top_p", 1.0, 0, 1)
    if body.get("seed") is not None:
        found["seed"] = _number(body, "seed", 0, 0, _MAX_SEED, whole=True)
    return found


def _stop(stop: Any) -> tuple[str, ...]:
    found = [stop] if isinstance(stop, str) else _list(stop, "stop")
    if len(found) > 4 or not all(isinstance(text, str) and text for text in found):
        raise _bad("stop", "is not one to four non-empty strings", "Pass a string or a list of strings")
    return tuple(found)


def _number(
    body: dict[str, Any], key: str, default: float, low: float, high: float, *, whole: bool = False
) -> int | float:
    value = body.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise _bad(key, f"is not {kind} from {low} to {high}", "Pass one in this range, or leave it out")
    number: int | float = value
    return number


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise _bad(where, "is not a list", "Pass a list")
    return list(cast("list[Any]", value))


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _known(value: dict[str, Any], keys: set[str] | frozenset[str], prefix: str) -> None:
    for key in value:
        if key not in keys:
            raise _bad(f"{prefix}{key}", "is not known to the embedded model", "Leave it out")


def _bad(where: str, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{where} {what}", hint=hint)
