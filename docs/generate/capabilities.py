"""The table of capabilities: every argument of a turn is prepared and rendered on every dialect.

Nothing is sent and no SDK is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pollux_like import Config, ConfigurationError, Environment, Input, ToolDeclaration, plugins
from pollux_like.prepare import prepare
from pollux_like.provider import Capabilities, Vendor
from pollux_like.settings import EFFORTS, Settings

ARGUMENTS: Mapping[str, Any] = {
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "output": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "max_tokens": 4096,
    "temperature": 0.5,
    "top_p": 0.5,
    "seed": 7,
    "stop": ["END"],
    "reasoning_effort": "low",
    "reasoning_budget_tokens": 2048,
}
"""Each argument with a value that every model takes which takes the argument."""

TOOLS = Environment(tools=[ToolDeclaration("look", "Look")])
NO = "–"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One section of the page: a wire, how to select it, and models that stand for their families."""

    title: str
    provider: str
    models: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


DIALECTS = (
    Dialect("OpenAI, Responses", "openai", (
        "gpt-4o", "o4-mini", "gpt-5-nano", "gpt-5.1", "gpt-5.2", "gpt-6.1", "gpt-6.2-sol",
    )),
    Dialect("OpenAI, chat completions", "openai", ("gpt-4o", "gpt-5.2", "gpt-6.1"), {"api": "chat"}),
    Dialect("Anthropic, Messages", "anthropic", (
        "claude-3-5-haiku", "claude-sonnet-4", "claude-haiku-4-5", "claude-opus-4-5", "claude-opus-4-6",
        "claude-opus-4-7", "claude-opus-5", "claude-opus-5-5",
    )),
    Dialect("Anthropic, Messages, pinned to an older version", "anthropic", ("claude-haiku-4-5", "claude-opus-5-5"),
            {"anthropic_version": "2023-06-01"}),
    Dialect("Gemini, generateContent", "gemini", (
        "gemini-2.5-flash-lite", "gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3.5-flash",
    )),
    Dialect("OpenRouter, chat completions", "openrouter", ("openai/gpt-5.2", "anthropic/claude-opus-4.6")),
    Dialect("OpenRouter", "openrouter", ("anthropic/claude-haiku-4.5", "openai/gpt-5.2")),
    Dialect("Local, embedded and chat-completions servers", "local", ("smollm2-135m-instruct", "any-served-model")),
)  # fmt: skip

HEAD = """<!-- Written by docs/generate from the code. Do not edit: run `make docs`. -->

# Capabilities

Every argument of `interact` and `stream` is sent or refused, never dropped. A refusal is a `ConfigurationError` that
names the argument, before any byte leaves the process. This page is made by preparing and rendering each argument on
each dialect.

*Becomes* is the member of the request body that the argument sets. ✓ is sent; a number is a refusal, explained below
the table. A model stands for its family: dated names follow it, and a name that the tables do not know may take
whatever the dialect has, so that the API decides. `timeout_s` and `provider_options` are taken everywhere.
"""


def pages() -> dict[str, str]:
    """The page, by its path in docs/."""
    return {"capabilities.md": "\n".join([HEAD, *map(section, DIALECTS)])}


def section(dialect: Dialect) -> str:
    """One dialect: arguments against models, the reasons of refusals, and limits."""
    reasons: list[str] = []
    rows = [["Argument", "Becomes", *(f"`{model}`" for model in dialect.models)]]
    for name in ARGUMENTS:
        found = [sent(dialect, model, name) for model in dialect.models]
        becomes = dict.fromkeys(member for members in found if not isinstance(members, str) for member in members)
        cells = [_numbered(one, reasons) if isinstance(one, str) else "✓" for one in found]
        rows.append([f"`{name}`", ", ".join(f"`{member}`" for member in becomes) or NO, *cells])
    limits = [["Limit", *(f"`{model}`" for model in dialect.models)]]
    can = [_vendor(dialect).capabilities(model, dialect.options) for model in dialect.models]
    limits.extend([name, *(cell(one) for one in can)] for name, cell in LIMITS.items())
    select = f"Selected by `provider_options={json.dumps({dialect.provider: dict(dialect.options)})}`.\n\n"
    notes = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))
    return f"## {dialect.title}\n\n{select if dialect.options else ''}{_table(rows)}\n{notes}\n\n{_table(limits)}"


def sent(dialect: Dialect, model: str, name: str) -> tuple[str, ...] | str:
    """The body members that an argument sets, or why it is refused."""
    try:
        environment = TOOLS if name in ("tool_choice", "parallel_tool_calls") else Environment()
        with_it = _body(dialect, model, environment, {name: ARGUMENTS[name]})
    except ConfigurationError as error:
        why = _vendor(dialect).capabilities(model, dialect.options).reasons.get(name)
        return why[0].upper() + why[1:] if why else error.message
    return tuple(_changes(_body(dialect, model, environment, {}), with_it))


def _numbered(reason: str, reasons: list[str]) -> str:
    if reason not in reasons:
        reasons.append(reason)
    return str(reasons.index(reason) + 1)


def _vendor(dialect: Dialect) -> Vendor:
    return cast("Vendor", plugins.load(dialect.provider))


def _body(dialect: Dialect, model: str, environment: Environment, arguments: Mapping[str, Any]) -> dict[str, Any]:
    settings = Settings.of(**arguments, provider_options={dialect.provider: dialect.options})
    vendor = _vendor(dialect)
    turn = prepare(vendor, environment, Input("Hello"), Config(dialect.provider, model), settings, streaming=False)
    return cast("dict[str, Any]", json.loads(vendor.render(turn.request).body))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key, value in after.items():
        if before.get(key) == value:
            continue
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        found.append(f"{key}.{next(iter(inner))}" if len(inner) == 1 else key)
    return found


LIMITS = {
    "`reasoning_effort`": lambda can: ", ".join(effort for effort in EFFORTS if effort in can.efforts) or NO,
    "sources": lambda can: ", ".join(kind for kind in ("text", "image", "pdf") if kind in can.media),
    "tools": lambda can: _yes(can.tools),
    "`tool_choice` that forces": lambda can: _forced(can),
    "highest `temperature`": lambda can: f"{can.max_temperature:g}" if "temperature" in can.settings else NO,
    '`cache="none"`': lambda can: "sent" if can.cache_off else "notice",
    "most `stop` sequences": lambda can: f"{can.max_stop:,}" if "stop" in can.settings else NO,
}


def _yes(value: bool) -> str:
    return "✓" if value else NO


def _forced(can: Capabilities) -> str:
    if not can.tools or not can.forced_choice:
        return NO
    return "✓" if can.forced_choice_with_reasoning else "not while it reasons"


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
