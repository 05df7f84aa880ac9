"""The recordings that are found: real exchanges with providers, one JSON file each, outside this repository.

A file holds `{"kinds", "exchanges": [{"request": {"path", "body"}, "response": {"status", "headers", "body"/"sse"}}]}`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("POLLUX_LIKE_RECORDINGS", "../shared/recordings"))
NAMES = sorted(f"{path.parent.name}/{path.name}" for path in FOLDER.glob("*/*.json"))
"""As "provider/file.json"; empty where the folder is absent."""


@dataclass(frozen=True)
class Exchange:
    """One request (None where only the answer was kept) and its answer. `where` names it in tables and messages."""

    where: str
    slug: str | None
    request: dict[str, Any] | None
    path: str
    status: int
    headers: dict[str, str]
    body: Any
    sse: tuple[str, ...] | None

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data of a recorded event stream."""
        lines = [line[5:].strip() for line in self.sse or () if line.startswith("data:")]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    def content(self) -> bytes:
        """The answer's bytes: the recorded lines as an event stream, or the recorded body as JSON."""
        if self.sse is not None:
            return ("\n".join(self.sse) + "\n\n").encode()
        return compact(self.body).encode()


def compact(value: Any) -> str:
    """JSON text in the key order of the recording, as the answers are served; what is verbatim is verbatim of this."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def load(name: str) -> tuple[set[str], list[Exchange]]:
    """What a recording shows (its `kinds`), and its exchanges in order."""
    data = json.loads((FOLDER / name).read_text())
    exchanges: list[Exchange] = []
    for index, one in enumerate(data["exchanges"]):
        request, response = one["request"], one["response"]
        assert "body" in response or "sse" in response, f"{name}: an answer of a kind that these tests do not replay"
        exchanges.append(
            Exchange(
                f"{name}#{one.get('slug', index)}",
                one.get("slug"),
                None if request is None else request["body"],
                "" if request is None else request["path"],
                response["status"],
                {key.lower(): value for key, value in response["headers"].items()},
                response.get("body"),
                tuple(response["sse"]) if "sse" in response else None,
            )
        )
    return set(data["kinds"]), exchanges
