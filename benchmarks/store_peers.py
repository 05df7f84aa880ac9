"""What a stored turn costs here and in the session stores of others, in one run, on one disk, at one durability.

    python -m benchmarks.store_peers [--json FILE] [NAME ...]

Turns are of 1 KB (512 characters from each side). Every store writes SQLite with `synchronous = FULL`, which is what
each of the others leaves at SQLite's default: an acknowledged turn survives the loss of power. Each peer is installed
in an environment of its own in `benchmarks/.cache/stores`, which git ignores; one that cannot be is reported. Measured:
milliseconds of an append (median of the 30 turns behind each point) and of a load of the whole conversation (median of
3), the bytes of the file against the messages as JSON once, and appends per second of CROWD conversations at once, where
the store has an asynchronous face. A peer stops after BUDGET_S or MOST_BYTES.

What counts as a turn: ours is one compare-and-set append with state and transcript; openai-agents one `add_items` of
two messages; langgraph one `invoke` of a graph of one node, since its saver is used in no other way; pydantic-ai ships
a store in memory only, so the road of its documentation: `new_messages_json()` as one row.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

POINTS = (10, 100, 1_000, 10_000)
SAMPLE = 30
BUDGET_S = 120.0
MOST_BYTES = 1_000_000_000
CROWD = 16
CROWD_TURNS = 100
CACHE = Path(__file__).parent / ".cache" / "stores"

PEERS: dict[str, tuple[str, ...]] = {
    "openai-agents": ("openai-agents>=0.24,<1",),
    "langgraph": ("langgraph>=1.2,<2", "langgraph-checkpoint-sqlite>=3.1,<4"),
    "langgraph-delta": ("langgraph>=1.2,<2", "langgraph-checkpoint-sqlite>=3.1,<4"),
    "pydantic-ai": ("pydantic-ai-slim>=2.60,<3",),
}
"""What is installed for each; two that install the same share an environment."""


@functools.cache
def _text(number: int) -> str:
    return "".join(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}.{part}").hex for part in range(16))


def text(number: int) -> str:
    """512 characters that no compression would make one; there are 512 such texts."""
    return _text(number % 512)


def messages_as_json(turns: int) -> int:
    """Bytes of the conversation as an application would save it once."""
    one = [{"role": "user", "content": text(1)}, {"role": "assistant", "content": text(-1)}]
    return turns * (len(json.dumps(one, separators=(",", ":"))) - 1) + 1


async def ours(file: str, sealer: Any = None) -> tuple[Callable[[int], Any], Callable[[], Any], Callable[[], Any]]:
    """Append, load, close."""
    from benchmarks.store import made
    from pollux_like.store import open_store

    store = open_store(f"sqlite:///{file}", sealer=sealer)
    conversation = await store.create("talk", scope="benchmark")

    async def append(number: int) -> None:
        await conversation.append(made(conversation))

    async def load() -> int:
        return (await store.load("talk", scope="benchmark")).turns

    return append, load, store.aclose


async def ours_sealed(file: str) -> Any:
    """The same, encrypted at rest."""
    from pollux_like import ContinuationSealer

    return await ours(file, ContinuationSealer([bytes(32)]))


async def openai_agents(file: str) -> Any:
    """SQLiteSession."""
    from agents import SQLiteSession

    session = SQLiteSession("talk", file)

    async def append(number: int) -> None:
        said, answered = text(number), text(-number)
        await session.add_items([{"role": "user", "content": said}, {"role": "assistant", "content": answered}])

    async def load() -> int:
        return len(await session.get_items()) // 2

    return append, load, session.close


async def langgraph(file: str, *, delta: bool = False) -> Any:
    """SqliteSaver under the smallest graph; with `delta` the channel that stores what is new, which is in beta."""
    from typing import Annotated, TypedDict

    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph, add_messages

    channel: Any = add_messages
    if delta:
        from langgraph.channels.delta import DeltaChannel

        def reduced(state: list[Any], writes: list[Any]) -> list[Any]:
            return [*state, *(message for write in writes for message in write)]

        channel = DeltaChannel(reduced)
    state = TypedDict("state", {"messages": Annotated[list[AnyMessage], channel]})  # noqa: UP013
    connection = sqlite3.connect(file, check_same_thread=False)
    graph = StateGraph(state)
    graph.add_node("model", lambda state: {"messages": [AIMessage(text(-len(state["messages"])))]})
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    compiled = graph.compile(checkpointer=SqliteSaver(connection))
    thread: Any = {"configurable": {"thread_id": "talk"}}

    def append(number: int) -> None:
        compiled.invoke({"messages": [HumanMessage(text(number))]}, thread)

    def load() -> int:
        return len(compiled.get_state(thread).values["messages"]) // 2

    return append, load, connection.close


async def langgraph_delta(file: str) -> Any:
    """See above."""
    return await langgraph(file, delta=True)


async def pydantic_ai(file: str) -> Any:
    """The table of the chat application in its documentation."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart

    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_list TEXT)")
    connection.commit()

    def append(number: int) -> None:
        said, answered = UserPromptPart(text(number)), TextPart(text(-number))
        new = ModelMessagesTypeAdapter.dump_json([ModelRequest([said]), ModelResponse([answered], model_name="model")])
        connection.execute("INSERT INTO messages (message_list) VALUES (?)", (new,))
        connection.commit()

    def load() -> int:
        rows = connection.execute("SELECT message_list FROM messages ORDER BY id").fetchall()
        return len([message for row in rows for message in ModelMessagesTypeAdapter.validate_json(row[0])]) // 2

    return append, load, connection.close


