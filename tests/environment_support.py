"""A harbour to test with: conversations of every kind, tools that wait, fail, end and leave traces; and a bad way there."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

import httpx2
from pydantic import BaseModel

from pollux_like.environments import (
    Environment,
    GroupCandidate,
    ImageBlock,
    JSONObject,
    Message,
    TextBlock,
    ToolOutput,
    ToolSpec,
    terminal,
    tool,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "blocks": [{"type": "text", "text": "You work at the harbour."}]},
    {"role": "user", "blocks": [{"type": "text", "text": "Is the ferry late?"}]},
    {"role": "assistant", "blocks": [
        {"type": "reasoning", "text": "The board knows."},
        {"type": "tool_call", "id": "f1", "name": "board", "input": {"pier": 4}}]},
    {"role": "user", "blocks": [
        {"type": "tool_result", "tool_call_id": "f1", "blocks": [{"type": "text", "text": "10 min late"}]},
        {"type": "text", "text": "So when does it sail?"}]},
]  # fmt: skip


class Pier(BaseModel):
    pier: int


class Said(BaseModel):
    text: str


class Harbour(Environment):
    """Its task is `{"conversation": [...], "hidden": bool}`; `log` is what happened to every instance."""

    log: list[str]

    def __init__(self, task_spec: JSONObject | None = None, secrets: Mapping[str, str] | None = None) -> None:
        super().__init__(task_spec, secrets)
        self.log = []
        INSTANCES.append(self)

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train", "test", "odd"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{"id": f"{split}-{n}", "conversation": CONVERSATION} for n in range(3)]

    def setup(self) -> None:
        self.log.append("setup")
        if "setup" in self.task_spec:
            raise RuntimeError(str(self.task_spec["setup"]))

    async def teardown(self) -> None:
        self.log.append("teardown")

    def get_messages(self) -> list[Message]:
        return [Message.model_validate(message) for message in self.task_spec["conversation"]]

    @tool
    def board(self, args: Pier) -> ToolOutput:
        """Read the board of a pier."""
        self.log.append(f"board {args.pier}")
        return ToolOutput(blocks=[TextBlock(text=f"pier {args.pier}: 10 min late")], reward=0.25)

    @tool
    async def echo(self, args: Said) -> ToolOutput:
        """Say the same."""
        self.log.append("echo")
        return ToolOutput(blocks=[TextBlock(text=args.text)], metadata={"length": len(args.text)})

    @tool
    async def camera(self) -> ToolOutput:
        """Look."""
        return ToolOutput(blocks=[TextBlock(text="frame"), ImageBlock(data=PIXEL, mimeType="image/png")])

    @tool(concurrent=True)
    async def wait(self, args: Said) -> ToolOutput:
        """Wait for the gate of this name."""
        self.log.append(f"wait {args.text}")
        await asyncio.to_thread(GATES[args.text].wait)
        self.log.append(f"waited {args.text}")
        return ToolOutput(blocks=[TextBlock(text="opened")])

    @tool
    def block(self, args: Said) -> ToolOutput:
        """Wait for the gate of this name, in a thread that nobody can stop."""
        self.log.append(f"block {args.text}")
        GATES[args.text].wait()
        self.log.append(f"blocked {args.text}")
        return ToolOutput(blocks=[])

    @tool
    def storm(self) -> ToolOutput:
        """Fail."""
        raise RuntimeError("a storm:\n    the pier is closed")

    @tool(exclusive=True)
    def sail(self) -> ToolOutput:
        """End the episode."""
        return ToolOutput(blocks=[TextBlock(text="sailed")], reward=1.0, finished=True)

    @tool(shared=False)
    def lighthouse(self) -> ToolOutput:
        """Only in tasks that name it."""
        return ToolOutput(blocks=[TextBlock(text="light")])

    @terminal
    @tool
    def answer(self, args: Said) -> ToolOutput:
        """Take the answer."""
        return ToolOutput(blocks=[], reward=1.0 if "10:10" in args.text else 0.0, finished=True)

    def list_task_tools(self) -> list[str | ToolSpec]:
        return ["lighthouse"] if self.task_spec.get("lighthouse") else []

    def score_group(self, candidates: Any) -> list[float]:
        given: list[GroupCandidate] = candidates
        return [float(len(one.messages[-1].blocks)) for one in given]


class Prompted(Environment):
    """A prompt, and no conversation."""

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text="Name a river."), TextBlock(text="  Then a lake.")]

    @classmethod
    async def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{}]


INSTANCES: list[Harbour] = []
GATES: dict[str, threading.Event] = {}


TASK = {"task_spec": {"conversation": CONVERSATION}}


def opened(http: httpx2.Client, sid: str, body: Any = TASK) -> dict[str, str]:
    """The headers of a new session."""
    headers = {"X-Session-ID": sid}
    answer = http.post("/create", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return headers


def events(answer: httpx2.Response) -> list[tuple[str, str]]:
    """The events of a stream; comments left out."""
    found: list[tuple[str, str]] = []
    for block in answer.text.split("\r\n\r\n"):
        lines = [line for line in block.split("\r\n") if line and not line.startswith(":")]
        if lines:
            data = [line.removeprefix("data: ") for line in lines if line.startswith("data:")]
            found.append((lines[0].removeprefix("event: "), "\n".join(data)))
    return found


def called(http: httpx2.Client, headers: dict[str, str], name: str, **given: Any) -> dict[str, Any]:
    """The result document of a call."""
    found = events(http.post("/call", json={"name": name, "input": given}, headers=headers))
    assert found[-1][0] == "end", found
    return json.loads("".join(data for event, data in found if event in ("chunk", "end")))


class Cutter:
    """A TCP way to a server that breaks connections: `rule` sees the last request line and the bytes of an answer, and
    says how many of them pass before the cut (None: all, and no cut)."""

    def __init__(self, port: int, rule: Callable[[bytes, bytes], int | None]) -> None:
        self._target = port
        self._rule = rule
        self.cuts = 0
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._through, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop.wait()

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        request = [b""]

        async def up() -> None:
            while data := await reader.read(65536):
                if data.startswith((b"GET ", b"POST ")):
                    request[0] = data.split(b"\r\n", 1)[0]
                far_writer.write(data)
                await far_writer.drain()

        async def down() -> None:
            while data := await far_reader.read(65536):
                passing = self._rule(request[0], data)
                writer.write(data if passing is None else data[:passing])
                await writer.drain()
                if passing is not None:
                    self.cuts += 1
                    return

        tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where the way itself is closed
            for task in tasks:
                task.cancel()
            for one in (writer, far_writer):
                one.transport.abort()
            await asyncio.gather(*tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"
