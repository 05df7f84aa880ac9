"""Dialect: where servers that speak chat completions differ, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    """One server's habits.

    * `max_tokens`: the name of that member. `strict_tools`: takes `strict` in a function. `system_role`: or developer.
    * `done`: the stream must end in `[DONE]`; without it a finish_reason is the terminal signal.
    * `stream_usage`: takes `stream_options.include_usage`.
    * `reasoning`: whether reasoning text goes back with the message it came in: "never", "tool_turns" or "always".
    * `details`: the member with structured reasoning. It goes back whole with its message, in place of the text, while
      the model is of the same author (`author/model`).
    * `failed`: finish reasons that say that the answer failed.
    * `special`: provider options that do not stand in the body.
    """

    provider: str
    path: str = "/chat/completions"
    max_tokens: str = "max_completion_tokens"
    system_role: str = "system"
    strict_tools: bool = True
    done: bool = True
    stream_usage: bool = True
    reasoning: Literal["never", "tool_turns", "always"] = "never"
    details: str | None = None
    failed: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()