STORES: dict[str, Callable[[str], Any]] = {
    "pollux_like": ours,
    "pollux_like sealed": ours_sealed,
    "openai-agents": openai_agents,
    "langgraph": langgraph,
    "langgraph-delta": langgraph_delta,
    "pydantic-ai": pydantic_ai,
}


async def crowd_of_ours(file: str, sealer: Any = None) -> tuple[list[Callable[[int], Any]], Callable[[], Any]]:
    """Appends of CROWD conversations in one store."""
    from benchmarks.store import made
    from pollux_like.store import open_store

    store = open_store(f"sqlite:///{file}", sealer=sealer)
    talks = [await store.create(f"{number}", scope="benchmark") for number in range(CROWD)]
    return [lambda number, talk=talk: talk.append(made(talk)) for talk in talks], store.aclose


async def crowd_sealed(file: str) -> Any:
    """The same, encrypted at rest."""
    from pollux_like import ContinuationSealer

    return await crowd_of_ours(file, ContinuationSealer([bytes(32)]))


async def crowd_of_agents(file: str) -> Any:
    """Sessions in one file."""
    from agents import SQLiteSession

    sessions = [SQLiteSession(f"{number}", file) for number in range(CROWD)]

    def add(session: Any, number: int) -> Any:
        said, answered = {"role": "user", "content": text(number)}, {"role": "assistant", "content": text(-number)}
        return session.add_items([said, answered])

    return [functools.partial(add, session) for session in sessions], lambda: [one.close() for one in sessions]


CROWDS: dict[str, Callable[[str], Any]] = {
    "pollux_like": crowd_of_ours,
    "pollux_like sealed": crowd_sealed,
    "openai-agents": crowd_of_agents,
}


async def crowded(name: str) -> float | None:
    """Appends per second of all together."""
    if name not in CROWDS:
        return None
    with tempfile.TemporaryDirectory() as folder:
        appends, close = await CROWDS[name](f"{folder}/talks.db")

        async def work(append: Callable[[int], Any]) -> None:
            for number in range(CROWD_TURNS):
                await append(number)

        await asyncio.gather(*(append(0) for append in appends))  # threads and connections are there
        began = time.perf_counter()
        await asyncio.gather(*map(work, appends))
        took = time.perf_counter() - began
        await _done(close())
        return CROWD * CROWD_TURNS / took


