"""Chat completions of compatible servers as recorded: DeepSeek, Z.ai, Groq. Read as OpenRouter's where nothing differs."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from pollux_like import Environment, ToolDeclaration

from . import router
from .shape import Asked, Dialect, Expected, passages, text_of, without_nulls

ADDRESSES = {
    "deepseek/": "https://api.deepseek.com",
    "other/zai": "https://api.z.ai/api/paas/v4",
    "other/groq": "https://api.groq.com/openai/v1",
}
"""Where each recording was made, by the beginning of its name."""
_SAME = ("max_tokens", "reasoning_effort")
_THOUGHT = re.compile(r"<think>.*</think>\s*", re.DOTALL)


def asked(body: Mapping[str, Any]) -> Asked:
    """Every member of the recorded body in our words; one without a word of ours fails."""
    rest = dict(body)
    arguments = {name: rest.pop(name) for name in _SAME if name in rest}
    choice = rest.pop("tool_choice", None)
    if choice is not None:
        arguments["tool_choice"] = {"name": choice["function"]["name"]} if isinstance(choice, dict) else choice
    streaming = rest.pop("stream", False)
    assert rest.pop("n", 1) == 1  # what no number means
    said = rest.pop("messages")
    system = [text_of(one["content"]) or "" for one in said if one["role"] == "system"]
    items = [router.item(one) for one in said if one["role"] != "system"]
    functions = [tool["function"] for tool in rest.pop("tools", [])]
    tools = [ToolDeclaration(one["name"], one.get("description", ""), one["parameters"]) for one in functions]
    environment = Environment(instructions="\n\n".join(system) or None, tools=tools)
    options = {"thinking": rest.pop("thinking")} if "thinking" in rest else {}
    model = rest.pop("model")
    assert not rest, f"members of the recorded request without a word of ours: {sorted(rest)}"
    return Asked(model, environment, arguments, options, streaming, passages(items))


def expected(body: Any, events: list[dict[str, Any]]) -> Expected:
    """From the body, or from the chunks of a stream."""
    return router.expected(body, events)


def meaning(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body in the common form."""
    result = router.meaning({key: value for key, value in copy.deepcopy(dict(body)).items() if key != "n"})
    messages = result["messages"]
    system = [one["content"] for one in messages if one["role"] == "system"]  # an environment has one text
    talk = [one for one in messages if one["role"] != "system"]
    for message in talk:  # that client says reasoning as text; the server takes it under no name
        message["content"] = _THOUGHT.sub("", message["content"])
    result["messages"] = [*([{"role": "system", "content": "\n\n".join(system)}] if system else []), *talk]
    for tool in result.get("tools", []):
        tool["function"].setdefault("description", "")
    return without_nulls(result)


_POSITION = "where the call stood in the answer; the calls go back in that order"
_TWICE = "the same text under a second name"
_LOOSE = "many servers do not know the member, and DeepSeek reads it at its beta address only"
OMITTED_HERE = {"function.index": _POSITION, "assistant.reasoning": _TWICE, "function.strict": _LOOSE}

DIALECT = Dialect(
    "local", asked, expected, meaning, router.accepted_tools, router.call, router.portable, {}, OMITTED_HERE
)
