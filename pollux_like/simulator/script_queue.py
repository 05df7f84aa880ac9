"""The queue of scripted turns and the record of requests, shared by the test's thread and the server's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pollux_like.simulator.disturb import Disturbance
from pollux_like.simulator.wire import Fault, Refusal
from pollux_like.testing.script import Answer

CALM = Disturbance()


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came. Header names are lower case and secrets masked; `status` is None while unanswered."""

    dialect: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    status: int | None = None


Source: TypeAlias = Answer | Callable[[Recorded], Answer] | Fault | Refusal


@dataclass(frozen=True, slots=True)
class Turn:
    """One scripted turn, for the next request that `when` accepts (None: any)."""

    source: Source
    how: Disturbance = CALM
    when: Callable[[Recorded], bool] | None = None


@dataclass(slots=True)
class ScriptQueue:
    """First in, first out."""

    _turns: list[Turn] = field(default_factory=list[Turn])
    _seen: list[Recorded] = field(default_factory=list[Recorded])
    _failures: list[Exception] = field(default_factory=list[Exception])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, turn: Turn, times: int = 1) -> None:
        with self._lock:
            self._turns.extend([turn] * times)

    def next(self, request: Recorded) -> Turn | None:
        """Take the first turn meant for this request."""
        with self._lock:
            at = next((n for n, turn in enumerate(self._turns) if turn.when is None or turn.when(request)), None)
            return None if at is None else self._turns.pop(at)

    def record(self, request: Recorded) -> int:
        with self._lock:
            self._seen.append(request)
            return len(self._seen) - 1

    def answered(self, place: int, status: int | None) -> None:
        with self._lock:
            if place < len(self._seen):
                self._seen[place] = replace(self._seen[place], status=status)

    def failed(self, error: Exception) -> None:
        with self._lock:
            self._failures.append(error)

    def failures(self) -> list[Exception]:
        with self._lock:
            return list(self._failures)

    def requests(self) -> list[Recorded]:
        with self._lock:
            return list(self._seen)

    def left(self) -> int:
        with self._lock:
            return len(self._turns)

    def clear(self) -> None:
        with self._lock:
            self._turns.clear()
            self._seen.clear()
            self._failures.clear()
