"""The work that every contender does, in the same words, and the face by which it is driven. Standard library only.

A contender is a module of `benchmarks.contenders` with `WIRES`, the wires that it speaks, and
`async def connect(wire, url)`, which gives a `Client`. The address says what the server answers; see `benchmarks.server`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parent.parent

WIRES = ("responses", "chat", "anthropic", "gemini")
MODELS = {"responses": "gpt-5.2", "chat": "gpt-5.2", "anthropic": "claude-opus-4-6", "gemini": "gemini-2.5-flash"}
KEY = "benchmark-key"
MAX_TOKENS = 1_024
INSTRUCTIONS = "Answer in one sentence, and look the weather up before you do."
QUESTION = "What should I pack for a week that begins in Oslo and ends in Lisbon, by train all the way? " * 2
ANSWER = "Take a light jacket, shoes that stand the rain, and a book for the night trains. " * 2
TOOL = "get_weather"
ABOUT = "Get the weather of a city, hour by hour."
ARGUMENTS = {"city": "Oslo"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city."}},
    "required": ["city"],
    "additionalProperties": False,
}
RESULT = "06:00 3 C, rain; 07:00 4 C, rain; 08:00 4 C, clouds; 09:00 6 C, clouds; " * 4
"""A tool's result: about 300 characters."""

Mark = Callable[[], None]


def piece(number: int) -> str:
    """One delta of a stream. No two are the same: some libraries take repetition for a model gone wrong."""
    return f"word{number:04d} "


def streamed(deltas: int) -> str:
    """The text of a stream."""
    return "".join(map(piece, range(deltas)))


class Client(Protocol):
    """A contender that is connected to one address and speaks one wire. Each call gives the text that came last."""

    async def turn(self) -> str:
        """QUESTION, answered."""
        ...

    async def loop(self, turns: int, mark: Mark) -> str:
        """QUESTION, then tool calls answered with RESULT until an answer comes. Calls `mark` after every turn."""
        ...

    async def stream(self, mark: Mark) -> str:
        """QUESTION, answered in pieces. Calls `mark` at the first piece."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


def address(wire: str, url: str) -> str:
    """The full address to post to, for those who have no SDK."""
    tail = {"responses": "/v1/responses", "chat": "/v1/chat/completions", "anthropic": "/v1/messages",
            "gemini": f"/v1beta/models/{MODELS['gemini']}:generateContent"}[wire]  # fmt: skip
    return url + tail
