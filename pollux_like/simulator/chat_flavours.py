"""Flavours: servers that speak chat completions, as a table of where they differ from OpenAI.

Refusals of reasoning and forced calls are in the servers' own words: recorded, or quoted in public issues (deepseek:
recorded, Aider-desk 529, vercel/ai 14739; kimi: bytedance/deer-flow 3043, UKGovernmentBEIS/inspect_ai 5152; qwen:
cloudwego/eino 994), and so is DeepSeek's 401. The other texts are likely ones without a source: unknown keys and
models, 402, and the overflow of Kimi and Qwen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pollux_like.simulator import accepts
from pollux_like.simulator.chat_rules import forced
from pollux_like.simulator.models import gpt
from pollux_like.simulator.responses import openai_error
from pollux_like.simulator.responses_items import bad
from pollux_like.simulator.responses_rules import check_sampling
from pollux_like.simulator.schemas import openai_strict
from pollux_like.simulator.shapes import as_object, as_objects
from pollux_like.simulator.wire import Exchange, Fault

Rule: TypeAlias = Callable[[Exchange], Fault | None]
Words: TypeAlias = Mapping[int, tuple[str, str | None, str]]
"""Type, code and message of an error, by status; `{tail}` is the end of the key, `{model}` the model."""


@dataclass(frozen=True, slots=True)
class Flavour:
    """One server.

    `rule`: what it alone refuses. `words`: its errors where they are not OpenAI's; `members`: what an error object
    has. `unknown_model`: the status of that error. `overflow`: of a window that is too small. `usual`: names in its
    list of models. `plain`: messages hold nothing but text, reasoning and calls, and the calls are numbered.
    """

    name: str
    base: str
    rule: Rule
    usual: tuple[str, ...]
    words: Words = field(default_factory=dict[int, tuple[str, str | None, str]])
    members: tuple[str, ...] = ("message", "type", "param", "code")
    unknown_model: int = 404
    overflow: str = "This model's maximum context length is {most} tokens. However, you requested {count} tokens"
    plain: bool = True

    def error(self, fault: Fault, *, tail: str = "", model: str = "") -> dict[str, Any]:
        """The error object of a fault."""
        found = openai_error(fault)
        if not self.words:
            return found
        kind, code, text = self.words.get(fault.status, (found["type"], found["code"], found["message"]))
        said = fault.message or text.format(tail=tail, model=model)
        given = {"message": said, "type": fault.type or kind, "param": None, "code": fault.code or code}
        return {name: given[name] for name in self.members}


def _openai(exchange: Exchange) -> Fault | None:
    body, gates = exchange.body, gpt(exchange.model)
    for name in body:
        if name not in accepts.CHAT:
            return bad(f"Unrecognized request argument supplied: {name}")
    if gates.reasons and body.get("max_tokens") is not None:
        return bad(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    if body.get("tools") and not gates.chat_tools:
        return bad(
            f"Function tools with reasoning_effort are not supported for {exchange.model} in /v1/chat/completions. "
            "Please use /v1/responses instead.",
            "reasoning_effort",
        )
    fmt = as_object(body.get("response_format"))
    schema = as_object(fmt.get("json_schema"))
    if fmt.get("type") == "json_schema" and schema.get("strict") is True:
        wrong = openai_strict(schema.get("schema"))
        if wrong is not None:
            return bad(f"Invalid schema for response_format '{schema.get('name')}': {wrong}", "response_format")
    return check_sampling(body, gates, body.get("reasoning_effort"))


def _bare_call(body: dict[str, Any]) -> int | None:
    """The first message with tool calls that lacks `reasoning_content`; an empty one is there."""
    for n, message in enumerate(as_objects(body.get("messages"))):
        if (
            message.get("role") == "assistant"
            and message.get("tool_calls")
            and message.get("reasoning_content") is None
        ):
            return n
    return None


def _deepseek(exchange: Exchange) -> Fault | None:
    """Thinks unless told not to. Forced calls, and calls without their reasoning (D1, D2)."""
    body = exchange.body
    usual = "disabled" if exchange.model == "deepseek-chat" else "enabled"
    if as_object(body.get("thinking")).get("type", usual) != "enabled":
        return None
    if forced(body):
        return Fault(400, "Thinking mode does not support this tool_choice")
    n = _bare_call(body)
    if n is None:
        return None
    if re.search(r"v4|flash|pro", exchange.model):
        return Fault(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
    return Fault(
        400,
        f"Missing `reasoning_content` field in the assistant message at message index {n}. For more information, "
        "please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    )


def _kimi(exchange: Exchange) -> Fault | None:
    """The thinking families think unless told not to; from K3 on a call can be required, but not of one tool."""
    body, model = exchange.body, exchange.model
    thinks = re.search(r"thinking|k2\.[5-9]|k[3-9]|for-coding", model)
    if not thinks or as_object(body.get("thinking")).get("type") == "disabled":
        return None
    choice = forced(body)
    if choice == "specified" or (choice and not re.search(r"k[3-9]", model)):
        return Fault(400, f"tool_choice '{choice}' is incompatible with thinking enabled")
    n = _bare_call(body)
    if n is None:
        return None
    return Fault(
        400, f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {n}"
    )


def _qwen(exchange: Exchange) -> Fault | None:
    """Takes reasoning back and demands none; refuses forced calls while it thinks."""
    usual = bool(re.search(r"qwq|thinking|qwen3\.[5-9]", exchange.model))
    if not exchange.body.get("enable_thinking", usual) or not forced(exchange.body):
        return None
    return Fault(
        400,
        "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required "
        "or object in thinking mode",
    )


OPENAI = Flavour(
    "chat", "/v1", _openai, ("gpt-5.5", "gpt-6.2-sol", "gpt-4o"), plain=False,
    overflow="Your input exceeds the context window of this model. Please adjust your input and try again.",
)  # fmt: skip
_INVALID = "invalid_request_error"
FLAVOURS = (
    OPENAI,
    Flavour(
        "deepseek", "/deepseek", _deepseek, ("deepseek-v4-flash", "deepseek-v4-pro", "deepseek-reasoner"),
        {
            400: (_INVALID, _INVALID, "Invalid request."),
            401: ("authentication_error", _INVALID, "Authentication Fails, Your api key: ****{tail} is invalid"),
            402: ("unknown_error", _INVALID, "Insufficient Balance"),
            404: (_INVALID, _INVALID, "Model Not Exist"),
        },
        unknown_model=400,
    ),
    Flavour(
        "kimi", "/kimi/v1", _kimi, ("kimi-k3", "kimi-k2.6", "moonshot-v1-128k"),
        {
            400: (_INVALID, None, "Invalid request."),
            401: ("invalid_authentication_error", None, "Invalid Authentication"),
            404: ("resource_not_found_error", None, "Not found the model {model} or Permission denied"),
        },
        ("message", "type"),
        overflow="Invalid request: Your request exceeded model token limit: {most} (requested: {count})",
    ),
    Flavour(
        "qwen", "/qwen/v1", _qwen, ("qwen3.8-max", "qwen3.6-plus", "qwen-plus"),
        {
            400: (_INVALID, "invalid_parameter_error", "Invalid request."),
            401: (_INVALID, "invalid_api_key", "Incorrect API key provided."),
            404: (_INVALID, "model_not_found",
                  "The model `{model}` does not exist or you do not have access to it."),
        },
        overflow="<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, {most}]",
    ),
)  # fmt: skip
