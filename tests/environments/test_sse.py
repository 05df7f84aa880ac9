"""Server-sent events: exact text through every cut, and streams of other writers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollux_like.environments.sse import PIECE, SSE, pieces, read, written

pytestmark = pytest.mark.anyio


async def of(*chunks: str) -> AsyncGenerator[str, None]:
    for chunk in chunks:
        yield chunk


async def seen(*chunks: str) -> list[SSE]:
    return [event async for event in read(of(*chunks))]


@given(
    st.text(alphabet=st.sampled_from(' \t\n"\\a\u3000\u00a0\u0085\u2028\u00e9\U0001f600'), max_size=40),
    st.integers(0, 40),
)
@settings(max_examples=200)
def test_no_piece_begins_with_what_a_client_strips(text: str, shift: int) -> None:
    whole = "x" * (PIECE - shift) + text + " " * PIECE * 2
    cut = pieces(json.dumps({"text": whole}, separators=(",", ":")))
    assert all(piece == piece.lstrip() for piece in cut)
    assert json.loads("".join(cut)) == {"text": whole}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_line_ends_and_chunks_of_every_size(end: str) -> None:
    text = end.join(
        [
            ": hello",
            "id: 7",
            "event: chunk",
            "data:  two",
            "data:",
            "data: x\u2028y",
            "",
            "retry: 5",
            "event",
            "data",
            "",
            "",
        ]
    )
    expected = [SSE("chunk", " two\n\nx\u2028y"), SSE("message", "")]
    for size in (1, 2, 3, 7, len(text)):
        assert await seen(*(text[at : at + size] for at in range(0, len(text), size))) == expected, size


async def test_an_event_without_its_empty_line_is_none() -> None:
    assert await seen("event: end\ndata: {}\n") == []


async def test_what_is_written_is_read() -> None:
    assert await seen(written("error", "a\n  b\r\nc").decode()) == [SSE("error", "a\n  b\nc")]


async def test_an_endless_line_is_refused() -> None:
    with pytest.raises(ValueError, match="a line has more than"):
        await seen(*["data: " + "x" * 65536] * 20)
