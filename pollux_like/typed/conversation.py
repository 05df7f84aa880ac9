"""The conversation of a request: messages and context, checked at the door, with the hash over what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pollux_like import canonical, checks
from pollux_like.canonical import JSONPolicyError
from pollux_like.errors import ConfigurationError, ImageInputError

MAX_MESSAGES = 2000
MAX_CHARS = 1_000_000
"""Characters of all texts together."""

IMAGE_HINT = "Image parts are not supported yet; use the field image of the body"


@dataclass(frozen=True, slots=True)
class Text:
    """One text that values may be copied from. `source` is context, messages or system (the parameter)."""

    source: str
    message: int | None
    role: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request is about. `system` is the parameter or the first message; it is the only text with authority.

    `messages` are (index as sent, role, text), without the system message. `messages_hash` is the SHA-256 of RFC 8785
    JSON over the messages as they were sent, None where none were.
    """

    system: str | None = field(default=None, repr=False)
    system_index: int | None = None
    context: str | None = field(default=None, repr=False)
    messages: tuple[tuple[int, str, str], ...] = field(default=(), repr=False)
    messages_hash: str | None = None
    hashes: tuple[str, ...] = field(default=(), repr=False)
    """The hash after each message: entry n covers the messages 0 to n."""

    def texts(self) -> tuple[Text, ...]:
        """What values may be copied from, in the order in which the model sees it: context and every message, a system
        message included. The `system` parameter is none of them."""
        told = self.system_texts() if self.system_index is not None else ()
        context = () if self.context is None else (Text("context", None, "user", self.context),)
        return (*told, *context, *(Text("messages", index, role, text) for index, role, text in self.messages))

    def system_texts(self) -> tuple[Text, ...]:
        """The system text as a source, for fields declared as facts."""
        if self.system is None:
            return ()
        source = "system" if self.system_index is None else "messages"
        return (Text(source, self.system_index, "system", self.system),)


def read_conversation(messages: object = None, context: object = None, system: object = None) -> Conversation:
    """Check what a request carries. Raises ConfigurationError naming the message, ImageInputError for an image part."""
    if messages is None and context is None:
        raise ConfigurationError("the request has neither messages nor context", hint="Give one of them, or both")
    plain_context = None if context is None else checks.filled(context, "context")
    told = None if system is None else checks.filled(system, "system")
    if messages is None:
        found = Conversation(system=told, context=plain_context)
    else:
        found = _with_messages(messages, plain_context, told)
    total = len(found.system or "") + len(found.context or "") + sum(len(text) for _, _, text in found.messages)
    if total > MAX_CHARS:
        raise ConfigurationError(f"the texts have {total:,} characters", hint=f"Send at most {MAX_CHARS:,}")
    return found


def _with_messages(messages: object, context: str | None, system: str | None) -> Conversation:
    if not isinstance(messages, (list, tuple)) or not messages:
        raise ConfigurationError("messages is no list of messages", hint="Give at least one message, or leave it out")
    sent = list(cast("list[object]", messages))
    if len(sent) > MAX_MESSAGES:
        raise ConfigurationError(f"there are {len(sent):,} messages", hint=f"Send at most {MAX_MESSAGES:,}")
    read = [_message(message, f"messages[{index}]") for index, message in enumerate(sent)]
    system_index = None
    if read[0][0] == "system":
        if system is not None:
            raise ConfigurationError(
                "a system message and the system parameter are both set", hint="Set one of the two"
            )
        system, system_index = read[0][1], 0
    for index, (role, _) in enumerate(read):
        if role == "system" and index:
            raise ConfigurationError(f"messages[{index}] is a system message", hint="Only the first message may be one")
    kept = tuple((index, role, text) for index, (role, text) in enumerate(read) if role != "system")
    if not kept and context is None:
        raise ConfigurationError(
            "the messages hold nothing but a system message", hint="Add a user message or a context"
        )
    try:
        canonical.check_value(sent, path="messages")
    except JSONPolicyError as error:
        raise ConfigurationError(str(error), hint="Use only what JSON can carry exactly") from None
    whole = [canonical.canonical(_as_json(message)) for message in sent]
    hashes = _chained(whole)
    return Conversation(system, system_index, context, kept, hashes[-1], hashes)


def _as_json(message: object) -> dict[str, Any]:
    return checks.copied_object(cast("Mapping[str, Any]", message))


def _chained(texts: list[str]) -> tuple[str, ...]:
    """SHA-256 of `[m0,…,mn]` for every n, in one pass over the texts."""
    import hashlib

    running = hashlib.sha256(b"[")
    found: list[str] = []
    for index, text in enumerate(texts):
        running.update((("," if index else "") + text).encode())
        closed = running.copy()
        closed.update(b"]")
        found.append(closed.hexdigest())
    return tuple(found)


def _message(message: object, name: str) -> tuple[str, str]:
    if not isinstance(message, Mapping):
        raise ConfigurationError(f"{name} is {checks.kind(message)}, not an object", hint="Give role and content")
    given = cast("Mapping[str, object]", message)
    extra = [key for key in given if key not in ("role", "content")]
    if extra:
        raise ConfigurationError(
            f"{name} has a key beside role and content",
            hint="Send tool calls, results and names as text, or leave them out",
        )
    role = checks.one_of(given.get("role"), f"{name}.role", ("system", "user", "assistant"))
    return role, _content(given.get("content"), f"{name}.content")


def _content(content: object, name: str) -> str:
    if not isinstance(content, (list, tuple)):
        return checks.text(content, name)
    parts: list[str] = []
    for index, part in enumerate(cast("list[object]", content)):
        place = f"{name}[{index}]"
        given: Mapping[str, object] = cast("Mapping[str, object]", part) if isinstance(part, Mapping) else {}
        kind = given.get("type")
        if isinstance(kind, str) and "image" in kind:
            raise ImageInputError(f"{place} is an image part", hint=IMAGE_HINT)
        if kind != "text" or set(given) != {"type", "text"}:
            raise ConfigurationError(f"{place} is no text part", hint='Write {"type": "text", "text": …}')
        parts.append(checks.text(given["text"], f"{place}.text"))
    if not parts:
        raise ConfigurationError(f"{name} has no parts", hint="Give a string or at least one text part")
    return "\n".join(parts)
