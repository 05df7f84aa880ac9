"""A server of another's making: it answers what a test says, and counts what it was asked."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from pollux_like.environments import EnvironmentClient

from .conftest import QUICK

OLD_TOOLS = {"tools": [{"name": "look", "description": "", "input_schema": None}]}
NEW_TOOLS = {**OLD_TOOLS, "message_block_types": ["text", "image", "hologram"]}


def sse(*events: tuple[str, str], end: str = "\n\n") -> httpx2.Response:
    """A stream as another server may write it."""
    text = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events)
    return httpx2.Response(200, text=text[: len(text) - 2] + end, headers={"content-type": "text/event-stream"})


class Scripted:
    """Answers by route; a list is used up from its head, its last entry stays. Counts what it was asked."""

    def __init__(self, **routes: Any) -> None:
        self.routes: dict[str, Any] = {
            "list_environments": ["env"], "create": {"sid": "x"}, "delete": {"sid": "x"}, "ping": {"status": "ok"},
            "task_tools": NEW_TOOLS, "prompt": [{"type": "text", "text": "Late?"}], **routes,
        }  # fmt: skip
        self.asked: list[tuple[str, dict[str, Any], httpx2.Headers]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        name = request.url.path.rsplit("/", 1)[1]
        self.asked.append((name, json.loads(request.content or b"{}"), request.headers))
        answer = self.routes.get(name, httpx2.Response(404, json={"detail": "Not Found"}))
        if isinstance(answer, list) and answer and isinstance(answer[0], (httpx2.Response, Exception)):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx2.Response):  # one response cannot be read twice
            return httpx2.Response(answer.status_code, content=answer.content, headers=answer.headers)
        return httpx2.Response(200, json=answer)

    def number(self, name: str) -> int:
        return [asked for asked, _, _ in self.asked].count(name)

    def client(self) -> EnvironmentClient:
        made = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        return EnvironmentClient("http://far", client=made, patience=QUICK)


def error(status: int, detail: str = "no", **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json={"detail": detail}, headers=headers)
