"""What every test stands on: no key of the developer's own, no provider on the network, both event loops."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
settings.load_profile("untimed")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # so begins what runs in the background, and so would its children
    signal.signal(signal.SIGINT, signal.default_int_handler)

KEYS = (
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "GOOGLE_GEMINI_BASE_URL", "OPENROUTER_BASE_URL", "POLLUX_LIKE_LOCAL_MODEL", "OPENAI_ORG_ID",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of recorded exchanges; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("POLLUX_LIKE_RECORDINGS", "../shared/recordings"))
    if not folder.is_dir():
        pytest.skip("no recordings here; set POLLUX_LIKE_RECORDINGS to their folder")
    return folder


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every async test runs on both loops, unless it overrides this."""
    return str(request.param)
