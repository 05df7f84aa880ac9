"""The portable history: Message, ToolCall, ToolResult.

Portable means text and tool calls only. System text belongs to `Environment.instructions`, media to `Source`, and what
a provider signed or sealed stays in the continuation. The reprs show shapes, never the transcript.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pollux_like import canonical, checks
from pollux_like.errors import ConfigurationError, ToolCallParseError
from pollux_like.shown import Shown

Role = Literal["user", "assistant", "tool"]

MAX_TOOL_CALLS = 512
"""Most tool calls that one assistant message may hold."""
MAX_ID_LENGTH = 1024
"""Longest tool-call id, in characters. What is longer than a provider allows is mapped when it is sent."""


def _identifier(value: object, name: str) -> str:
    result = checks.filled(value, name)
    if len(result) > MAX_ID_LENGTH:
        raise ConfigurationError(f"{name} has {len(result)} characters", hint=f"Use at most {MAX_ID_LENGTH}")
    return result


def _parse_arguments(text: str) -> tuple[dict[str, Any] | None, str | None]:
    if not text or text.isspace():
        return {}, None
    try:
        value = canonical.loads(text, unique_keys=True)
    except canonical.JSONPolicyError as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, f"the text is JSON of type {checks.kind(value)}, not an object"
    return cast("dict[str, Any]", value), None


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ToolCall(Shown):
    """One request of the model to run a tool.

    `arguments_text` is what the model wrote, to the letter. `arguments` is the object it stands for, a fresh dict at
    every access, or None with the reason in `arguments_error`: cut, invalid, over-deep or non-object JSON, NaN, and
    keys named twice are surfaced and never executed. The empty text stands for `{}`.
    """

    id: str
    name: str
    arguments_text: str = field(repr=False)
    arguments_error: str | None
    _arguments: dict[str, Any] | None = field(repr=False, hash=False)

    def __init__(
        self, id: str, name: str, arguments_text: str | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        _identifier(id, "ToolCall.id")
        _identifier(name, "ToolCall.name")
        error: str | None = None
        parsed: dict[str, Any] | None
        if arguments is None:
            arguments_text = "" if arguments_text is None else checks.text(arguments_text, "ToolCall.arguments_text")
            parsed, error = _parse_arguments(arguments_text)
        else:
            parsed = checks.json_object(arguments, "ToolCall.arguments")
            if arguments_text is None:
                arguments_text = canonical.dumps(parsed)
            elif _parse_arguments(checks.text(arguments_text, "ToolCall.arguments_text"))[0] != parsed:
                raise ConfigurationError(
                    "ToolCall.arguments and ToolCall.arguments_text disagree", hint="Give only one of the two"
                )
        for name_, value in (
            ("id", id), ("name", name), ("arguments_text", arguments_text), ("arguments_error", error),
            ("_arguments", parsed),
        ):  # fmt: skip
            object.__setattr__(self, name_, value)

    @classmethod
    def from_text(cls, *, id: str, name: str, arguments_text: str) -> ToolCall:
        """A call from the model's own JSON text. Bad JSON is no error here: it is kept and surfaced."""
        return cls(id, name, arguments_text)

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments object, copied; None where the text is not one (see `arguments_error`)."""
        return None if self._arguments is None else checks.copied_object(self._arguments)

    def arguments_dict(self) -> dict[str, Any]:
        """The arguments object, copied. Raises ToolCallParseError where the text is not a JSON object."""
        if self._arguments is None:
            raise ToolCallParseError(
                f"the arguments of tool call {self.id} to {self.name} are unusable: {self.arguments_error}",
                hint="Answer it with ToolResult(call_id, ..., is_error=True), and the model can correct itself",
                tool_name=self.name,
                tool_call_id=self.id,
                arguments_text=self.arguments_text,
            )
        return checks.copied_object(self._arguments)

    def with_arguments(self, arguments: dict[str, Any]) -> ToolCall:
        """The same call with its arguments read otherwise: without nulls that only strict mode asked for."""
        if arguments == self._arguments:
            return self
        result = ToolCall(self.id, self.name, self.arguments_text)
        object.__setattr__(result, "_arguments", arguments)
        return result

    def to_openai(self) -> dict[str, Any]:
        """The chat-completions shape of a tool call."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments_text}}

    @classmethod
    def from_openai(cls, data: Mapping[str, Any]) -> ToolCall:
        """From the chat-completions shape. Raises ConfigurationError for other tool types and missing fields."""
        return _call_from_openai(data, "tool call")

    def to_jsonable(self) -> dict[str, Any]:
        """`{id, name, arguments_text}`, and `arguments` where they differ from what the text says."""
        result: dict[str, Any] = {"id": self.id, "name": self.name, "arguments_text": self.arguments_text}
        if self._arguments is not None and _parse_arguments(self.arguments_text)[0] != self._arguments:
            result["arguments"] = self.arguments
        return result

    @classmethod
    def from_jsonable(cls, data: object) -> ToolCall:
        """Back from `to_jsonable`. Raises ConfigurationError naming the field."""
        fields = _object(data, "ToolCall")
        _only(fields, _CALL, "ToolCall")
        call = cls(fields.get("id"), fields.get("name"), fields.get("arguments_text"))  # type: ignore[arg-type]  # checked there
        if "arguments" in fields:
            return call.with_arguments(checks.json_object(fields["arguments"], "ToolCall.arguments"))
        return call


