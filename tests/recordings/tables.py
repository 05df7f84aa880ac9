"""What each recording needs said about it, by "provider/file.json" or "provider/file.json#exchange"."""

from __future__ import annotations

from typing import Any

from pollux_like import APIError, AuthenticationError, ContextOverflowError, RateLimitError
from pollux_like.provider import ServerStateLost

NOT_APPLICABLE = {
    "openai/stream-error-insufficient-quota.json#0": "the request was not recorded; the answer is tested with another",
    "openai/err-400-audio-tool-output.json#1": "a user message that is one audio file and no text: sources are text, "
    "images and PDF, and stand beside text; everything before it is tested, and the refusal",
    "anthropic/tool-addition-system-delta-opus48.json#1": "a system message inside the conversation (it adds a tool): "
    "portable messages have no such role; the rest of the request is tested",
    "anthropic/errors.json#err-400-role-system-unsupported": "as above; the rest is tested, and the refusal",
    "gemini/vertex-unexpected-tool-call.json#3": "a video by its gs:// address: sources are text, images and PDF; the "
    "rest is tested",
}
"""Parts that we cannot say. All else of these exchanges is tested."""

OTHER_APIS = {
    "gemini/interactions-thinking-stream.json": "the Interactions API, which we do not speak",
    "deepseek/errors.json#err-400-unanswered-tool-call": "Responses, of which we speak OpenAI's; there calls are "
    "answered before anything is sent",
}
"""Recordings, and single exchanges, of an API of a provider that has another here."""

RETRIED: dict[str, float | None] = {
    "gemini/errors.json#err-429-quota-retryinfo": 48.0,
    "openrouter/err-429-upstream.json#0": None,
    "openrouter/err-429-upstream.json#1": None,
    "openrouter/err-429-upstream.json#2": None,
}
"""Refusals that may go better later, with the seconds that the provider asks to wait, if it says so."""

SINGLES = {
    "openai/err-400-invalid-function-parameters.json": "three requests that each begin anew, despite its kind",
    "openrouter/o4mini-encrypted-next-turn-stream.json": "the second request has lost the first user message",
}
"""Recordings of the kind multiturn in which no request goes on from the one before."""

REFUSED = {
    "openai/errors.json#err-400-min-output-tokens": "OpenAI's least is 16",
    "openai/errors.json#err-400-top-p-reasoning": "does not take top_p with gpt-5-nano",
    "openai/errors.json#err-400-temperature-min": "temperature is -1",
    "anthropic/errors.json#err-400-temperature-range": "temperature is -5.0",
    "anthropic/errors.json#err-400-effort-unsupported": "has no reasoning_effort 'xhigh'",
    "anthropic/errors.json#err-400-tool-order": "role assistant",
}
"""Requests that the provider refused and that we refuse ourselves, with a part of the message."""

MENDED = {
    "openai/err-400-invalid-function-parameters.json#1": "strict wants every property required: the optional one "
    "becomes nullable",
    "openai/errors.json#err-400-text-format-schema": "as above, for structured output",
    "anthropic/errors.json#err-400-strict-too-many-tools": "the tool above the cap of strict tools is sent without",
    "anthropic/errors.json#err-400-strict-optional-params": "over the cap of optional parameters: sent without strict",
    "anthropic/errors.json#err-400-strict-unions": "over the cap of unions: sent without strict",
    "anthropic/errors.json#err-400-strict-recursive-ref": "recursion: sent without strict",
    "anthropic/errors.json#err-400-strict-missing-type": "a root without type object: rewritten",
}
"""Requests with a schema that the provider refused and that we send in an accepted form; the rest is the same."""

ERRORS: dict[str, type[APIError]] = {
    "openai/stream-error-insufficient-quota.json#0": RateLimitError,
    "openai/errors.json#err-400-previous-response-not-found": ServerStateLost,
    "openai/errors.json#err-401-invalid-key": AuthenticationError,
    "openai/errors.json#err-400-context-length": ContextOverflowError,
    "anthropic/errors.json#err-401-invalid-key": AuthenticationError,
    "anthropic/errors.json#err-400-prompt-too-long": ContextOverflowError,
    "gemini/errors.json#err-400-invalid-key": AuthenticationError,
    "gemini/errors.json#err-400-token-count-vertex": ContextOverflowError,
    "gemini/errors.json#err-429-quota-retryinfo": RateLimitError,
    "openrouter/err-429-upstream.json#0": RateLimitError,
    "openrouter/err-429-upstream.json#1": RateLimitError,
    "openrouter/err-429-upstream.json#2": RateLimitError,
    "deepseek/errors.json#err-401": AuthenticationError,
    "openrouter/errors.json#err-401": AuthenticationError,
    "openrouter/errors.json#err-400-context-length": ContextOverflowError,
}
"""Refusals that are more than an APIError."""

INSIDE = {
    "openai/stream-error-insufficient-quota.json#0": 429,
    "openrouter/stream-error-mid.json#0": 400,
    "other/groq-tool-use-failed-stream.json#0": 400,
}
"""Statuses of refusals that came inside an answer of status 200."""

STATUSES = {
    "openai/incomplete-mid-tool-call-stream.json#0": "length",
    "openai/incomplete-reasoning-budget-stream.json#0": "length",
    "openai/refusal-responses-stream.json#0": "refusal",
    "openai/refusal-survives-history-chat.json#0": "refusal",
    "anthropic/max-tokens-in-thinking-stream.json#0": "length",
    "anthropic/pause-turn-web-search.json#0": "pause",
    "gemini/max-tokens-empty-parts.json#0": "length",
    "gemini/safety-block.json#0": "content_filter",
    "openrouter/length-truncated.json#0": "length",
    "openrouter/refusal.json#0": "refusal",
}
"""Finish statuses other than "tool_calls" where there are calls, else "stop"."""

_NOT_STORED: dict[int, tuple[dict[str, Any] | None, str]] = {
    0: (None, "reasoning without encrypted content names what the server remembers, and we keep nothing there"),
    1: ({"id": ...}, "the id of a message is checked against that reasoning"),
}
_UNWANTED: dict[int, tuple[dict[str, Any] | None, str]] = {
    0: ({"reasoning": ...}, "Groq shows reasoning and refuses it back")
}
_EMPTY = (None, "empty text without a signature says nothing, and is refused")
CHANGED: dict[str, dict[int, tuple[dict[str, Any] | None, str]]] = {
    "openai/function-call-output-foreign-id.json#0": _NOT_STORED,
    "openai/function-call-output-foreign-id.json#1": _NOT_STORED,
    "openai/function-call-output-foreign-id.json#2": _NOT_STORED,
    "openai/incomplete-mid-tool-call-stream.json#0": {
        0: ({"arguments": "{}", "status": ...}, "the arguments were cut, and broken JSON is never replayed")
    },
    "openai/incomplete-reasoning-budget-stream.json#0": {
        0: (None, "reasoning with an id was cut, and what must follow it never came")
    },
    "other/groq-tool-use-failed-stream.json#1": _UNWANTED,
    "other/groq-tool-use-failed-stream.json#2": _UNWANTED,
    "gemini/g3flash-native-output-tools-stream.json#0": {1: _EMPTY},
    "gemini/g3pro-tool-signature-stream.json#0": {1: _EMPTY},
    "gemini/g3pro-tool-signature-stream.json#1": {2: _EMPTY},
}
"""Items of an answer that do not go back as they came, by index: their changed members (... is gone; None: the whole
item stays out), and the reason."""