async def _done(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def size(file: str) -> int:
    """Bytes of the database and of its log, the log merged first."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return sum(os.path.getsize(file + end) for end in ("", "-wal") if os.path.exists(file + end))


async def measured(name: str) -> dict[str, Any]:
    """The points that were reached."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/talks.db"
        append, load, close = await STORES[name](file)
        began, turns, stopped = time.monotonic(), 0, None
        for point in POINTS:
            took: list[float] = []
            while turns < point + SAMPLE and stopped is None:
                turns += 1
                before = time.perf_counter()
                await _done(append(turns))
                if turns > point:
                    took.append((time.perf_counter() - before) * 1000)
                if turns % 10 == 0 and (time.monotonic() - began > BUDGET_S or os.path.getsize(file) > MOST_BYTES):
                    stopped = turns
            if stopped is not None:
                break
            loads: list[float] = []
            for _ in range(3):
                before = time.perf_counter()
                assert await _done(load()) == turns
                loads.append((time.perf_counter() - before) * 1000)
            found.append({
                "turn": point, "append_ms": statistics.median(took), "load_ms": statistics.median(loads),
                "bytes": size(file), "times": size(file) / messages_as_json(turns),
            })  # fmt: skip
        await _done(close())
    return {"points": found, "stopped_at": stopped, "crowd_per_s": await crowded(name)}


def python_of(name: str) -> tuple[str | None, str]:
    """(interpreter, or None) and the versions or the reason."""
    wanted = PEERS[name]
    folder = CACHE / "-".join(word.split(">")[0] for word in wanted)
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, f"cannot be installed: {done.stderr.strip().splitlines()[-1][:200]}"
        (folder / ".installed").touch()
    code = f"import importlib.metadata as m; print(', '.join(n + ' ' + m.version(n) for n in {[w.split('>')[0] for w in wanted]!r}))"
    return str(python), subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def run(name: str) -> dict[str, Any]:
    """One store, measured in a process and environment of its own."""
    interpreter, version = python_of(name) if name in PEERS else (sys.executable, "this tree")
    if interpreter is None:
        return {"version": version, "points": [], "stopped_at": None}
    command = [interpreter, "-m", "benchmarks.store_peers", "--one", name]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        return {"version": f"{version}: {done.stderr.strip().splitlines()[-1][:200]}", "points": [], "stopped_at": None}
    return {"version": version, **json.loads(done.stdout.splitlines()[-1])}


def table(results: dict[str, dict[str, Any]]) -> str:
    """Markdown: append and load in milliseconds, and the file in times of the messages as JSON."""
    points_ = " | ".join(f"turn {point:,}" for point in POINTS)
    lines = [f"| Store | {points_} | {CROWD} at once |", "|---" * (len(POINTS) + 2) + "|"]
    for name, result in results.items():
        points = {point["turn"]: point for point in result["points"]}
        cells = [
            f"{points[point]['append_ms']:.2f} / {points[point]['load_ms']:.1f} ms, {points[point]['times']:.1f}x"
            if point in points
            else (f"stopped at {result['stopped_at']:,}" if result["stopped_at"] else "-")
            for point in POINTS
        ]
        crowd = result.get("crowd_per_s")
        cells.append("-" if crowd is None else f"{crowd:,.0f} appends/s")
        lines.append(f"| {name} ({result['version']}) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """All stores, or those that are named."""
    file = words.pop(words.index("--json") + 1) if "--json" in words else None
    names = [word for word in words if word != "--json"] or list(STORES)
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = run(name)
    if file is not None:
        Path(file).write_text(json.dumps(results, indent=2), "utf-8")
    print("append / load, and the bytes of the file in times of the messages as JSON\n")
    print(table(results))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(asyncio.run(measured(sys.argv[2]))))
    else:
        main(sys.argv[1:])
