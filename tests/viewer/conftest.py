"""Stores to look at - a file, memory, and PostgreSQL where POLLUX_LIKE_TEST_POSTGRES names a server - and their viewer."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from viewer import talks

from pollux_like.store import ConversationStore, open_store
from pollux_like.typed import ScriptedEngine
from pollux_like.typed.server import make_app as make_typed
from pollux_like.viewer import Access, make_app

CONTRAST = """(selector) => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return light(c); } return 1; };
  return Math.min(...[...document.querySelectorAll(selector)].filter((e) => e.offsetParent && e.textContent.trim()).map((e) => {
    const [a, b] = [light(getComputedStyle(e).color), ground(e)]; return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }));
}"""
"""The least contrast of the texts of a selector against their ground, by WCAG 2.2."""


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of a schema of its own, dropped at the end."""
    url = os.environ.get("POLLUX_LIKE_TEST_POSTGRES")
    if not url:
        pytest.skip("no PostgreSQL here; set POLLUX_LIKE_TEST_POSTGRES to its URL")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["sqlite", "memory", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One URL of each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'talks.db'}" if request.param == "sqlite" else "memory:"


@pytest.fixture
async def store(url: str) -> AsyncIterator[ConversationStore]:
    """An open store of each kind."""
    async with open_store(url) as opened:
        yield opened


class Viewer:
    """The application of a store, asked in the process."""

    def __init__(self, store: ConversationStore, **options: Any) -> None:
        self.access = Access()
        self.app = make_app(store, self.access, **options)
        self._transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False)

    async def ask(
        self, path: str, *, method: str = "GET", known: bool = True, headers: Any = None, **query: Any
    ) -> httpx2.Response:
        """The response; `known`: with the token."""
        own = {"authorization": f"Bearer {self.access.token}"} if known else {}
        async with httpx2.AsyncClient(transport=self._transport, base_url="http://127.0.0.1:8397") as client:
            return await client.request(method, path, headers={**own, **(headers or {})}, params=query or None)

    async def api(self, name: str, **query: Any) -> Any:
        """The JSON of a read that succeeds."""
        response = await self.ask(f"/api/{name}", **query)
        assert response.status_code == 200, response.text
        return response.json()


class Served:
    """An application on a loopback port, in a thread of its own."""

    def __init__(self, app: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            self._thread.join(0.005)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[Any], int]]:
    """Serves applications for one module, and says on which port."""
    running: list[Served] = []

    def serve(app: Any) -> int:
        running.append(Served(app))
        return running[-1].port

    yield serve
    for one in running:
        one.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium here: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


class Site:
    """A served viewer: its store, its access and its address."""

    def __init__(self, store: ConversationStore, served: Callable[[Any], int], **options: Any) -> None:
        self.store, self.access = store, Access()
        self.port = served(make_app(store, self.access, **options))
        self.base = f"http://127.0.0.1:{self.port}"

    def known(self, context: Any) -> None:
        """Give a browser the token, as if it had opened the link before."""
        context.add_init_script(f"localStorage.setItem('pollux-like-view', {self.access.token!r})")


def done(work: Callable[[], Any]) -> Any:
    """What the coroutine gives, in a thread: the driver of the browser has a loop of its own in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, work).result()


async def _filled() -> ConversationStore:
    store = open_store("memory:")
    await store.create("only", scope="tenant-7")
    for number in range(60):
        await store.create(f"filler-{number:02}", scope="default")
    await talks.long(store, "long", 10_000, title="Ten thousand turns")
    await talks.hostile(store)
    await talks.booking(store)
    await talks.waiting(store, "waits", "Are you there?")
    return store


@asynccontextmanager
async def _typed() -> Any:
    app = make_typed(ScriptedEngine({"policy_number": "3201456789012345", "reply": "Thank you."}))
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture(scope="module")
def site(served: Callable[[Any], int]) -> Iterator[Site]:
    store = done(_filled)
    yield Site(store, served, playground=_typed)
    done(store.aclose)


@pytest.fixture
def wrong() -> list[str]:
    """What went wrong on the pages of a test."""
    return []


@pytest.fixture
def open_page(browser: Any, site: Site, wrong: list[str]) -> Iterator[Callable[..., Any]]:
    """Opens the page with the token; nothing may leave the address, fail in the page or break its policy."""
    contexts: list[Any] = []

    def opened(address: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        site.known(context)
        page = context.new_page()
        page.on(
            "request",
            lambda request: wrong.append(request.url) if not request.url.startswith(site.base + "/") else None,
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("dialog", lambda dialog: (wrong.append("dialog"), dialog.dismiss()))
        page.goto(f"{site.base}/{address}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def until(met: Callable[[], Any]) -> Any:
    """What it gives when that is true; the page's policy forbids the evaluation that a wait of the driver needs."""
    for _ in range(400):
        found = met()
        if found:
            return found
        time.sleep(0.025)
    raise AssertionError("it never came to be")