@dataclass(frozen=True, slots=True, repr=False)
class ToolResult(Shown):
    """What a tool answered: `content` is text, `is_error` says that the tool failed (it reaches every provider)."""

    call_id: str
    content: str = field(repr=False)
    is_error: bool = False

    def __post_init__(self) -> None:
        _identifier(self.call_id, "ToolResult.call_id")
        checks.text(self.content, "ToolResult.content")
        checks.flag(self.is_error, "ToolResult.is_error")

    @classmethod
    def from_value(cls, *, call_id: str, value: Any, is_error: bool = False) -> ToolResult:
        """A str as it is; every other JSON value as compact JSON text, keys in their order.

        Raises ConfigurationError, naming the path, for NaN, infinities, bytes, sets, cycles and over-deep values.
        """
        if isinstance(value, str):
            return cls(call_id, value, is_error)
        try:
            canonical.check_value(value, path="value")
        except canonical.JSONPolicyError as error:
            raise ConfigurationError(
                f"the result of tool call {call_id} has no JSON form: {error}",
                hint="Convert it to JSON values or a str",
            ) from None
        return cls(call_id, canonical.dumps(value), is_error)

    def to_message(self) -> Message:
        """The same result as a portable message of role tool."""
        return Message(role="tool", content=self.content, tool_call_id=self.call_id, is_error=self.is_error)


