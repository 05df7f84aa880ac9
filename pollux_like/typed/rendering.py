"""Rendering: the turns before the model. The shared ones once, and one more user turn per field.

[system]     the caller's, or `SYSTEM_LINE` where there is none (the provenance says so)
[user]       context, when given: text from outside gets no system trust
[user] …     the conversation, roles preserved
[user]       Known values … Field: policy_number …
[assistant]  policy_number =
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pollux_like import canonical
from pollux_like.engine import Prompt, Turn
from pollux_like.typed.conversation import Conversation
from pollux_like.typed.schema import Field
from pollux_like.typed.values import rendered

PROMPT_VERSION = "1"
"""Raised with every change of the texts below: calibrators are fitted for one version."""

SYSTEM_LINE = "Read values out of the conversation. If a value was corrected, use the latest value."
GENERATE_LINE = "You are a helpful assistant."

_MAX_KNOWN_CHARS = 400


def prompt_hash() -> str:
    """SHA-256 over the texts that this version puts around a conversation."""
    probe = Field("f", "enum", options=("a", "b"), nullable=True)
    return canonical.sha256("\n".join((PROMPT_VERSION, SYSTEM_LINE, ask(probe, {"k": 1}).text)))


def shared(conversation: Conversation, line: str = SYSTEM_LINE) -> tuple[Turn, ...]:
    """The turns that all fields have in common."""
    context = () if conversation.context is None else (Turn("user", conversation.context),)
    told = (Turn(role, text) for _, role, text in conversation.messages)
    return (Turn("system", conversation.system or line), *context, *told)


def record(conversation: Conversation) -> tuple[Turn, ...]:
    """The turns of a field declared as a fact: the system text alone. No claim of the chat reaches it."""
    return (Turn("system", conversation.system or SYSTEM_LINE),)


def field_prompt(turns: tuple[Turn, ...], field: Field, known: Mapping[str, Any], begin: str = "") -> Prompt:
    """The prompt of one field; `begin` goes on after `field =` (the items of a list so far)."""
    return Prompt(turns, ask(field, known), f"{field.name} ={begin}")


def ask(field: Field, known: Mapping[str, Any]) -> Turn:
    """The field's own turn."""
    form = _form(field)
    lines = [f"Known values: {_known(known)}", f"Field: {field.name}{f' ({form})' if form else ''}"]
    lines.append(field.description or f"What is the {field.name.replace('_', ' ')}?")
    return Turn("user", "\n".join(lines))


def _known(known: Mapping[str, Any]) -> str:
    pairs = (f"{name} = {' '.join(rendered(value).split())[:_MAX_KNOWN_CHARS]}" for name, value in known.items())
    return ", ".join(pairs) or "none"


def _form(field: Field) -> str:
    """What the constraint alone does not tell the model. The embedded model reads worse the more stands here."""
    if field.type == "list":
        return f"several, {_form(field.items)}".removesuffix(", ") if field.items else ""
    parts = [f"one of: {', '.join(field.options)}"] if field.options else []
    parts += ["YYYY-MM-DD"] if field.type == "date" and not field.extract else []
    return ", ".join([*parts, *(["or null"] if field.nullable else [])])
