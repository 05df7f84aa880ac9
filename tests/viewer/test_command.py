"""`pollux-like view`, as a process: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from viewer import talks

from pollux_like.sealing import ContinuationSealer
from pollux_like.store import open_store

KEY = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
COMMAND = [sys.executable, "-c", "from pollux_like.cli import main; main()", "view"]


def filled(path: Path, sealer: ContinuationSealer | None = None) -> str:
    async def fill() -> None:
        async with open_store(f"sqlite:///{path}", sealer=sealer) as store:
            await talks.booking(store)

    anyio.run(fill)
    return f"sqlite:///{path}"


def started(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **variables},
    )  # fmt: skip


def refused(*arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def test_it_serves_until_interrupted_and_changes_nothing(tmp_path: Path) -> None:
    url = filled(tmp_path / "talks.db")
    before = (tmp_path / "talks.db").read_bytes()
    running = started("--store", url, "--json")
    assert running.stdout is not None
    told = json.loads(running.stdout.readline())
    assert set(told) == {"url", "token", "pid"}
    base, _, token = told["url"].partition("/#token=")
    assert told["token"] == token
    headers = {"authorization": f"Bearer {told['token']}"}
    listed = httpx2.get(f"{base}/api/conversations", params={"scope": "default"}, headers=headers).json()[
        "conversations"
    ]
    assert len(listed) == 4
    assert httpx2.get(f"{base}/api/store", headers=headers).json()["name"] == "talks.db"
    assert httpx2.get(f"{base}/api/store").status_code == 403
    os.kill(told["pid"], signal.SIGINT)
    out, said = running.communicate(timeout=20)
    assert (running.returncode, out, said) == (130, "", "")
    assert (tmp_path / "talks.db").read_bytes() == before


def test_a_person_gets_one_link(tmp_path: Path) -> None:
    running = started("--store", filled(tmp_path / "talks.db"), "--scope", "default")
    assert running.stdout is not None
    line = running.stdout.readline()
    assert line.startswith("The viewer: http://127.0.0.1:")
    link = line.split()[-1]
    base, _, token = link.partition("/#token=")
    assert httpx2.get(link).status_code == 200
    assert httpx2.get(f"{base}/api/store", headers={"authorization": f"Bearer {token}"}).status_code == 200
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=20)
    assert (running.returncode, said) == (143, "")


def test_a_sealed_store_opens_with_the_variable_of_talks(tmp_path: Path) -> None:
    url = filled(tmp_path / "talks.db", ContinuationSealer([KEY]))
    running = started("--store", url, "--json", POLLUX_LIKE_STORE_KEYS=KEY)
    assert running.stdout is not None
    told = json.loads(running.stdout.readline())
    query = {"scope": "default", "id": "support-4711"}
    response = httpx2.get(
        told["url"].partition("/#")[0] + "/api/turns",
        params=query,
        headers={"authorization": f"Bearer {told['token']}"},
    )
    assert "Lisbon" in response.text
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=20)
    assert KEY not in out + said


def test_what_cannot_be_served_is_two_sentences(tmp_path: Path) -> None:
    assert "there is no store at" in refused("--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()
    assert "no store is named" in refused(POLLUX_LIKE_STORE="")
    url = filled(tmp_path / "talks.db")
    assert "loopback only" in refused("--store", url, "--host", "0.0.0.0")
    assert "port 70000 cannot be listened on" in refused("--store", url, "--port", "70000")
    assert "scope" in refused("--store", url, "--scope", "a\nb")
    (tmp_path / "empty.db").touch()
    assert "the store has schema 0" in refused("--store", f"sqlite:///{tmp_path / 'empty.db'}"), "no tables are made"


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_a_missing_package_names_the_command_that_installs_it(tmp_path: Path, missing: str) -> None:
    url = filled(tmp_path / "talks.db")
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom pollux_like.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "view", "--store", url, "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert 'pip install "pollux-like[viewer]"' in done.stderr


def test_a_playground_that_cannot_be_opened_says_what_to_install(tmp_path: Path) -> None:
    url = filled(tmp_path / "talks.db")
    code = "import sys; sys.modules['regex'] = None\nfrom pollux_like.cli import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "view", "--store", url, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    told = json.loads(running.stdout.readline())
    response = httpx2.get(
        told["url"].partition("/#")[0] + "/api/playground", headers={"authorization": f"Bearer {told['token']}"}
    )
    assert response.json()["error"]["hint"] == 'Run: pip install "pollux-like[typed]"'
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)


ENGINE = """
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from starlette.applications import Starlette
from pollux_like.cli import view

@asynccontextmanager
async def lifespan(app):
    yield
    Path(sys.argv[2]).write_text("closed")

view.run(sys.argv[1], None, "127.0.0.1", 0, lambda: Starlette(lifespan=lifespan), open=False, as_json=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_open_engine_is_closed_however_the_viewer_is_ended(tmp_path: Path, ending: signal.Signals) -> None:
    closed = tmp_path / "closed"
    running = subprocess.Popen(
        [sys.executable, "-c", ENGINE, filled(tmp_path / "talks.db"), str(closed)], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert running.stdout is not None
    told = json.loads(running.stdout.readline())
    base, headers = told["url"].partition("/#")[0], {"authorization": f"Bearer {told['token']}"}
    assert httpx2.get(f"{base}/api/playground", headers=headers).status_code == 200
    assert not closed.exists()
    with httpx2.Client() as idle:  # a connection that is kept alive holds nothing up
        assert idle.get(f"{base}/").status_code == 200
        running.send_signal(ending)
        running.communicate(timeout=20)
    assert closed.read_text() == "closed"


def test_the_command_line_of_a_browser_shows_no_token(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {noted}.new && mv {noted}.new {noted}\n')
    browser.chmod(0o755)
    running = started("--store", filled(tmp_path / "talks.db"), "--json", "--open", BROWSER=str(browser))
    assert running.stdout is not None
    told = json.loads(running.stdout.readline())
    base = told["url"].partition("/#")[0]
    while httpx2.get(f"{base}/").status_code != 200 or not noted.exists():
        assert running.poll() is None
    shown = noted.read_text().strip()
    assert shown.startswith(f"{base}/#ticket=")
    assert told["token"] not in shown
    ticket = shown.partition("=")[2]
    opened = httpx2.get(f"{base}/api/open", headers={"authorization": f"Bearer {ticket}"})
    assert opened.json() == {"token": told["token"]}
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)
