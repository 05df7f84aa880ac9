"""What a stored turn costs: append and load at turn 10, 100, 1,000 and 10,000, and the bytes of it.

    python -m benchmarks.store [URL ...]
    python -m benchmarks.store samples      what the report has of it, as JSON: SQLite, 1,000 turns

Turns are of 1 KB (512 characters from each side). Without URLs: a SQLite file, and the server that
POLLUX_LIKE_TEST_POSTGRES names, in a schema that is dropped at the end. "append" is one compare-and-set append of a turn; medians of about 40.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

import anyio

from pollux_like import Continuation, Environment, Message, Output, Usage
from pollux_like.continuation import extended
from pollux_like.store import Conversation, ConversationStore, Transaction, open_store
from pollux_like.turns import Stamp, Turn

ENV = Environment()
POINTS = (10, 100, 1_000, 10_000)
SAMPLE = 40


@functools.cache
def _text(number: int) -> str:
    return "".join(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}.{part}").hex for part in range(16))


def text(number: int) -> str:
    """512 characters that no compression would make one; there are 512 such texts."""
    return _text(number % 512)


def made(conversation: Conversation) -> Output:
    """The output of the next turn. Made by hand: a model would be sent the whole conversation every time."""
    number, before = conversation.turns, conversation.continuation
    said, answer = Message("user", text(number)), Message("assistant", text(-number))
    stamp = Stamp("scripted", "script", "memory:", "scripted", ENV.fingerprint(provider="scripted"))
    turn = Turn(stamp, (said,), (json.dumps({"type": "text", "text": answer.content}),))
    usage = Usage(input_tokens=256 * number, output_tokens=256)
    return Output(answer.content, continuation=extended(before, turn), messages=(said, answer), usage=usage)


async def appends(conversation: Conversation, upto: int) -> list[float]:
    """Milliseconds of each compare-and-set append."""
    took: list[float] = []
    while conversation.turns < upto:
        output = made(conversation)
        began = time.perf_counter()
        await conversation.append(output)
        took.append((time.perf_counter() - began) * 1000)
    return took


async def side_by_side(store: ConversationStore, long: Conversation, scope: str) -> tuple[list[float], list[float]]:
    """The same with a short conversation in between, so that both meet the same machine."""
    short = await store.create(scope=scope)
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(SAMPLE):
        took[0].extend(await appends(long, long.turns + 1))
        took[1].extend(await appends(short, short.turns + 1))
    await store.delete(short.id, scope=scope)
    return took


async def loads(store: ConversationStore, name: str, scope: str) -> float:
    """Milliseconds of a load with every check."""
    took: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        await store.load(name, scope=scope)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def wire_messages(state: Continuation) -> list[dict[str, str]]:
    """The conversation's messages as an application would save them once."""
    lines = [json.loads(line) for line in state.to_jsonable()["turns"]]
    messages = [message for line in lines for message in line["added"]]
    messages += [{"role": "assistant", "content": item["text"]} for line in lines for item in line["native"]]
    return messages


def wire_bytes(state: Continuation) -> int:
    """Bytes of the conversation's own JSON."""
    return len(json.dumps(wire_messages(state), separators=(",", ":")).encode())


async def sizes(store: ConversationStore, name: str, scope: str) -> dict[str, int]:
    """Bytes of the texts that are stored, and of the file where there is one."""

    def read(tx: Transaction) -> dict[str, int]:
        state = tx.one("SELECT SUM(LENGTH(state) + LENGTH(digest)) FROM pollux_like_turns")
        shown = tx.one(
            "SELECT SUM(LENGTH(shown)), SUM(LENGTH(fingerprint) + LENGTH(checksum)) FROM pollux_like_entries"
        )
        assert state is not None
        assert shown is not None
        return {"state": int(state[0]), "transcript": int(shown[0]), "digests": int(shown[1])}

    return await store.database.read(read)


async def measure(url: str) -> None:
    """One table."""
    print(url.partition("?")[0])
    scope = f"benchmark-{uuid.uuid4().hex}"
    async with open_store(url) as store:
        conversation = await store.create("talk", scope=scope)
        for point in POINTS:
            await appends(conversation, point)
            append, fresh = await side_by_side(store, conversation, scope)
            load = await loads(store, "talk", scope)
            print(
                f"  turn {conversation.turns:>6,}: append {statistics.median(append):6.2f} ms"
                f", in a new conversation at the same time {statistics.median(fresh):6.2f} ms; load {load:8.2f} ms"
                f" ({load * 1000 / conversation.turns:5.1f} us per turn)"
            )
            if point == 1_000:
                state = conversation.continuation
                assert state is not None
                wire, parts = wire_bytes(state), await sizes(store, "talk", scope)
                shares = ", ".join(f"{name} {size / wire:.2f}x" for name, size in parts.items())
                print(f"    bytes at {conversation.turns:,}: messages as JSON {wire:,}; {shares}")
                if url.startswith("sqlite"):
                    await store.database.scrub()
                    print(f"    file {Path(url.removeprefix('sqlite:///')).stat().st_size / wire:.2f}x")
        began = time.perf_counter()
        await conversation.fork()
        print(f"  fork of {conversation.turns:,} turns: {(time.perf_counter() - began) * 1000:.2f} ms")
        await store.delete("talk", scope=scope)


async def samples() -> list[tuple[str, str, str, dict[str, float]]]:
    """(case, medium, who, measured) on SQLite at 1,000 turns; "written" are the bytes that this process gave to the
    system for writing, the store's own files and all."""
    found: list[tuple[str, str, str, dict[str, float]]] = []
    scope = "benchmark"
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:///{folder}/talks.db") as store:
            conversation = await store.create("talk", scope=scope)
            began = written()
            for turns in (500, 1_000):
                await appends(conversation, turns)
                found.append(("store bytes", "SQLite", f"{turns:,} turns", {"written": written() - began}))
            long, new = await side_by_side(store, conversation, scope)
            found += [("store append", "SQLite", "turn 1,000", {"wall": took / 1000}) for took in long]
            found += [("store append", "SQLite", "new", {"wall": took / 1000}) for took in new]
            found.append(("store load", "SQLite", "ours", {"wall": await loads(store, "talk", scope) / 1000}))
            assert conversation.continuation is not None
            text = json.dumps(wire_messages(conversation.continuation))
            before = time.perf_counter()
            json.loads(text)
            found.append(("store load", "SQLite", "json", {"wall": time.perf_counter() - before}))
    return found


def written() -> int:
    """Bytes of all write calls of this process, as Linux counts them."""
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


async def main() -> None:
    """Every URL."""
    urls = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if not urls:
            urls = [f"sqlite:///{folder}/talks.db"]
        for url in urls:
            await measure(url)
        server = os.environ.get("POLLUX_LIKE_TEST_POSTGRES")
        if server is not None and not sys.argv[1:]:
            import psycopg

            name = f"benchmark_{uuid.uuid4().hex[:12]}"
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {name}".encode())
                try:
                    await measure(f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{name}")
                finally:
                    connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


if __name__ == "__main__":
    if sys.argv[1:] == ["samples"]:
        print(json.dumps(anyio.run(samples)))
    else:
        anyio.run(main)
