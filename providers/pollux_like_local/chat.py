"""One chat turn, step by step, on the engine's worker thread: choose, render, generate, and shape as OpenAI chunks.

The chunks have the shape of OpenAI's streaming `chat.completion.chunk`; `whole` folds them into a `chat.completion`.
Usage counts the prompt of the turn itself, and every generated token, the choice of a tool included. At most one tool
is called per turn. With `tool_choice` auto, the turn right after a tool result answers: a model of this size would call
the same tool again without end. Stop strings apply to answers, not to the arguments of a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pollux_like.canonical import dumps, sha256
from pollux_like.engine import Choice, gbnf
from pollux_like.errors import ConfigurationError, ContextOverflowError
from pollux_like_local import grammar, tools
from pollux_like_local.prompt import Turn
from pollux_like_local.request import ChatRequest
from pollux_like_local.runtime import Generated, Runtime
from pollux_like_local.tools import Tool

_CHOICE_TOKENS = 64


@dataclass(slots=True)
class Chat:
    """A turn in the making. `emit` takes each chunk as it comes; `cancelled` is asked after each evaluation step."""

    runtime: Runtime
    request: ChatRequest
    emit: Callable[[dict[str, Any]], None]
    cancelled: Callable[[], bool]
    verified: set[str]
    """Grammars that the runtime is known to apply; shared by all turns of an engine."""
    _chunk: dict[str, Any] = field(default_factory=dict[str, Any])
    _overhead: int = 0
    _cached: int | None = None

    def run(self) -> None:
        """Make the turn. Raises ConfigurationError, ContextOverflowError, APIError, and Cancelled."""
        chosen = self._choose()
        if chosen is None:
            self._answer()
        else:
            self._call(chosen)

    def _answer(self) -> None:
        request = self.request
        prompt = self._prompt(())
        options: dict[str, Any] = dict(request.sampling)
        if request.schema is not None:
            options["grammar"] = self._json_grammar(prompt, request.schema, request.schema_strict, "response_format")
        elif request.tools:
            options["grammar"] = grammar.ANSWER
        if request.stop:
            options["stop"] = list(request.stop)
        self._begin(prompt, {"role": "assistant", "content": ""})
        done = self._generate(prompt, lambda text: self._delta({"content": text}), options)
        self._end(done, done.finish)

    def _call(self, tool: Tool) -> None:
        prompt = self._prompt((tools.call_begin(tool.name),))
        field = f"tools[{self.request.tools.index(tool)}].function.parameters"
        rule = self._json_grammar(prompt, tool.parameters, tool.strict, field)
        entry = {
            "index": 0,
            "id": tools.call_id(prompt, tool.name, self.request.call_ids),
            "type": "function",
            "function": {"name": tool.name, "arguments": ""},
        }
        self._begin(prompt, {"role": "assistant", "content": None, "tool_calls": [entry]})

        def piece(text: str) -> None:
            self._delta({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})

        done = self._generate(prompt, piece, {**self.request.sampling, "grammar": rule})
        self._end(done, "length" if done.finish == "length" else "tool_calls")

    def _choose(self) -> Tool | None:
        request = self.request
        if request.choice == "none" or (request.choice == "auto" and request.after_result):
            return None
        if request.choice.startswith("="):
            return next(tool for tool in request.tools if tool.name == request.choice[1:])
        options = tools.options(request.tools, may_answer=request.choice == "auto")
        if len(options) == 1:
            return request.tools[0]
        turns = tools.choice_turns(request.tools, options, request.last_message)
        prompt = self._fits(self.runtime.tokenize(self.runtime.template.render(turns)))
        done = self.runtime.generate(
            prompt,
            max_tokens=_CHOICE_TOKENS,
            cancelled=self.cancelled,
            grammar=gbnf(Choice(tuple(options))),
            temperature=0,
        )
        self._overhead += done.generated
        # Only a name of more than _CHOICE_TOKENS tokens is cut; it then is the one that begins so.
        return next(tool for label, tool in options.items() if label == done.text or label.startswith(done.text))

    def _prompt(self, begin: Sequence[str]) -> list[int]:
        turns: Sequence[Turn] = self.request.turns
        return self._fits(self.runtime.tokenize(self.runtime.template.render(turns, begin=begin)))

    def _fits(self, prompt: list[int]) -> list[int]:
        window = self.runtime.model.n_ctx
        if len(prompt) >= window:
            raise ContextOverflowError(
                f"The conversation takes {len(prompt)} tokens and the window of the embedded model holds {window}",
                hint="Shorten the conversation, or open the engine with a larger n_ctx",
                provider="local",
                code="context_length_exceeded",
            )
        return prompt

    def _json_grammar(self, prompt: list[int], schema: dict[str, Any], strict: bool, field: str) -> str:
        rule = grammar.json_value(schema, strict=strict, eot_id=self.runtime.eot_id)
        if rule not in self.verified:
            self._cached = self.runtime.probe(prompt, rule, cancelled=self.cancelled)
            if self._cached is None:
                raise ConfigurationError(
                    f"{field} holds a schema that cannot be enforced (an unknown type, a dangling $ref, a pattern with "
                    "look-around, or, with strict, an unsupported keyword)",
                    hint="Simplify the schema",
                )
            self.verified.add(rule)
        return rule

    def _generate(self, prompt: list[int], on_text: Callable[[str], None], options: dict[str, Any]) -> Generated:
        limit = min(self.request.max_tokens, self.runtime.model.n_ctx - len(prompt))
        return self.runtime.generate(prompt, max_tokens=limit, cancelled=self.cancelled, on_text=on_text, **options)

    def _begin(self, prompt: list[int], delta: dict[str, Any]) -> None:
        self._chunk = {
            "id": f"chatcmpl-{sha256(dumps(prompt))[:24]}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.runtime.model.id,
        }
        self._delta(delta)

    def _delta(self, delta: dict[str, Any], finish: str | None = None) -> None:
        self.emit({**self._chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _end(self, done: Generated, finish: str) -> None:
        self._delta({}, finish)
        generated = done.generated + self._overhead
        usage = {
            "prompt_tokens": done.prompt_tokens,
            "completion_tokens": generated,
            "total_tokens": done.prompt_tokens + generated,
            "prompt_tokens_details": {"cached_tokens": done.cached if self._cached is None else self._cached},
        }
        self.emit({**self._chunk, "choices": [], "usage": usage})


def prompt_tokens(runtime: Runtime, request: ChatRequest) -> int:
    """The length of the prompt that a turn would answer to, in tokens."""
    return len(runtime.tokenize(runtime.template.render(request.turns)))


def whole(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The `chat.completion` that the chunks of one turn add up to."""
    first, usage = chunks[0], chunks[-1]["usage"]
    message: dict[str, Any] = {**first["choices"][0]["delta"]}
    finish: str | None = None
    for chunk in chunks[1:-1]:
        choice = chunk["choices"][0]
        finish = choice["finish_reason"]
        if "content" in choice["delta"]:
            message["content"] += choice["delta"]["content"]
        for piece in choice["delta"].get("tool_calls", ()):
            message["tool_calls"][0]["function"]["arguments"] += piece["function"]["arguments"]
    if "tool_calls" in message:
        message["tool_calls"] = [
            {key: call[key] for key in ("id", "type", "function")} for call in message["tool_calls"]
        ]
    head = {"id": first["id"], "object": "chat.completion", "created": first["created"], "model": first["model"]}
    return {**head, "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
