"""One server for all; the real OpenReward packages, each in a virtual environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from environment_support import GATES, INSTANCES, Harbour, Prompted

from pollux_like.environments import Limits, Patience, Server

ROOT = Path(__file__).parent.parent.parent
QUICK = Patience(attempts=3, start_s=20.0, silence_s=10.0, reconnects=20, first_wait_s=0.01, longest_wait_s=0.01)
"""Does not wait between attempts."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serves the harbour (the default) and a prompt."""
    with Server([Harbour, Prompted], limits=Limits(idle_s=600, drain_s=5)) as running:
        yield running


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    INSTANCES.clear()
    yield
    for gate in GATES.values():
        gate.set()
    GATES.clear()


@pytest.fixture(scope="session")
def openreward() -> Callable[[str], Path]:
    """The Python that has a version of the `openreward` package; installed where it is not there yet."""
    return _python_with


def _python_with(version: str) -> Path:
    if os.environ.get("POLLUX_LIKE_OFFLINE") == "1":
        pytest.skip("POLLUX_LIKE_OFFLINE=1: the openreward package is not installed")
    folder = ROOT / f".venv-openreward-{version}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, f"openreward=={version}"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        stamp.touch()
    return python
