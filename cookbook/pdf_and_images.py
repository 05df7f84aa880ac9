"""Questions about a PDF and a picture: one stands before the whole conversation, the other belongs to one turn.

Problem: documents are large and not portable; it has to be clear in which requests they are, and when they are gone.
Run: python -m cookbook run pdf_and_images [FILE.pdf]
Without a file it makes a PDF of one page, and always a picture of four pixels. The stand-in is a loopback server with
the wire of Anthropic, which refuses media that the API refuses.
Success check: the first request has the document and the picture, the second the document alone, and its output has
the notice `media_dropped`. The saved state holds the bytes of neither.
Real model: replace `config` by `Config("anthropic", "claude-haiku-4-5")`.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

from pollux_like import Config, Environment, Input, Source
from pollux_like.simulator import Simulator
from pollux_like.sync import interact
from pollux_like.testing import say


def one_page() -> bytes:
    """A PDF of one empty page, its table of offsets computed."""
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>",
    ]
    made, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(made))
        made += b"%d 0 obj%sendobj\n" % (number, body)
    table = b"0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return made + b"xref\n0 4\n%strailer<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (table, len(made))


def four_pixels() -> bytes:
    """A PNG of two by two red pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xff\0\0" * 2) * 2
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def kinds(body: dict[str, Any]) -> list[str]:
    """The types of all content blocks of a request, in order."""
    return [block["type"] for message in body["messages"] for block in message["content"] if isinstance(block, dict)]


def main(arguments: list[str]) -> None:
    """Two turns: both see the document, and the first alone sees the picture."""
    report = (
        Source.from_file(Path(arguments[0]))
        if arguments
        else Source.from_bytes(one_page(), mime_type="application/pdf", name="report.pdf")
    )
    picture = Source.from_bytes(four_pixels(), mime_type="image/png", name="logo.png")
    environment = Environment(instructions="You are an analyst.", sources=[report])
    with Simulator() as sim:
        config = Config("anthropic", "claude-haiku-4-5", api_key="sim-key", base_url=sim.base_url("anthropic"))
        sim.reply(say("The page is empty, and the logo is red."))
        first = interact(environment, Input("What is on them?", sources=[picture], history=[]), config)
        print(first.text, kinds(sim.requests[-1].body))

        assert first.continuation is not None  # history=[] opts in
        saved = json.dumps(first.continuation.to_jsonable())
        print(f"The bytes are in the saved state: {report.base64[:40] in saved or picture.base64[:40] in saved}")

        sim.reply(say("One page."))
        second = interact(environment, Input("How many pages?", continuation=first.continuation), config)
        print(second.text, kinds(sim.requests[-1].body), [notice.kind for notice in second.notices])


if __name__ == "__main__":
    main(sys.argv[1:])
