"""Reasoning text on its way back: which endpoint demands it, takes it, or refuses it, as a table with sources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

Policy: TypeAlias = Literal["require", "tool_turns", "ignore", "forbid"]
POLICIES: tuple[str, ...] = get_args(Policy)
FIELDS = ("reasoning_content", "reasoning")
"""The names under which servers send reasoning text, older first."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What an endpoint does with the reasoning text of earlier assistant messages.

    * "require": it refuses a message that lacks the member. Every message has it, with empty text where none came.
    * "tool_turns": it refuses a message with tool calls that lacks the member. Those have it, the others go without.
    * "ignore": it demands nothing and refuses nothing. The text goes back where it came, and nothing is made up.
    * "forbid": it refuses the member. No message has it.

    `field`: the member's name there. None where that is open: the text goes back under the name that it came with, and
    empty text under `reasoning_content`.
    """

    policy: Policy
    field: str | None = None

    def given_back(self, message: dict[str, Any], *, calls: bool, own: bool = True) -> dict[str, str]:
        """The reasoning members with which a message goes back. `own` says that the model asked now wrote the text."""
        if self.policy == "forbid" or (self.policy == "tool_turns" and not calls):
            return {}
        came = {name: cast("str", message[name]) for name in FIELDS if own and isinstance(message.get(name), str)}
        if self.field is not None and came:
            came = {self.field: next(filter(None, came.values()), "")}
        if not came and self.policy != "ignore":
            return {self.field or FIELDS[0]: ""}
        return came


FORBIDDEN = Reasoning("forbid")
_CONTENT = "reasoning_content"
_TABLE: tuple[tuple[str, str, Reasoning, str], ...] = (
    (
        r"api\.deepseek\.com", r"", Reasoning("require", _CONTENT),
        "api-docs.deepseek.com/guides/thinking_mode: demanded once there were tool calls, ignored elsewhere; "
        "github.com/vercel/ai/pull/14739: demanded of every message; recorded: takes empty text, and text in answers",
    ),
    (
        r"api\.moonshot\.(ai|cn)|api\.kimi\.com", r"", Reasoning("tool_turns", _CONTENT),
        "the API's refusal in github.com/bytedance/deer-flow/issues/3043; empty text is taken: "
        "github.com/Lapis0x0/obsidian-yolo/pull/243",
    ),
    (
        r"dashscope(-\w+)?\.aliyuncs\.com", r"qw", Reasoning("ignore", _CONTENT),
        "help.aliyun.com/en/model-studio/deep-thinking: read only with preserve_thinking",
    ),
    (r"api\.z\.ai|open\.bigmodel\.cn", r"", Reasoning("ignore", _CONTENT), "recorded; read with clear_thinking false"),
    (
        r"api\.cerebras\.ai", r"", Reasoning("ignore", "reasoning"),
        "github.com/QwenLM/qwen-code/issues/11045: refuses reasoning_content, takes reasoning",
    ),
    (
        r"api\.groq\.com", r"", FORBIDDEN,
        "github.com/janhq/jan/issues/8136 (reasoning_content), github.com/karthink/gptel/issues/774 (reasoning)",
    ),
    (
        r"", r"deepseek-(r1|reasoner-0)", FORBIDDEN,
        "api-docs.deepseek.com/zh-cn/guides/reasoning_model: answered with 400; the chat template drops it",
    ),
    (
        r"", r"deepseek-(v3\.2|v[4-9]|chat|reasoner|flash|pro)", Reasoning("require"),
        "as api.deepseek.com; servers and proxies that check nothing take it as well",
    ),
    (
        r"", r"kimi-k(2-thinking|2\.[5-9]|[3-9])", Reasoning("tool_turns"),
        "as api.moonshot.ai; also another host: github.com/agentscope-ai/QwenPaw/issues/433",
    ),
    (
        r"", r"", Reasoning("ignore"),
        "vLLM, SGLang, llama-server, Ollama and LM Studio give the member to the chat template, which reads it or not "
        "(github.com/ggml-org/llama.cpp/pull/16934, docs.vllm.ai/en/v0.26.0/features/reasoning_outputs)",
    ),
)  # fmt: skip
"""Host (whole name), model (any part of the name, small letters), what holds there, and the source. First match counts:
hosted APIs by host, served models by name, and the last row for whatever is not known."""


def known(endpoint: str, model: str) -> Reasoning:
    """What holds at an address for a model. The last row of the table where neither is known."""
    host = urlsplit(endpoint).hostname or ""
    for hosts, models, reasoning, _ in _TABLE:
        if (not hosts or re.fullmatch(hosts, host)) and re.search(models, model.lower()):
            return reasoning
    raise AssertionError("the last row of the table matches everything")
