"""Disturbances: how a good reply goes wrong on its way — cut, ended early, garbled, slow, or an error in its middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pollux_like.canonical import dumps
from pollux_like.simulator.wire import Dialect, Fault

_FAILED = Fault(500)
_GARBAGE = "data: {this is no JSON\n\n"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens to one reply. Counts are complete server-sent events that still arrive.

    `cut_after`: the connection breaks. `cut_after_bytes`: it breaks after so many bytes of the body. `end_after`: the
    body ends cleanly, without its terminal event. `garble_after`: an event that is no JSON, then the rest.
    `error_after`: an error event, then the end. `error_body`: HTTP 200 with an error for a body. `double_finish`: the
    event that gives the reason for the end comes twice. `drop`: the connection breaks before any byte. `delay_s`:
    seconds before every chunk. Where the reply is not streamed, the counts mean "inside the body".
    """

    cut_after: int | None = None
    cut_after_bytes: int | None = None
    end_after: int | None = None
    garble_after: int | None = None
    error_after: int | None = None
    error_body: bool = False
    double_finish: bool = False
    drop: bool = False
    delay_s: float = 0.0
    error: Fault = _FAILED

    @property
    def named(self) -> list[str]:
        """The disturbances that were asked for, `delay_s` apart."""
        counts = ("cut_after", "cut_after_bytes", "end_after", "garble_after", "error_after")
        flags = ("error_body", "double_finish", "drop")
        return [n for n in counts if getattr(self, n) is not None] + [n for n in flags if getattr(self, n)]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The bytes to send, chunk by chunk, and whether the connection ends well, breaks, or breaks before any byte."""

    chunks: tuple[bytes, ...]
    ending: Literal["end", "cut", "drop"] = "end"
    json: bool = True
    delay_s: float = 0.0


def deliver(text: str | None, events: Sequence[str] | None, how: Disturbance, dialect: Dialect) -> Delivery:
    """The way of one reply: its body's text, or its events, under a disturbance."""
    if how.drop:
        return Delivery((), "drop")
    if how.error_body or (events is None and how.error_after is not None):
        return Delivery((dumps(dialect.error(how.error).body).encode(),), delay_s=how.delay_s)
    if events is None:
        return _whole((text or "").encode(), how)
    sent = list(events)
    ending: Literal["end", "cut"] = "end"
    if how.cut_after is not None:
        sent, ending = sent[: how.cut_after], "cut"
    elif how.end_after is not None:
        sent = sent[: how.end_after]
    elif how.garble_after is not None:
        sent.insert(how.garble_after, _GARBAGE)
    elif how.error_after is not None:
        sent = [*sent[: how.error_after], dialect.error_event(how.error)]
    elif how.double_finish:
        words = ('"finish_reason":"', '"finishReason":"')
        at = max((n for n, e in enumerate(sent) if any(word in e for word in words)), default=len(sent) - 1)
        sent.insert(at, sent[at])
    chunks = [chunk.encode() for chunk in sent]
    if how.cut_after_bytes is not None:
        chunks, ending = [b"".join(chunks)[: how.cut_after_bytes]], "cut"
    return Delivery(tuple(chunks), ending, json=False, delay_s=how.delay_s)


def _whole(body: bytes, how: Disturbance) -> Delivery:
    half = len(body) // 2
    if how.cut_after is not None or how.cut_after_bytes is not None:
        end = half if how.cut_after_bytes is None else how.cut_after_bytes
        return Delivery((body[:end],), "cut", delay_s=how.delay_s)
    if how.end_after is not None:
        return Delivery((body[:half],), delay_s=how.delay_s)
    if how.garble_after is not None:
        return Delivery((body[:half] + b"\x00garbled" + body[half:],), delay_s=how.delay_s)
    if how.delay_s:
        size = max(1, len(body) // 8)
        return Delivery(tuple(body[at : at + size] for at in range(0, len(body), size)), delay_s=how.delay_s)
    return Delivery((body,))
