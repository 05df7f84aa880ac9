"""A loopback server cheap enough not to matter: canned bytes over keep-alive, in a process of its own.

The address says what it answers: `/text/...` with text, `/loop-N/...` with a tool call until the request holds N - 1
results and with text then, `/stream-N/...` with N deltas. The rest of the path is the vendor's own and says the wire.
`GET /last` gives the newest request body back.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import socket
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import wires
from benchmarks.work import ROOT

_numbers = itertools.count(1)
_last = b""


def wire_of(path: str) -> str:
    """The wire that a vendor's path belongs to. Raises ValueError for a path of none."""
    bare = path.partition("?")[0]
    for end, wire in (("/responses", "responses"), ("/chat/completions", "chat"), ("/messages", "anthropic")):
        if bare.endswith(end):
            return wire
    if bare.endswith((":generateContent", ":streamGenerateContent")):
        return "gemini"
    raise ValueError(path)


def _head(status: str, kind: str, more: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}\r\n\r\n".encode()


def _whole(body: bytes) -> bytes:
    return _head("200 OK", "application/json", f"content-length: {len(body)}") + body


@functools.cache
def _answers(wire: str) -> tuple[bytes, bytes]:
    """Canned responses: one of text, one that calls the tool."""
    texts = (wires.compact(answer(wire)).encode() for answer in (wires.text_answer, wires.call_answer))
    text, call = map(_whole, texts)
    return text, call


@functools.cache
def _streamed(wire: str, deltas: int) -> bytes:
    """A canned stream, an HTTP chunk for each event, as the vendors send it."""
    chunks = (event.encode() for event in wires.sse(wire, deltas))
    framed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return _head("200 OK", "text/event-stream", "transfer-encoding: chunked") + framed + b"0\r\n\r\n"


def answer(path: str, body: bytes) -> bytes:
    """The response to one request, complete."""
    global _last
    if path == "/last":
        return _whole(_last)
    _last = body
    kind, _, count = path[1:].partition("/")[0].partition("-")
    try:
        wire = wire_of(path)
        if kind == "stream":
            return _streamed(wire, int(count))
        text, call = _answers(wire)
        canned = text if kind == "text" or wires.results_in(wire, body) >= int(count) - 1 else call
    except ValueError:
        return _head("404 Not Found", "application/json", "content-length: 2") + b"{}"
    return canned.replace(wires.NUMBER.encode(), b"%012d" % next(_numbers))


class Connection(asyncio.Protocol):
    """One connection; requests have a content-length."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = 0
        """Bytes that the request under way needs in all, once its head is there."""
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answers go out at once."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        self._buffer += data
        while True:
            if not self._wanted:
                end = self._buffer.find(b"\r\n\r\n") + 4
                if end < 4:
                    return
                self._head = bytes(self._buffer[:end])
                _, found, rest = self._head.lower().partition(b"\r\ncontent-length:")
                self._wanted = end + (int(rest.partition(b"\r\n")[0]) if found else 0)
            if len(self._buffer) < self._wanted:
                return
            body = bytes(self._buffer[len(self._head) : self._wanted])
            del self._buffer[: self._wanted]
            self._wanted = 0
            self._transport.write(answer(self._head.split(b" ", 2)[1].decode(), body))


async def serve() -> None:
    """Print the port and serve until standard input ends: the server never outlives who started it."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=2_048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The server's address, while it runs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


if __name__ == "__main__":
    asyncio.run(serve())
