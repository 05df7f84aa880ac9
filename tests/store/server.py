"""A PostgreSQL server of a test's own, and a proxy before one that can cut connections."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class Server:
    """Started on a free port of the loopback; `restart` is immediate, as after a crash."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
            pytest.skip("no initdb and pg_ctl here")
        self.port = _free_port()
        self._folder = folder / "data"
        self._log = folder / "log"
        self._user = _user()
        if self._user is not None:
            shutil.chown(folder, self._user)
            for parent in folder.parents:
                if parent.stat().st_uid == os.geteuid() and parent not in (Path("/"), Path("/tmp")):
                    parent.chmod(parent.stat().st_mode | 0o011)
        self._run("initdb", "-D", str(self._folder), "-U", "tester", "-A", "trust", "--no-sync")
        self.start()

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, user=self._user, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        with open(os.devnull, "w") as nothing:
            done = subprocess.run(
                ["pg_ctl", "-D", str(self._folder), "-l", str(self._log), "-o", options, "-w", "start"],
                user=self._user, cwd="/", stdout=nothing, stderr=nothing, check=False,
            )  # fmt: skip
        assert done.returncode == 0, self._log.read_text("utf-8") if self._log.exists() else "no log"

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder), "-m", "immediate", "-w", "stop")

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres"


class Proxy:
    """Passes bytes on to a server. `cut` is asked about each piece that a client sends; True closes both sides.

    `after`: the piece is passed on first, and the answer is lost.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.cut: Callable[[bytes], bool] = lambda piece: False
        self.after = False
        self.cuts = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            lost = threading.Event()
            threading.Thread(target=self._up, args=(client, server, lost), daemon=True).start()
            threading.Thread(target=self._down, args=(client, server, lost), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        try:
            while piece := client.recv(65536):
                if self.cut(piece):
                    self.cuts += 1
                    lost.set()
                    if self.after:
                        server.sendall(piece)
                        lost.wait(0.2)
                    break
                server.sendall(piece)
        except OSError:
            lost.set()
        self._close(client, server)

    def _down(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        try:
            while piece := server.recv(65536):
                if not lost.is_set():
                    client.sendall(piece)
        except OSError:
            lost.set()
        self._close(client, server)

    @staticmethod
    def _close(*sockets: socket.socket) -> None:
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            finally:
                one.close()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def proxied(port: int) -> Iterator[Proxy]:
    """A proxy that is closed at the end."""
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
