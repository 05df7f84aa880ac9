"""The made-up company's API, strict: every item that it issued must come back to the letter, where it stood."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from pollux_like.canonical import sha256
from pollux_like.testing.script import Answer, Call, Compaction, Part, Redacted, Refuse, Say, ServerTool, Think

WHY = {"stop": "done", "tool_calls": "tools", "length": "limit", "pause": "paused", "refusal": "declined",
       "content_filter": "withheld"}  # fmt: skip


class StandIn:
    """Answers in order; `bodies` are the requests."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.bodies: list[dict[str, Any]] = []
        self.issued: list[list[dict[str, Any]]] = []
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer), base_url="https://acme.invalid")

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.bodies.append(body)
        problem = self._problem(body["thread"])
        if problem:
            return httpx2.Response(400, text=problem)
        said = self.answers.pop(0)
        items = [self._item(part, at) for at, part in enumerate(said.parts)]
        self.issued.append(items)
        end = {"why": WHY[said.ended], "used": {"in": 7, "out": 5}}
        if not body["stream"]:
            return httpx2.Response(200, text=json.dumps({"items": items, **end}, indent=1))
        lines: list[Any] = []
        calls = 0
        for item in items:
            text = item.get("args", item.get("text", ""))
            lines.extend({"piece": [item["kind"], calls, text[at : at + 3]]} for at in range(0, len(text), 3))
            calls += item["kind"] == "call"
            lines.append({"item": item})
        return httpx2.Response(200, text="\n".join(json.dumps(line) for line in [*lines, end]))

    def _problem(self, thread: list[dict[str, Any]]) -> str | None:
        own = [entry["items"] for entry in thread if entry["who"] == "model"]
        issued = [items for items in self.issued if items]
        if issued and own[-len(issued) :] != issued:
            return "an item was changed, moved or left out"
        waiting: set[str] = set()
        for entry in thread:
            if entry["who"] == "tool":
                if entry["call"] not in waiting and None not in waiting:
                    return "a result without a call"
                waiting.discard(entry["call"])
            elif waiting - {None} and entry["who"] == "user":
                return "a call without a result"
            elif entry["who"] == "model":
                waiting = {item["id"] for item in entry["items"] if item["kind"] == "call"}
        return None

    def _item(self, part: Part, at: int) -> dict[str, Any]:
        seal = sha256(f"{len(self.bodies)}:{at}:{part}")
        match part:
            case Say(text):
                return {"kind": "text", "text": text}
            case Think(text):
                return {"kind": "thought", "seal": seal, "text": text}
            case Redacted():
                return {"kind": "dark", "seal": seal}
            case Call(name, arguments, id):
                return {"kind": "call", "name": name, "args": arguments, "id": id}
            case Refuse(text):
                return {"kind": "refusal", "text": text}
            case ServerTool(name, given, result):
                return {"kind": "hosted", "name": name, "given": given, "result": result}
            case Compaction(text):
                return {"kind": "summary", "seal": seal, "about": text}
