"""Problem: a request that is refused, with its status and what the client reads."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

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
    if showing == "traceback":
        return "".join(traceback.format_exception(error)).rstrip()
    return f"{type(error).__name__}: {error}"
