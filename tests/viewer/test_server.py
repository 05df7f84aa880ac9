"""The server without a browser: who is let in, what is said, and what never is."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import anyio
import pytest
from starlette.responses import PlainTextResponse
from viewer import talks
from viewer.conftest import Viewer

from pollux_like import ConfigurationError
from pollux_like.errors import StoreUnavailableError
from pollux_like.store import ConversationStore, Reader

pytestmark = pytest.mark.anyio
READS = ("store", "conversations", "search", "conversation", "turns", "usage", "find", "tree", "playground")
PATHS = ["/", "/page/main.js", "/playground/", "/nothing", *(f"/api/{name}" for name in READS)]
KEY = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "QUERY"])
async def test_nothing_but_reading_is_answered(store: ConversationStore, method: str) -> None:
    viewer = Viewer(store)
    for path in PATHS:
        if path != "/playground/":
            response = await viewer.ask(path, method=method)
            assert (response.status_code, response.headers["allow"]) == (405, "GET"), path


async def test_every_answer_is_held_to_a_strict_policy(store: ConversationStore) -> None:
    viewer = Viewer(store)
    for known in (True, False):
        for path in PATHS:
            headers = (await viewer.ask(path, known=known)).headers
            policy = headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';"), path
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            kept = (headers["cache-control"], headers["x-content-type-options"], headers["referrer-policy"])
            assert kept == ("no-store", "nosniff", "no-referrer"), path
            assert headers["cross-origin-resource-policy"] == "same-origin"


def test_the_page_is_small_and_names_no_other_host() -> None:
    folder = resources.files("pollux_like.viewer") / "page"
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if "." in file.name}
    assert {"index.html", "main.js", "style.css"} <= set(texts)
    assert sum(len(text.encode()) for text in texts.values()) < 64_000
    for name, text in texts.items():
        assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
        assert len(text.splitlines()) <= 350, name
    assert not re.findall(
        r"\son\w+=|<style|style=|<script(?! type=\"module\" src=\"/page/main.js\")", texts["index.html"]
    )


async def test_lists_are_paged_and_scopes_are_kept_apart(store: ConversationStore) -> None:
    for number in range(103):
        await store.create(f"talk-{number}", scope="a", title=f"Number {number}")
    await store.create("other", scope="b")
    viewer = Viewer(store)
    assert (await viewer.api("store"))["scopes"] == [
        {"name": "a", "conversations": 103},
        {"name": "b", "conversations": 1},
    ]
    ids: list[str] = []
    before = None
    for size in (50, 50, 3):
        page = await viewer.api("conversations", scope="a", **({} if before is None else {"before": before}))
        assert len(page["conversations"]) == size
        ids += [one["id"] for one in page["conversations"]]
        before = page["before"]
    assert before is None
    assert ids == [f"talk-{number}" for number in reversed(range(103))]
    alone = Viewer(store, scope="b")
    assert [one["id"] for one in (await alone.api("conversations"))["conversations"]] == ["other"]
    assert (await alone.api("store"))["scopes"] == [{"name": "b", "conversations": None}]
    for name in READS[1:8]:
        refused = await alone.ask(f"/api/{name}", scope="a", id="talk-1", words="x")
        assert refused.status_code == 400, name


async def test_a_conversation_is_told_turn_by_turn(store: ConversationStore) -> None:
    await talks.booking(store)
    viewer = Viewer(store)
    seen = await viewer.api("conversation", scope="default", id="support-4711")
    assert (seen["turns"], seen["open_calls"], seen["input"]) == (6, [{"id": "call_3", "name": "book"}], None)
    assert json.loads(seen["metadata"])["big"] == 12345678901234567890
    turns = (await viewer.api("turns", scope="default", id="support-4711"))["turns"]
    assert [turn["finish"] for turn in turns] == ["tool_calls", "stop", "tool_calls", "stop", "refusal", "tool_calls"]
    assert turns[0]["messages"][1]["calls"] == [
        {"id": "call_1", "name": "get_weather", "text": '{"city":"Lisbon","units":"metric"}', "chars": 34}
    ]
    result = (await viewer.api("turns", scope="default", id="support-4711", first=2, last=2))["turns"][0]["messages"][0]
    assert (result["role"], result["name"], result["id"]) == ("tool", "get_weather", "call_1"), (
        "named by the turn before"
    )
    await talks.waiting(store, "waits", "Are you there?")
    waits = await viewer.api("conversation", scope="default", id="waits")
    assert waits["input"]["content"]["text"] == "Are you there?"


async def test_turns_come_in_pages_that_are_bounded(store: ConversationStore) -> None:
    await talks.long(store, "long", 1234)
    await talks.hostile(store)
    viewer = Viewer(store)
    page = await viewer.api("turns", scope="default", id="long", first=1200)
    assert [turn["seq"] for turn in page["turns"]] == list(range(1200, 1235))
    assert (await viewer.api("turns", scope="default", id="long", first=2000))["turns"] == []
    for query in (
        {"first": 1, "last": 101},
        {"first": 0},
        {"first": 3, "last": 2},
        {"first": "x"},
        {"first": "9" * 30},
        {"first": -1},
        {"first": "²"},
    ):
        assert (await viewer.ask("/api/turns", scope="default", id="long", **query)).status_code == 400, query
    usage = (await viewer.api("usage", scope="default", id="long"))["usage"]
    assert len(usage) == 1234
    assert usage[99] == [112, 10, 0, 30, 15]
    large = await viewer.ask("/api/turns", scope="default", id=talks.HOSTILE_ID)
    assert len(large.content) < 200_000, "long texts are cut"
    whole = await viewer.api("turns", scope="default", id=talks.HOSTILE_ID, first=2, last=2, whole=1)
    assert len(whole["turns"][0]["messages"][1]["text"]) == 1_000_000


async def test_words_are_found_and_lead_to_their_turn(store: ConversationStore) -> None:
    await talks.booking(store)
    await talks.long(store, "long", 1100)
    viewer = Viewer(store)
    found = await viewer.api("search", scope="default", words="lisbon")
    assert {one["id"] for one in found["conversations"]} == {"support-4711", "support-4711-c"}
    match = next(one for one in found["messages"] if one["id"] == "support-4711" and one["seq"] == 4)
    assert (match["words"], match["after"]) == ("Lisbon", ", 14 March\n* window")
    places = await viewer.api("find", scope="default", id="long", words="question 1087?")
    assert [(one["seq"], one["of"], one["words"]) for one in places["places"]] == [(1087, "content", "Question 1087?")]
    assert [
        one["of"] for one in (await viewer.api("find", scope="default", id="support-4711", words="window"))["places"]
    ] == ["content", "book", "content"]
    assert (await viewer.api("find", scope="default", id="long", words="fox"))["more"] is True
    assert (await viewer.ask("/api/search", scope="default", words=" ")).status_code == 400
    assert (await viewer.ask("/api/search", scope="default", words="x" * 5000)).status_code == 400
    for words in ("%", "_", "!", "\\", '"'):
        assert (await viewer.api("search", scope="default", words=words))["conversations"] == []


async def test_branches_are_told_with_the_turn_they_leave_at(store: ConversationStore) -> None:
    await talks.booking(store)
    told = (await Viewer(store).api("tree", scope="default", id="support-4711-b-late"))["branches"]
    assert [(one["id"], one["parent"], one["at"], one["turns"]) for one in told] == [
        ("support-4711", None, 0, 6), ("support-4711-b", "support-4711", 2, 5),
        ("support-4711-c", "support-4711", 4, 4), ("support-4711-b-late", "support-4711-b", 4, 9),
    ]  # fmt: skip


async def test_hostile_names_are_names(store: ConversationStore) -> None:
    await talks.hostile(store)
    viewer = Viewer(store)
    (listed,) = (await viewer.api("conversations", scope="default"))["conversations"]
    assert (listed["id"], listed["title"]) == (talks.HOSTILE_ID, talks.HOSTILE_TITLE)
    assert (await viewer.api("conversation", scope="default", id=listed["id"]))["turns"] == 3
    for name in ("..", "../etc/passwd", "%2e%2e", "a\x00b", "\u202e", "x" * 300, ""):
        response = await viewer.ask("/api/conversation", scope="default", id=name)
        assert response.status_code in (400, 404), name
        assert set(response.json()["error"]) == {"code", "message", "hint"}
    for path in ("/page/..%2f__init__.py", "/page/%2e%2e/server.py", "/page/server.py"):
        assert (await viewer.ask(path)).status_code == 404, path


async def test_what_fails_is_told_without_what_was_read(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = Viewer(store)
    missing = await viewer.ask("/api/turns", scope="default", id="none")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_conversation")
    assert (await viewer.ask("/api/nothing")).json()["error"]["code"] == "not_found"
    assert (await viewer.ask("/api/conversation", scope="default")).json()["error"]["message"] == "id is missing"

    async def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailableError("the server is away", hint="Start it")

    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(store, "list", away)
    assert (await viewer.ask("/api/conversations", scope="default")).status_code == 503
    monkeypatch.setattr(store, "list", broken)
    response = await viewer.ask("/api/conversations", scope="default")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")
    assert "SECRET" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


async def test_the_playground_opens_when_it_is_first_wanted(store: ConversationStore) -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def opening() -> Any:
        if not opened:
            opened.append("failed")
            raise ConfigurationError("the model is not there", hint="Run: pollux-like local setup")
        opened.append("opened")
        yield PlainTextResponse(
            "playing", headers={"content-security-policy": "default-src 'none'; script-src 'sha256-x'"}
        )
        opened.append("closed")

    viewer = Viewer(store, playground=opening)
    async with viewer.app.router.lifespan_context(viewer.app):
        assert (await viewer.api("store"))["playground"] is True
        assert opened == []
        refused = await viewer.ask("/api/playground")
        assert (refused.status_code, refused.json()["error"]["hint"]) == (400, "Run: pollux-like local setup")
        assert (await viewer.api("playground")) == {"path": "/playground/"}
        page = await viewer.ask("/playground/v1/typed", method="POST")
        assert (page.text, page.headers["content-security-policy"]) == (
            "playing",
            "default-src 'none'; script-src 'sha256-x'",
        )
        assert page.headers["cache-control"] == "no-store"
        assert (await viewer.ask("/playground/", known=False)).status_code == 403
        assert opened == ["failed", "opened"]
    assert opened == ["failed", "opened", "closed"]
    without = await Viewer(store).ask("/api/playground")
    assert without.json()["error"]["hint"] == "Start it again without --no-playground"


def request(viewer: Viewer, path: str) -> dict[str, Any]:
    bearer = (b"authorization", f"Bearer {viewer.access.token}".encode())
    return {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"scope=s&id=x",
        "headers": [(b"host", b"127.0.0.1"), bearer], "scheme": "http", "http_version": "1.1", "root_path": "",
        "client": None, "server": None,
    }  # fmt: skip


class Line:
    """A connection: what is received, in order and then never more, and what was sent."""

    def __init__(self, *coming: str) -> None:
        self.coming, self.sent = list(coming), list[dict[str, Any]]()

    async def receive(self) -> dict[str, Any]:
        if not self.coming:
            await anyio.sleep_forever()
        return {"type": self.coming.pop(0), "body": b"", "more_body": False}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def test_a_client_that_goes_away_takes_its_read_along(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    async def endless(*_: Any, **__: Any) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    monkeypatch.setattr(Reader, "tree", endless)
    viewer = Viewer(store)
    line = Line("http.request", "http.disconnect")
    with anyio.fail_after(5):
        await viewer.app(request(viewer, "/api/tree"), line.receive, line.send)
    assert ended == ["ended"]
    assert line.sent[0]["status"] == 499


async def test_a_read_that_the_end_cuts_is_told_so_and_is_no_fault(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reader, "tree", lambda *_, **__: anyio.sleep_forever())
    viewer = Viewer(store)
    line = Line("http.request")
    task = asyncio.ensure_future(viewer.app(request(viewer, "/api/tree"), line.receive, line.send))
    await anyio.sleep(0.01)
    task.cancel()
    await task
    assert line.sent[0]["status"] == 503
    assert b"the viewer ends" in line.sent[1]["body"]


async def test_what_holds_a_task_group_is_a_playground_too(store: ConversationStore) -> None:
    closed: list[bool] = []

    @asynccontextmanager
    async def opening() -> Any:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            yield PlainTextResponse("playing")
            await anyio.sleep(0)  # closing may wait
            closed.append(True)
            group.cancel_scope.cancel()

    viewer = Viewer(store, playground=opening)
    early = await viewer.ask("/api/playground")
    assert early.json()["error"]["hint"] == "Run the lifespan of its application"
    async with viewer.app.router.lifespan_context(viewer.app):
        opened = await viewer.ask("/api/playground")
        cookie = opened.headers["set-cookie"]
        assert cookie.startswith("pollux_like_view_")
        assert cookie.endswith(f"={viewer.access.playground}; Path=/playground/; HttpOnly; SameSite=Strict")
        headers = {"cookie": cookie.partition(";")[0]}
        assert (await viewer.ask("/playground/", known=False, headers=headers)).text == "playing"
        for path in ("/api/store", "/api/playground", "/api/open"):
            refused = await viewer.ask(path, known=False, headers=headers)
            assert refused.status_code == 403, "the cookie opens nothing else"
        foreign = {**headers, "origin": "http://127.0.0.1:3000", "content-type": "text/plain"}
        assert (await viewer.ask("/playground/", method="POST", known=False, headers=foreign)).status_code == 403
        own = {**headers, "origin": "http://127.0.0.1:8397"}
        assert (await viewer.ask("/playground/", method="POST", known=False, headers=own)).status_code == 200
    assert closed == [True]
