"""Tools for a model whose chat template has none: declarations, calls and results as text, and the choice of a tool.

Declarations stand in the system message. A call is an assistant turn of one JSON object, `{"name": …, "arguments": …}`;
its beginning is given to the model and only the arguments are generated, under the grammar of the tool's schema. A
result is a user turn. Which tool is called is a choice of its own, made in a short separate conversation in which each
tool's description is an example: on 14 hand-made messages the default model is right 12 times, and never calls a tool
for small talk; asked inside the conversation it is right 5 to 11 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pollux_like.canonical import dumps, sha256
from pollux_like_local.prompt import Turn

NO_TOOL = "none"
"""The option of answering. A tool of this name is chosen by its quoted name like every other, see `options`."""

CHOICE_CHARS = 400
"""Characters of the last user message that the choice of a tool sees: its end, where a long message asks."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool


def declarations(tools: Sequence[Tool]) -> str:
    """The system text that declares tools, or "" without tools."""
    if not tools:
        return ""
    lines = (
        dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters}) for tool in tools
    )
    return "\n\nYou can call these tools:\n" + "\n".join(lines)


def call_begin(name: str) -> str:
    """The text of a call up to its arguments."""
    return f'{{"name": {dumps(name)}, "arguments": '


CALL_END = "}"


def call_parts(name: str, arguments: str) -> tuple[str, str, str]:
    """The text of a call, cut where generation cut it, so that a replayed call has the tokens it was made of."""
    return call_begin(name), arguments or "{}", CALL_END


def result_text(name: str, content: str) -> str:
    """The text of a tool's result, an error included."""
    return f"Tool result of {name}: {content}"


def options(tools: Sequence[Tool], *, may_answer: bool) -> dict[str, Tool | None]:
    """What the model may choose from, by the text it writes. None stands for answering."""
    found: dict[str, Tool | None] = {tool.name: tool for tool in tools}
    if not may_answer:
        return found
    label = NO_TOOL
    while label in found:
        label += "!"  # no tool name holds it
    return {label: None, **found}


def choice_turns(tools: Sequence[Tool], options: dict[str, Tool | None], message: str) -> list[Turn]:
    """The short conversation whose next turn is the name of the tool that `message` needs."""
    labels = [label for label, tool in options.items() if tool is None]
    either = f", or {labels[0]}" if labels else ""
    pairs = [(f"{tool.description or tool.name}.", tool.name) for tool in tools]
    if labels:
        pairs = [("Hello!", labels[0]), *pairs, ("Tell me a fact.", labels[0])]
    turns = [Turn("system", (f"Name the tool that the message needs{either}.",))]
    for example, label in pairs:
        turns += [Turn("user", (example,)), Turn("assistant", (label,))]
    return [*turns, Turn("user", (message[-CHOICE_CHARS:],))]


def call_id(prompt: Sequence[int], name: str, used: frozenset[str]) -> str:
    """`call_` and 24 hexadecimal digits, made from the whole prompt and the tool's name.

    A later turn has a longer prompt, so ids differ over a conversation; the same request always gives the same id.
    `used` are the ids of earlier calls; one of them is never given again, even where the history was shortened.
    """
    seed = dumps([*prompt, name])
    while True:
        made = f"call_{sha256(seed)[:24]}"
        if made not in used:
            return made
        seed = made
