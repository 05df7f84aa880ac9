"""`pollux-like view`: the conversations of a store on a page of this machine, with the playground beside them."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from pollux_like.cli import stores, typed
from pollux_like.cli.console import emit, put
from pollux_like.store import ConversationStore, open_store
from pollux_like.store.inputs import name as checked_name
from pollux_like.store.opening import file_of


def run(
    url: str | None, scope: str | None, host: str, port: int, opening: Callable[[], Any] | None, *, open: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Serve until interrupted. `opening`: makes the typed application of the playground.

    Raises ConfigurationError, and what opening the store raises. Tables are never brought up to date here.
    """
    from pollux_like.viewer import Access, make_app, serve

    store_url, sealer = stores.source(url)
    if scope is not None:
        checked_name(scope, "--scope")
    access = Access()

    def ready(bound: int) -> None:
        link = access.url(host, bound)
        if as_json:
            emit({"url": link, "token": access.token, "pid": os.getpid()})
        else:
            put(f"The viewer: {link}")
            put(("Whoever has the link may read. Ctrl-C ends the viewer, and the link with it.", "dim"))
        if open and not webbrowser.open(access.url_once(host, bound)):
            put(("No browser could be opened.", "yellow"))

    async def main() -> None:
        async with open_store(store_url, sealer=sealer, migrate=False) as store:
            playground = None if opening is None else _playground(opening)
            app = make_app(store, access, scope=scope, name=_name(store_url, store), playground=playground)
            await serve(app, host, port, ready)

    terminated: list[int] = []

    def end(number: int, _: object) -> None:
        terminated.append(number)
        signal.raise_signal(signal.SIGINT)  # which closes what is open, such as the engine of the playground

    signal.signal(signal.SIGTERM, end)
    try:
        anyio.run(main)
    except KeyboardInterrupt:
        if not terminated:
            raise
        sys.exit(128 + signal.SIGTERM)


def _name(url: str, store: ConversationStore) -> str:
    """What may be shown of a URL, which may have a password."""
    file = file_of(url)
    return "PostgreSQL" if file is None and store.database.dialect == "postgresql" else file.name if file else "memory"


def _playground(opening: Callable[[], Any]) -> Callable[[], AbstractAsyncContextManager[Any]]:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Any]:
        app = opening()
        async with app.router.lifespan_context(app):
            yield app

    return opened


def typed_application(engine: str, base_url: str | None, model: str | None, key_variable: str | None) -> Any:
    """The typed service with its page. Raises ConfigurationError whose hint says what to install."""
    return typed.application(engine, typed.engine_options(base_url, model, key_variable), None, [])
