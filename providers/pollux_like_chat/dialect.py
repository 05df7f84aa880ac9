"""Dialect: where servers that speak chat completions differ, as data."""

from __future__ import annotations

from dataclasses import dataclass

from .policies import FORBIDDEN, Reasoning


@dataclass(frozen=True, slots=True)
class Dialect:
    """One server's habits.

    * `max_tokens`: the name of that member. `strict_tools`: takes `strict` in a function. `system_role`: or developer.
    * `done`: the stream must end in `[DONE]`; without it a finish_reason is the terminal signal.
    * `stream_usage`: takes `stream_options.include_usage`.
    * `reasoning`: how reasoning text goes back with the message it came in.
    * `stubs`: a conversation with tool calls needs tools in the request; where none are given, their names are sent.
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
    reasoning: Reasoning = FORBIDDEN
    stubs: bool = False
    details: str | None = None
    failed: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()
