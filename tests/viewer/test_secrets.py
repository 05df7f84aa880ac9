"""What a viewer never tells: opaque state, open or sealed; and what a sealed store shows with its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from viewer import talks
from viewer.conftest import Viewer

from pollux_like import Input
from pollux_like.messages import Message
from pollux_like.sealing import ContinuationSealer
from pollux_like.store import open_store
from pollux_like.store.records import Record
from pollux_like.testing import Scripted, call, say, think

pytestmark = pytest.mark.anyio
KEY = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def opaque(value: Any) -> Iterator[str]:
    """Every text in saved state that nobody said: of native items, of stamps, digests."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from opaque(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from opaque(inner)
    elif isinstance(value, str) and value.startswith(("{", "[")):
        yield from opaque(json.loads(value))
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
async def test_opaque_state_never_leaves_the_server(url: str, sealed: bool) -> None:
    sealer = ContinuationSealer([KEY]) if sealed else None
    async with open_store(url, sealer=sealer) as store:
        talk = await store.create("talk", scope="s")
        model = Scripted([think("SEALED-THOUGHT"), say("Hello"), call("book", {"seat": 1}, id="call_1")])
        await talk.interact(talks.ENV, Input("Hi"), model.config, key="IDEMPOTENCY-KEY")
        await talk.fork("fork")
        assert talk.continuation is not None
        saved = talk.continuation.to_jsonable()
        assert "SEALED-THOUGHT" in json.dumps(saved), "there is something to hide"
        shown = (await talk.transcript())[0]
        viewer = Viewer(store)
        told = ""
        for path, query in [
            ("/api/store", {}), ("/api/conversations", {}), ("/api/search", {"words": "Hello"}), ("/api/conversation", {"id": "talk"}),
            ("/api/turns", {"id": "talk"}), ("/api/turns", {"id": "talk", "whole": 1, "last": 1}), ("/api/usage", {"id": "talk"}),
            ("/api/find", {"id": "talk", "words": "e"}), ("/api/tree", {"id": "talk"}), ("/api/conversation", {"id": "none"}),
        ]:  # fmt: skip
            response = await viewer.ask(path, scope="s", **query)
            told += response.text + str(dict(response.headers))
    said = {"Hi", "Hello", "book", "call_1", "user", "assistant", "scripted", "tool_calls", "stop", "call", "s"}
    hidden = {text for text in opaque(saved) if text not in said and len(text) > 8}
    hidden |= {
        "SEALED-THOUGHT",
        "IDEMPOTENCY-KEY",
        KEY,
        shown.digest,
        shown.fingerprint,
        talk.continuation.digest,
        "signature",
        "native",
        "request_id",
    }
    assert len(hidden) > 9
    assert "Hello" in told
    assert [text for text in hidden if text in told] == []


async def test_a_sealed_store_is_read_with_its_keys_only(url: str) -> None:
    if url == "memory:":
        pytest.skip("memory has no second opening")
    async with open_store(url, sealer=ContinuationSealer([KEY])) as store:
        await talks.booking(store)
        viewer = Viewer(store)
        assert (await viewer.api("store"))["sealed"] is True
        found = await viewer.api("search", scope="default", words="Lisbon")
        assert found["problem"] == {
            "message": "a sealed store cannot be searched",
            "hint": "Search the application's own index",
        }
        assert len(found["conversations"]) == 2, "titles are not sealed"
        assert [
            one["seq"]
            for one in (await viewer.api("find", scope="default", id="support-4711", words="neighbour"))["places"]
        ] == [5]
        assert len((await viewer.api("tree", scope="default", id="support-4711"))["branches"]) == 4
    async with open_store(url) as store:
        viewer = Viewer(store)
        response = await viewer.ask("/api/turns", scope="default", id="support-4711")
        assert (response.status_code, response.json()["error"]["code"]) == (500, "store")
        assert "sealed" in response.json()["error"]["message"]
        assert len((await viewer.api("conversations", scope="default"))["conversations"]) == 4


async def test_details_that_are_not_for_display_stay_on_the_server(url: str) -> None:
    details = {
        "model": "made-1",
        "request_id": "REQUEST-ID",
        "raw": "RAW-FINISH",
        "brought": 7,
        "other": "OTHER-DETAIL",
    }
    said = '["SAID-APART",null]'
    record = Record("d" * 64, "STATE-LINE", "f" * 64, "stop", (Message("user", "Hi"),), None, details, said)
    async with open_store(url) as store:
        await talks.written(store, "talk", [record], "s", None)
        viewer = Viewer(store)
        told = ""
        for path in ("conversations", "conversation", "turns", "usage", "find", "tree", "search"):
            told += (await viewer.ask(f"/api/{path}", scope="s", id="talk", words="i")).text
    assert "made-1" in told
    hidden = ["REQUEST-ID", "RAW-FINISH", "OTHER-DETAIL", "STATE-LINE", "SAID-APART", "d" * 64, "f" * 64, "brought"]
    assert [text for text in hidden if text in told] == []
