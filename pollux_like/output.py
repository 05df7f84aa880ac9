"""Output: what came of one turn, and the events by which it came. The reprs show shapes, never the transcript."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pollux_like.continuation import Continuation
from pollux_like.messages import Message, ToolCall
from pollux_like.shown import Shown

if TYPE_CHECKING:
    from pydantic import BaseModel

Status = Literal["stop", "tool_calls", "length", "refusal", "content_filter", "pause", "malformed_tool_call", "other"]


@dataclass(frozen=True, slots=True, repr=False)
class Usage(Shown):
    """Tokens of one turn, with the same meaning on every provider.

    `cached_tokens` and `cache_write_tokens` are parts of `input_tokens`, `reasoning_tokens` of `output_tokens`, and
    `input_tokens + output_tokens == total_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def to_jsonable(self) -> dict[str, int]:
        """All six numbers."""
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens,
                "total_tokens": self.total_tokens, "cached_tokens": self.cached_tokens,
                "cache_write_tokens": self.cache_write_tokens, "reasoning_tokens": self.reasoning_tokens}  # fmt: skip

    @classmethod
    def of(cls, *, input: int, output: int, cached: int = 0, cache_write: int = 0, reasoning: int = 0) -> Usage:
        """Bring a provider's numbers into the invariants: counts and nothing else, parts within their wholes."""
        whole_in, whole_out, read = _count(input), _count(output), _count(cached)
        read = min(read, whole_in)
        return cls(
            whole_in, whole_out, read, min(_count(cache_write), whole_in - read), min(_count(reasoning), whole_out)
        )


def _count(value: object) -> int:
    """A count as it came: a whole number of at most 2^53, also one written as 12.0; 0 for everything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return min(max(value, 0), 2**53)


@dataclass(frozen=True, slots=True, repr=False)
class Finish(Shown):
    """Why the model stopped.

    * stop: it was done, or met a stop sequence. tool_calls: it waits for results.
    * length: the token limit cut it; a cut tool call has `arguments_error`.
    * refusal: the model declined. content_filter: the provider withheld the answer.
    * pause: a long turn of the provider's own tools; go on with `Input(continuation=...)`.
    * malformed_tool_call: the provider could not read the model's call. other: see `raw`, the provider's own word.
    """

    status: Status
    raw: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Notice(Shown):
    """Something that the caller should know and that is no error; `kind` is stable, `message` is for people."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, repr=False)
class Metrics(Shown):
    """`duration_s` of the whole turn, HTTP `attempts`, and the provider's `request_id` and answering `model`."""

    duration_s: float = 0.0
    attempts: int = 0
    request_id: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Output(Shown):
    """One completed turn.

    * `text`, `reasoning` (for display only, never the source of a request), `refusal` (the model's words, or None).
    * `structured`: the answer as the pydantic model or dict that `output=` asked for, else None.
    * `tool_calls`: flat, in call order. `continuation`: to go on; None for a plain turn that nobody tracks.
    * `messages`: the portable messages that this turn added, ready for the application's own transcript.
    * `notices`: what was lossy or changed on the way.
    """

    text: str = field(default="", repr=False)
    structured: BaseModel | dict[str, Any] | None = field(default=None, repr=False, hash=False)
    reasoning: str = field(default="", repr=False)
    refusal: str | None = field(default=None, repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    continuation: Continuation | None = None
    messages: tuple[Message, ...] = field(default=(), repr=False)
    usage: Usage = field(default_factory=Usage)
    finish: Finish = field(default_factory=lambda: Finish("stop"))
    metrics: Metrics = field(default_factory=Metrics)
    notices: tuple[Notice, ...] = ()

    def to_jsonable(self) -> dict[str, Any]:
        """JSON types only. Everything that a provider signed or sealed is inside `continuation`, nowhere else."""
        structured: Any = self.structured
        if structured is not None and not isinstance(structured, dict):
            structured = structured.model_dump(mode="json")
        return {
            "text": self.text,
            "structured": structured,
            "reasoning": self.reasoning,
            "refusal": self.refusal,
            "tool_calls": [call.to_jsonable() for call in self.tool_calls],
            "continuation": None if self.continuation is None else self.continuation.to_jsonable(),
            "messages": [message.to_jsonable() for message in self.messages],
            "usage": self.usage.to_jsonable(),
            "finish": {"status": self.finish.status, "raw": self.finish.raw},
            "metrics": {"duration_s": self.metrics.duration_s, "attempts": self.metrics.attempts,
                        "request_id": self.metrics.request_id, "model": self.metrics.model},
            "notices": [{"kind": notice.kind, "message": notice.message} for notice in self.notices],
        }  # fmt: skip


EventType = Literal[
    "start", "text_delta", "reasoning_delta", "tool_call_delta", "tool_call", "notice", "usage", "finish", "done"
]


@dataclass(frozen=True, slots=True, repr=False)
class Event(Shown):
    """One step of a streamed turn; only the fields of its `type` are set.

    * start. text_delta, reasoning_delta: `text` is the new piece.
    * tool_call_delta: `text` is the new piece of the arguments of the call number `index`.
    * tool_call: `tool_call` is complete. notice: `notice`. usage: `usage`. finish: `finish`.
    * done: `output`; always the last, and only after the provider said that the turn is complete.
    """

    type: EventType
    text: str = field(default="", repr=False)
    index: int | None = None
    tool_call: ToolCall | None = None
    notice: Notice | None = None
    usage: Usage | None = None
    finish: Finish | None = None
    output: Output | None = None
