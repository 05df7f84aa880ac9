"""The formats by name: one pure function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, overload

from pollux_like import checks
from pollux_like.conversation.anthropic import render_anthropic
from pollux_like.conversation.blocks import Message
from pollux_like.conversation.chat import render_chat
from pollux_like.conversation.google import render_google
from pollux_like.conversation.responses import render_responses
from pollux_like.errors import FormatError

Format: TypeAlias = Literal["openai", "openai-responses", "openrouter", "anthropic", "google"]
ListFormat: TypeAlias = Literal["openai", "openai-responses", "openrouter"]
ObjectFormat: TypeAlias = Literal["anthropic", "google"]
Converted: TypeAlias = list[Message] | list[dict[str, Any]] | dict[str, Any]


def _openrouter(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return render_chat(messages, "openrouter")


_RENDER: Final[dict[str, Callable[[Sequence[Message]], Any]]] = {
    "openai": render_chat,
    "openai-responses": render_responses,
    "openrouter": _openrouter,
    "anthropic": render_anthropic,
    "google": render_google,
}
FORMATS: Final = tuple(_RENDER)
"""The names that `format=` takes, None apart."""


def check_format(format: object) -> str:
    """Refuse an unknown name with a ValueError of ours."""
    if not isinstance(format, str) or format not in _RENDER:
        raise FormatError("the format is none of ours", hint=f"Use None or one of: {', '.join(FORMATS)}")
    return format


@overload
def convert(messages: Sequence[Message], format: None = None) -> list[Message]: ...
@overload
def convert(messages: Sequence[Message], format: ListFormat) -> list[dict[str, Any]]: ...
@overload
def convert(messages: Sequence[Message], format: ObjectFormat) -> dict[str, Any]: ...
@overload
def convert(messages: Sequence[Message], format: str | None) -> Converted: ...
def convert(messages: Sequence[Message], format: str | None = None) -> Converted:
    """A conversation in a provider's form; None gives the messages themselves.

    Each message is checked again: its lists may have changed since it was built. Raises FormatError (a ValueError)
    for what the format cannot hold, and for an unknown format.
    """
    given = checks.sequence(messages, "messages", Message)
    if format is None:
        return list(given)
    name = check_format(format)
    checked = [Message.model_validate(message.model_dump()) for message in given]
    render = _RENDER[name]
    rendered: list[dict[str, Any]] | dict[str, Any] = render(checked)
    return rendered
