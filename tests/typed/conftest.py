"""Engines and a served application for the whole folder. Tests on the embedded model skip where it is not installed."""

from __future__ import annotations

import importlib.util
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
import uvicorn

N_CTX = 1024


def installed() -> bool:
    """Whether the embedded model can run here."""
    from pollux_like_local.models import packaged_model

    return importlib.util.find_spec("xllamacpp") is not None and packaged_model() is not None


@pytest.fixture(scope="session")
def llama() -> Iterator[Any]:
    """The embedded model, with a small window."""
    if not installed():
        pytest.skip("the embedded runtime and model are not installed: pollux-like local setup")
    from pollux_like.typed import open_engine

    async def opened() -> Any:
        return await open_engine(n_ctx=N_CTX)

    engine = anyio.run(opened)
    yield engine
    anyio.run(engine.aclose)


class Served:
    """An application on a loopback port, in a thread of its own."""

    def __init__(self, app: Any) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
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


@pytest.fixture
def served() -> Iterator[Callable[[Any], str]]:
    """Serves applications for one test, and says where."""
    running: list[Served] = []

    def serve(app: Any) -> str:
        running.append(Served(app))
        return running[-1].address

    yield serve
    for one in running:
        one.stop()
