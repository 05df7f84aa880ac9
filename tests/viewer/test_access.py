"""Who is let in: tokens, tickets, host names, pages of others."""

from __future__ import annotations

import pytest
from viewer.conftest import Viewer

from pollux_like.store import ConversationStore

pytestmark = pytest.mark.anyio
READS = ("store", "conversations", "search", "conversation", "turns", "usage", "find", "tree", "playground")
PATHS = ["/", "/page/main.js", "/playground/", "/nothing", *(f"/api/{name}" for name in READS)]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("path", PATHS[2:])
async def test_without_the_token_nothing_is_read(store: ConversationStore, path: str) -> None:
    viewer = Viewer(store)
    access = viewer.access
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer é".encode()},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {access.token}"},
        {"authorization": f"Bearer {access.playground}"},
        {"authorization": f"Bearer {access.ticket}"},
        {"cookie": "pollux_like_view_8397="},
        {"cookie": f"pollux_like_view_8397={access.token}; token={access.token}"},
    ):
        response = await viewer.ask(path, known=False, headers=headers)
        assert response.status_code == 403, headers
        assert "<" not in response.text
    query = await viewer.ask(path, known=False, token=access.token, ticket=access.ticket)
    assert query.status_code == 403, "no secret in what logs and histories keep"


async def test_the_files_of_the_page_hold_nothing_and_need_no_token(store: ConversationStore) -> None:
    await store.create("secret-talk", scope="secret-scope", title="SECRET")
    viewer = Viewer(store, name="secret.db")
    for path in ("/", "/page/main.js", "/page/style.css", "/favicon.ico"):
        response = await viewer.ask(path, known=False)
        assert response.status_code == 200, path
        assert not [said for said in ("secret-talk", "secret-scope", "SECRET", "secret.db") if said in response.text]
        assert not [name for name in response.headers if name == "set-cookie"]
        assert viewer.access.token not in response.text + str(response.headers)


async def test_a_link_opens_every_browser_and_is_sent_to_no_server(store: ConversationStore) -> None:
    viewer = Viewer(store)
    link = viewer.access.url("127.0.0.1", 8397)
    assert link == f"http://127.0.0.1:8397/#token={viewer.access.token}"
    assert viewer.access.url("::1", 1).startswith("http://[::1]:1/#")
    assert viewer.access.url("localhost", 1).startswith("http://127.0.0.1:1/#"), "::1 may be another server"
    for _ in range(3):
        assert (await viewer.ask("/api/store")).status_code == 200
    assert not [
        one for one in vars(type(viewer.access))["__slots__"] if getattr(viewer.access, one) in repr(viewer.access)
    ]


async def test_a_ticket_is_exchanged_once(store: ConversationStore) -> None:
    viewer = Viewer(store)
    link = viewer.access.url_once("127.0.0.1", 8397)
    ticket = link.partition("/#ticket=")[2]
    assert viewer.access.token not in link
    for path in ("/", "/page/main.js"):
        await viewer.ask(f"{path}?ticket={ticket}", known=False)
    wrong = {"authorization": f"Bearer {ticket}x"}
    assert (await viewer.ask("/api/open", known=False, headers=wrong)).status_code == 403
    headers = {"authorization": f"Bearer {ticket}"}
    opened = await viewer.ask("/api/open", known=False, headers=headers)
    assert opened.json() == {"token": viewer.access.token}
    assert (await viewer.ask("/api/open", known=False, headers=headers)).status_code == 403, "the ticket is spent"


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8397", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("[::1]:9", 200), ("example.com", 421),
     ("[::1]", 200), ("127.0.0.1.example.com", 421), ("127.1", 421), ("2130706433", 421), ("localhost.", 421), ("::1", 421),
     ("[127.0.0.1]", 421), ("[::ffff:127.0.0.1]", 421), ("127.0.0.1#.example.com", 421), ("127.0.0.1/.example.com", 421),
     ("127.0.0.1:port", 421), ("127.0.0.1:1:2", 421), ("localhost\t.example.com", 421), ("example.com:8397", 421), ("127.0.0.1@example.com", 421), ("", 421), ("[", 421), ("0.0.0.0", 421)],
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
