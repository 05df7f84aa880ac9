"""Blocks and messages, checked when they are built. The reprs show shapes, never the conversation or a signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    ModelWrapValidatorHandler,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from pollux_like import canonical

JSONObject: TypeAlias = Mapping[str, Any]
"""A JSON object: string keys, JSON values."""
Role: TypeAlias = Literal["system", "user", "assistant"]

BLOCK_TYPES: Final = ("text", "image", "reasoning", "tool_call", "tool_result")
"""The block types that this version knows, as a server advertises them in `message_block_types`."""

PLACES: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"text", "image"}),
    "user": frozenset({"text", "image", "tool_result"}),
    "assistant": frozenset({"text", "image", "reasoning", "tool_call"}),
}
"""Which blocks each role may hold."""

MARKS: Final = (("tool_call_id", "tool_result"), ("name", "tool_call"), ("data", "image"), ("signature", "reasoning"))
"""The field that gives a block away where its `type` is left out; one without any of them is text."""


def _checked(value: Any) -> Any:
    try:
        canonical.check_value(value)
    except canonical.JSONPolicyError as error:
        raise PydanticCustomError("json", "{what}", {"what": str(error)}) from None
    return value


def _exact(value: str) -> str:
    try:
        canonical.check_text(value)
    except canonical.JSONPolicyError as error:
        raise PydanticCustomError("text", "{what}", {"what": str(error)}) from None
    return value


Text: TypeAlias = Annotated[str, AfterValidator(_exact)]
Object: TypeAlias = Annotated[dict[str, Any], AfterValidator(_checked)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, ser_json_inf_nan="constants")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in ("role", "id", "name", "tool_call_id", "is_error", "mimeType"):
                yield name, value
            elif name != "type" and value is not None:
                yield name, _Shape(name, value)


class _Shape:
    """A value in a repr, by its size."""

    def __init__(self, name: str, value: Any) -> None:
        if name == "signature":
            self._shown = "***"
        elif isinstance(value, str):
            self._shown = f"<{len(value)} characters>"
        elif name == "blocks":
            self._shown = f"[{', '.join(block.type for block in value)}]"
        else:
            self._shown = f"<{len(value)} keys>"

    def __repr__(self) -> str:
        return self._shown


class TextBlock(_Model):
    """Text. `detail` is the environment's own JSON, which no provider receives."""

    text: Text
    detail: Object | None = None
    type: Literal["text"] = "text"


class ImageBlock(_Model):
    """An image: `data` in standard base64, `mimeType` its media type."""

    data: Text
    mimeType: Text  # the name on the wire
    detail: Object | None = None
    type: Literal["image"] = "image"


class ReasoningBlock(_Model):
    """Past reasoning of the model, as plain text. `signature` is passed on where a provider signed it."""

    text: Text
    signature: Text | None = None
    detail: Object | None = None
    type: Literal["reasoning"] = "reasoning"


class ToolCallBlock(_Model):
    """A tool call of the assistant; `input` is a JSON object, key order kept."""

    id: Text
    name: Text
    input: Object
    detail: Object | None = None
    type: Literal["tool_call"] = "tool_call"


def _kind(value: Any) -> str | None:
    """The type of a block, from its `type`, its class or the fields that only one kind has."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        if "type" in fields:
            return fields["type"] if isinstance(fields["type"], str) else None
        return next((kind for mark, kind in MARKS if mark in fields), "text")
    return getattr(value, "type", None)


Content: TypeAlias = Annotated[
    Annotated[TextBlock, Tag("text")] | Annotated[ImageBlock, Tag("image")], Discriminator(_kind)
]
"""What a prompt and a tool result are made of: text and images."""


class ToolResultBlock(_Model):
    """The answer to the call `tool_call_id`; it stands in a user turn. `is_error` says that the tool failed."""

    tool_call_id: Text
    blocks: list[Content]
    is_error: bool = False
    detail: Object | None = None
    type: Literal["tool_result"] = "tool_result"


MessageBlock: TypeAlias = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[ReasoningBlock, Tag("reasoning")]
    | Annotated[ToolCallBlock, Tag("tool_call")]
    | Annotated[ToolResultBlock, Tag("tool_result")],
    Discriminator(_kind),
]
"""What a message is made of. `type` decides; without it the fields do, and text is what is left."""


class Message(_Model):
    """One turn: `role` system, user or assistant, and its `blocks` in order.

    Reasoning and tool calls belong into assistant turns, tool results into user turns, text and images anywhere.
    Raises pydantic.ValidationError (a ValueError) with one line that names role, block and place.
    """

    role: Role
    blocks: list[MessageBlock]
    detail: Object | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Message]) -> Message:
        try:
            message = handler(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise PydanticCustomError("message", "{what}", {"what": _sentence(data, first)}) from None
        for index, block in enumerate(message.blocks):
            if block.type not in PLACES[message.role]:
                raise PydanticCustomError("placement", "{what}", {"what": _misplaced(block.type, message.role, index)})
        return message


def _misplaced(kind: str, role: str, index: int) -> str:
    home = " or ".join(role for role, kinds in PLACES.items() if kind in kinds)
    return f"a {kind} block stands in {_article(role)} {role} message, at blocks[{index}]; it belongs to role {home}"


def _article(role: str) -> str:
    return "an" if role == "assistant" else "a"


def _sentence(data: Any, error: ErrorDetails) -> str:
    """What is wrong, with role, block and place, and nothing of the content."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}
    loc = error["loc"]  # the tag of a block follows its index
    tags = [n for n, part in enumerate(loc) if n and isinstance(loc[n - 1], int) and part in BLOCK_TYPES]
    where = [part for n, part in enumerate(loc) if n not in tags]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
    role = fields.get("role")
    who = f"{_article(role)} {role} message" if isinstance(role, str) and role in PLACES else "a message"
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        inside = sum(1 for part in where if isinstance(part, int)) > 1
        allowed = ("text", "image") if inside else BLOCK_TYPES
        return f"{who} holds a block of no known type, at {place}; known: {', '.join(allowed)}"
    what = f"the {loc[tags[0]]} block of {who}" if tags else who
    return f"{what} is wrong at {place or 'the top'}: {error['msg'][:1].lower()}{error['msg'][1:]}"
