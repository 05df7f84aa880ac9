"""The server without a browser: who is let in, what is said, and what never is."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from viewer import talks
from viewer.conftest import Viewer

from pollux_like import ConfigurationError
from pollux_like.errors import StoreUnavailableError
from pollux_like.store import ConversationStore

pytestmark = pytest.mark.anyio
READS = ("store", "conversations", "search", "conversation", "turns", "usage", "find", "tree", "playground")
PATHS = ["/", "/page/main.js", "/playground/", "/nothing", *(f"/api/{name}" for name in READS)]
KEY = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_token_nothing_is_served(store: ConversationStore, path: str) -> None:
    viewer = Viewer(store)
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer é".encode()},
        {"cookie": "pollux_like_view_8397="},
    ):
        response = await viewer.ask(path, known=False, headers=headers)
        assert response.status_code == 403, headers
        assert "<" not in response.text


async def test_a_link_opens_one_browser_once(store: ConversationStore) -> None:
    viewer = Viewer(store)
    link = viewer.access.url("127.0.0.1", 8397)
    path = link.removeprefix("http://127.0.0.1:8397")
    assert (await viewer.ask(path + "x", known=False)).status_code == 403
    assert (await viewer.ask(path.replace("/?", "/page/main.js?"), known=False)).status_code == 403, (
        "only the page takes it"
    )
    opened = await viewer.ask(path, known=False)
    assert opened.status_code == 200
    cookie = opened.headers["set-cookie"]
    assert cookie == f"pollux_like_view_8397={viewer.access.token}; Path=/; HttpOnly; SameSite=Strict"
    assert (await viewer.ask(path, known=False)).status_code == 403, "the ticket is spent"
    again = await viewer.ask(path, known=False, headers={"cookie": cookie.partition(";")[0]})
    assert again.status_code == 200
    assert "set-cookie" not in again.headers
    assert viewer.access.token not in repr(viewer.access)
    assert (
        await viewer.ask("/api/store", known=False, headers={"cookie": f"pollux_like_view_1={viewer.access.token}"})
    ).status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8397", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("[::1]:9", 200), ("example.com", 421),
     ("127.0.0.1.example.com", 421), ("example.com:8397", 421), ("127.0.0.1@example.com", 421), ("", 421), ("[", 421), ("0.0.0.0", 421)],
)  # fmt: skip
async def test_a_host_name_that_leads_here_by_rebinding_is_refused(
    store: ConversationStore, host: str, status: int
) -> None:
    assert (await Viewer(store).ask("/api/store", headers={"host": host})).status_code == status


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_origin_reads_nothing(store: ConversationStore, site: str) -> None:
    viewer = Viewer(store)
    for path in PATHS[1:]:
        response = await viewer.ask(path, headers={"sec-fetch-site": site, "origin": "http://127.0.0.1:1"})
        assert response.status_code == 403, path
        assert not [name for name in response.headers if name.startswith("access-control")]


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
    assert sum(len(text.encode()) for text in texts.values()) < 60_000
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
