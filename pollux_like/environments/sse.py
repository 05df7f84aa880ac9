"""Server-sent events of the protocol, written for every client that speaks it and read to the letter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from pollux_like.environments.runs import Run

PIECE = 4096
"""Characters of one `chunk` event, as the protocol has it."""
MAX_LINE = 1024 * 1024
"""Longest line that is read, in characters; the protocol's own lines have some 4,100."""


MAX_STREAM = 256 * 1024 * 1024
"""Most characters of one stream that are read."""


class TooLong(ValueError):  # says what is so
    """A line above MAX_LINE, or a stream above MAX_STREAM."""


@dataclass(frozen=True, slots=True)
class SSE:
    """One event; `data` lines joined by line feeds."""

    event: str
    data: str


def written(event: str, data: str) -> bytes:
    """One event as bytes. Line breaks in `data` become several data lines."""
    lines = data.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join((f"event: {event}\r\n", *(f"data: {line}\r\n" for line in lines), "\r\n")).encode()


def pieces(text: str) -> list[str]:
    """ASCII JSON text in pieces, none of which begins with a blank.

    The OpenReward client removes white space at the head of every data line, so a blank there is written as the
    escape `\\u0020`, which is the same JSON. In compact JSON a blank stands within a string only.
    """
    cut = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    return [f"\\u0020{piece[1:]}" if piece.startswith(" ") else piece for piece in cut]


async def stream(run: Run, ping_s: float) -> AsyncGenerator[bytes, None]:
    """A run as events: `task_id`, comments while it goes on, then its result in pieces, or `error`."""
    yield written("task_id", run.task_id)
    while not run.ended.is_set():
        try:
            await asyncio.wait_for(run.ended.wait(), ping_s)
        except TimeoutError:
            yield b": ping\r\n\r\n"
    if run.result is None:
        yield written("error", run.error or "The call failed.")
        return
    *chunks, last = pieces(run.result)
    for chunk in chunks:
        yield written("chunk", chunk)
    yield written("end", last)


async def events(lines: AsyncIterator[str]) -> AsyncGenerator[SSE, None]:
    """Events out of lines without their ends, by the rules of the HTML standard: one blank after the colon is cut.

    An event that no empty line ends is none: the stream was cut. Comments, `id` and `retry` are passed over.
    Raises TooLong above MAX_LINE.
    """
    name, data = "", list[str]()
    async for line in lines:
        if len(line) > MAX_LINE:
            raise _line_too_long()
        if not line:
            if name or data:
                yield SSE(name or "message", "\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)


def _line_too_long() -> TooLong:
    return TooLong(f"a line has more than {MAX_LINE} characters")


async def split_lines(chunks: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """Lines ended by CRLF, LF or CR and nothing else: text may hold the other line breaks of Unicode.

    Raises TooLong above MAX_LINE and MAX_STREAM.
    """
    rest, total = "", 0
    async for chunk in chunks:
        total += len(chunk)
        if total > MAX_STREAM:
            raise TooLong(f"the stream has more than {MAX_STREAM} characters")
        rest += chunk
        held = rest.endswith("\r")  # half of a CRLF, perhaps
        whole = rest[:-1] if held else rest
        *lines, rest = whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            yield line
        if held:
            rest += "\r"
        if len(rest) > MAX_LINE:
            raise _line_too_long()
    if rest.endswith("\r"):
        yield rest[:-1]


async def read(chunks: AsyncGenerator[str, None]) -> AsyncGenerator[SSE, None]:
    """The events of a body; all of it is closed with them."""
    async with aclosing(chunks), aclosing(split_lines(chunks)) as lines, aclosing(events(lines)) as found:
        async for event in found:
            yield event
