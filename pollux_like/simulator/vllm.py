"""vLLM: chat completions with the fields that it adds, as its documents say. Replies keep their constraint.

`structured_outputs` (docs.vllm.ai, structured outputs), `continue_final_message` against `add_generation_prompt`
(vLLM 8942), at most 20 `top_logprobs` (--max-logprobs), prefix caching in whole blocks of 16 tokens (prefix caching
design). A token is a character here, and four characters are one in `usage`. Probabilities are those under the
constraint: that the server reports them so is likely and not recorded.
"""

from __future__ import annotations

import re
from math import log
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator.chat import Chat
from pollux_like.simulator.chat_flavours import Flavour
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses_items import bad
from pollux_like.simulator.shapes import as_object
from pollux_like.simulator.wire import Draft, Exchange, Fault, Looked, tokens
from pollux_like.testing.script import Answer

MODEL = "Qwen/Qwen3-8B"
WINDOW = 32768
BLOCK = 16
MAX_LOGPROBS = 20
_P = 0.9


def _rule(exchange: Exchange) -> Fault | None:
    body = exchange.body
    if body.get("continue_final_message") and body.get("add_generation_prompt", True):
        return bad("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    most = body.get("top_logprobs") or 0
    if most > MAX_LOGPROBS:
        return bad(f"Requested sample logprobs of {most}, which is greater than max allowed: {MAX_LOGPROBS}")
    if most and not body.get("logprobs"):
        return bad("when using `top_logprobs`, `logprobs` must be set to true.")
    wanted = as_object(body.get("structured_outputs"))
    if len([name for name in wanted if name in ("choice", "regex", "grammar", "json")]) > 1:
        return bad("You can only use one kind of constraint for structured outputs")
    return None


FLAVOUR = Flavour(
    "vllm", "/vllm/v1", _rule, (MODEL,),
    overflow="This model's maximum context length is {most} tokens. However, your request has {count} input tokens.",
)  # fmt: skip


class VLLM(Chat):
    """The dialect; see `wire.Dialect`."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        super().__init__(ledger, options, FLAVOUR)

    def look_up(self, exchange: Exchange) -> Looked | None:
        found = super().look_up(exchange)
        if found is not None:
            for one in found[1]["data"]:
                one |= {"owned_by": "vllm", "root": one["id"], "max_model_len": WINDOW}
        return found

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        draft = super().draft(exchange, answer)
        choice, usage = draft.body["choices"][0], draft.body["usage"]
        text = _kept(as_object(exchange.body.get("structured_outputs")), choice["message"]["content"] or "")
        choice["message"]["content"] = text
        if exchange.body.get("logprobs"):
            choices: list[str] = as_object(exchange.body.get("structured_outputs")).get("choice") or []
            choice["logprobs"] = {"content": [_token(text, at, choices) for at in range(len(text))]}
        prompt = dumps(exchange.body["messages"])
        usage["prompt_tokens"], usage["completion_tokens"] = tokens(prompt), tokens(text)
        usage["total_tokens"] = tokens(prompt) + tokens(text)
        usage["prompt_tokens_details"] = {"cached_tokens": self._cached(prompt)}
        self.ledger.prompts.append(prompt)
        return draft

    def _cached(self, prompt: str) -> int:
        longest = max((_common(prompt, one) for one in self.ledger.prompts), default=0)
        return min(longest // 4 // BLOCK * BLOCK, max(0, tokens(prompt) - 1))


def _common(left: str, right: str) -> int:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length


def _kept(wanted: dict[str, Any], text: str) -> str:
    """The text under the constraint: a scripted one that breaks it gives way, as the server would not have made it."""
    choices = wanted.get("choice")
    if choices:
        found = [one for one in choices if one == text or one.strip() == text.strip()]
        return str((found or choices)[0])
    pattern = wanted.get("regex")
    if isinstance(pattern, str) and not re.fullmatch(pattern, text):
        likely = (f" {text}", " null", " 0", " 2001-01-01")
        return next((one for one in likely if re.fullmatch(pattern, one)), text)
    return text


def _token(text: str, at: int, choices: list[str]) -> dict[str, Any]:
    """A character with what could stand in its place: another choice's, else one that no constraint allows."""
    rivals = {one[at] for one in choices if one.startswith(text[:at]) and len(one) > at} - {text[at]}
    if choices and not rivals:
        one = _entry(text[at], 1.0)
        return {**one, "top_logprobs": [one]}
    one = _entry(text[at], _P)
    others = [_entry(rival, (1 - _P) / max(1, len(rivals))) for rival in sorted(rivals) or ["\u0000"]]
    return {**one, "top_logprobs": [one, *others]}


def _entry(character: str, probability: float) -> dict[str, Any]:
    return {"token": character, "logprob": log(probability), "bytes": list(character.encode())}