@dataclass(frozen=True, slots=True, repr=False)
class Message(Shown):
    """One portable message.

    * user: text that is not blank.
    * assistant: text, tool calls, or both; call ids differ within the message.
    * tool: the result of one call, named by `tool_call_id`; `content` may be empty, `is_error` marks a failure.
    """

    role: Role
    content: str = field(default="", repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False

    def __post_init__(self) -> None:
        if cast("object", self.role) in ("system", "developer"):
            raise ConfigurationError(
                f"Message.role is {self.role!r}, which is no part of portable history",
                hint="Put the text into Environment.instructions",
            )
        checks.one_of(self.role, "Message.role", ("user", "assistant", "tool"))
        checks.text(self.content, "Message.content")
        object.__setattr__(self, "tool_calls", checks.sequence(self.tool_calls, "Message.tool_calls", ToolCall))
        checks.flag(self.is_error, "Message.is_error")
        if self.role != "assistant" and self.tool_calls:
            raise ConfigurationError(
                f"a {self.role} message carries tool_calls", hint="Only an assistant message can call tools"
            )
        if self.role != "tool" and (self.tool_call_id is not None or self.is_error):
            raise ConfigurationError(
                f"a {self.role} message carries tool_call_id or is_error", hint="Only a tool message can answer a call"
            )
        match self.role:
            case "user":
                checks.filled(self.content, "content of a user Message")
            case "assistant":
                self._check_calls()
            case "tool":
                _identifier(self.tool_call_id, "Message.tool_call_id")

    def _check_calls(self) -> None:
        if not self.tool_calls:
            checks.filled(self.content, "content of an assistant Message without tool_calls")
        if len(self.tool_calls) > MAX_TOOL_CALLS:
            raise ConfigurationError(
                f"an assistant message holds {len(self.tool_calls)} tool calls", hint=f"The most is {MAX_TOOL_CALLS}"
            )
        seen: set[str] = set()
        for call in self.tool_calls:
            if call.id in seen:
                raise ConfigurationError(
                    f"tool call id {call.id!r} stands twice in one assistant message", hint="Give each call its own id"
                )
            seen.add(call.id)

    def to_openai(self) -> dict[str, Any]:
        """The chat-completions shape. `is_error` is an extra key there, which no provider ever receives."""
        result: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            result["content"] = self.content or None
            result["tool_calls"] = [call.to_openai() for call in self.tool_calls]
        if self.role == "tool":
            result["tool_call_id"] = self.tool_call_id
            if self.is_error:
                result["is_error"] = True
        return result

    @classmethod
    def from_openai(cls, data: Mapping[str, Any]) -> Message:
        """From one chat-completions message; `from_openai(m.to_openai()) == m` for every legal message.

        Text parts are joined by a blank line, a refusal counts as the assistant's text. Raises ConfigurationError for
        media, reasoning, legacy function calls and every other part that portable history cannot hold.
        """
        if not isinstance(cast("object", data), Mapping):
            raise ConfigurationError(f"the message is {checks.kind(data)}, not a dict", hint="Pass one message")
        known = {"role", "content", "tool_calls", "tool_call_id", "is_error", "refusal", "name", "index", "id", "type"}
        for key, value in data.items():
            if key not in known and value:
                raise ConfigurationError(
                    f"the message has {key!r}, which portable history cannot hold",
                    hint="Remove it, or keep the provider's own state in a continuation",
                )
        raw_calls = data.get("tool_calls") or ()
        if not isinstance(raw_calls, (list, tuple)):
            raise ConfigurationError(f"tool_calls is {checks.kind(raw_calls)}", hint="Give a list of tool calls")
        calls = tuple(cast("list[object]", raw_calls))
        return cls(
            role=data.get("role"),  # type: ignore[arg-type]  # __post_init__ checks it
            content=_content_text(data.get("content")) or _content_text(data.get("refusal")),
            tool_calls=tuple(_call_from_openai(call, f"tool_calls[{i}]") for i, call in enumerate(calls)),
            tool_call_id=data.get("tool_call_id"),
            is_error=data.get("is_error", False),
        )

    def to_jsonable(self) -> dict[str, Any]:
        """JSON types only; fields that hold their default are left out."""
        result: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            result["tool_calls"] = [call.to_jsonable() for call in self.tool_calls]
        if self.tool_call_id is not None:
            result["tool_call_id"] = self.tool_call_id
        if self.is_error:
            result["is_error"] = True
        return result

    @classmethod
    def from_jsonable(cls, data: object) -> Message:
        """Back from `to_jsonable`. Raises ConfigurationError naming the field; nothing is accepted in part."""
        fields = _object(data, "Message")
        _only(fields, _MESSAGE, "Message")
        calls = fields.get("tool_calls", [])
        if not isinstance(calls, list):
            raise ConfigurationError(f"Message.tool_calls is {checks.kind(calls)}", hint="Give a list")
        decoded = tuple([ToolCall.from_jsonable(call) for call in cast("list[object]", calls)]) if calls else ()
        role: Any = fields.get("role")  # __post_init__ checks it
        call_id, failed = fields.get("tool_call_id"), fields.get("is_error", False)
        return cls(role, fields.get("content", ""), decoded, call_id, failed)


_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "is_error"})
_CALL = frozenset({"id", "name", "arguments_text", "arguments"})


def _object(value: object, name: str) -> Mapping[str, Any]:
    """What holds the fields; each is checked where it is used."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} is {checks.kind(value)}, not a dict", hint=f"Give {name} as a dict")
    return cast("Mapping[str, Any]", value)


def _fields(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _only(fields: Mapping[str, Any], known: frozenset[str], name: str) -> None:
    if not fields.keys() <= known:
        key = next(key for key in fields if key not in known)
        raise ConfigurationError(f"{name} has the unknown field {key!r}", hint=f"Known: {', '.join(sorted(known))}")


def _call_from_openai(data: object, name: str) -> ToolCall:
    fields = _fields(data)
    function = fields.get("function")
    if fields.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ConfigurationError(
            f"{name} is no function call in chat-completions shape",
            hint='Give {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}',
        )
    function = cast("Mapping[str, Any]", function)
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):
        return ToolCall(fields.get("id"), function.get("name"), None, arguments)  # type: ignore[arg-type]  # checked there
    return ToolCall(fields.get("id"), function.get("name"), arguments)  # type: ignore[arg-type]  # checked there


def _content_text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        raise ConfigurationError(f"content is {checks.kind(content)}", hint="Give a str or a list of text parts")
    texts: list[str] = []
    for index, part in enumerate(cast("list[object]", content)):
        fields = _fields(part)
        word = fields.get("refusal") if fields.get("type") == "refusal" else fields.get("text")
        if fields.get("type") not in ("text", "input_text", "output_text", "refusal") or not isinstance(word, str):
            raise ConfigurationError(
                f"content[{index}] is no text part",
                hint="Send media as Source values; portable history holds text only",
            )
        texts.append(word)
    return "\n\n".join(texts)
