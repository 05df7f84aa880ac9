"""Playing the table of conversations: on which targets, down which roads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pollux_like import Config, Continuation, Environment, Input, Output, interact, stream
from pollux_like.simulator import Simulator
from pollux_like.testing import Conversation


@dataclass(frozen=True, slots=True)
class Target:
    """A provider in one dialect, with a model that can all that the table asks for. `server`: the simulator's dialect."""

    name: str
    provider: str
    model: str
    lacks: frozenset[str] = frozenset()
    options: tuple[tuple[str, Any], ...] = ()
    server: str | None = None

    def arguments(self, conversation: Conversation) -> dict[str, Any]:
        """The keyword arguments of each turn of a conversation."""
        given = dict(conversation.arguments)
        own = given.get("provider_options", {}).get(self.provider, {})
        merged = {**own, **dict(self.options)}
        if merged:
            given["provider_options"] = {self.provider: merged}
        else:
            given.pop("provider_options", None)
        return given


_CHAT = frozenset({"pause", "server_tool", "compaction"})
_GEMINI = frozenset({"raw_arguments", "cut_call", "refusal", "compaction"})

TARGETS = (
    Target("openai", "openai", "gpt-5.2", frozenset({"pause"})),
    Target("openai-stored", "openai", "gpt-5.2", frozenset({"pause"}), (("store", True),)),
    Target("openai-chat", "openai", "gpt-5.2", frozenset({"pause", "server_tool", "compaction", "thinking"}),
           (("api", "chat"),)),
    Target("local-server", "local", "some-model", _CHAT | {"thinking"}, server="chat"),
    Target("deepseek", "local", "deepseek-v4-flash", _CHAT | {"refusal"}, server="deepseek"),
    Target("kimi", "local", "kimi-k2.6", _CHAT | {"refusal"}, server="kimi"),
    Target("openrouter", "openrouter", "anthropic/claude-haiku-4.5", _CHAT),
    Target("openrouter-sealed", "openrouter", "openai/gpt-5.2", _CHAT),
    Target("anthropic", "anthropic", "claude-opus-4-6", frozenset({"raw_arguments"})),
    Target("anthropic-preserved", "anthropic", "claude-opus-5-5", frozenset({"raw_arguments"})),
    Target("gemini", "gemini", "gemini-3-flash-preview", _GEMINI),
    Target("gemini-budgets", "gemini", "gemini-2.5-flash", _GEMINI | {"output_beside_tools"}),
)  # fmt: skip


def url(sim: Simulator, target: Target) -> str:
    """Where a simulator speaks the target's dialect."""
    return sim.base_url(target.server or target.provider)


def config(base_url: str, target: Target) -> Config:
    """A Config that leads there."""
    return Config(target.provider, target.model, api_key="sim-key", base_url=base_url, max_attempts=1)


def environment(conversation: Conversation) -> Environment:
    """The environment of a conversation."""
    return Environment(instructions=conversation.instructions, tools=conversation.tools)


def given(conversation: Conversation, number: int, continuation: Continuation | None) -> Input:
    """The input of one step."""
    step = conversation.steps[number]
    history = conversation.history if number == 0 else None
    return Input(step.content, history=history, continuation=continuation, tool_results=step.results)


def through_json(continuation: Continuation | None) -> Continuation | None:
    """As a store that sorts keys would give it back."""
    if continuation is None:
        return None
    return Continuation.from_jsonable(
        json.loads(json.dumps(continuation.to_jsonable(), sort_keys=True, allow_nan=False))
    )


async def take(env: Environment, brought: Input, to: Config, arguments: dict[str, Any], *, streamed: bool) -> Output:
    """One turn, streamed or not."""
    if not streamed:
        return await interact(env, brought, to, **arguments)
    output: Output | None = None
    async for event in stream(env, brought, to, **arguments):
        output = event.output
    assert output is not None
    return output


def sent(body: bytes) -> bytes:
    """A request without the members that say only whether it is streamed.

    Gemini's text comes in parts, as many as a stream has pieces, and they go back as they came: the pieces count as one
    text, with the signature that stands on the last of them.
    """
    fields = json.loads(body)
    for content in fields.get("contents", ()):
        content["parts"] = _joined(content["parts"])
    for name in ("stream", "stream_options"):
        fields.pop(name, None)
    return json.dumps(fields).encode()


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for part in parts:
        before = joined[-1] if joined else {}
        plain = "text" in before and "text" in part and "thoughtSignature" not in before
        if plain and before.get("thought") == part.get("thought"):
            joined[-1] = {**part, "text": before["text"] + part["text"]}
        else:
            joined.append(part)
    return joined
