"""Problem: a request that is refused, with its status and what the client reads."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pollux_like import canonical

SHOWN: Final = 16_384
"""Most characters of an author's exception that a client sees: the clients of the protocol bound a line."""

Showing: TypeAlias = Literal["none", "message", "traceback"]
"""How much of an author's exception a client gets to see."""


class Problem(Exception):  # not a fault of the program
    """Answered as `{"detail": ...}`."""

    def __init__(self, status: int, detail: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def shown(error: BaseException, showing: Showing) -> str:
    """An author's exception as a client sees it."""
    if showing == "none":
        return "The environment failed."
    try:
        text = f"{type(error).__name__}: {error}"
        if showing == "traceback":
            text = "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001  # the author's own __str__
        text = f"{type(error).__name__}, which cannot be written"
    text = canonical.repair_text(text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
