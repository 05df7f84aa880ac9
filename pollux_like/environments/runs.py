"""Runs: one piece of an author's work whose result can be asked for again, by its task id and by nobody else."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pollux_like import canonical
from pollux_like.environments.limits import Limits
from pollux_like.environments.problems import Problem, Showing, shown

CANCELLED = "The call was cancelled: the session is being deleted."


@dataclass(slots=True, eq=False)
class Run:
    """`request` is the digest of what was asked. Ended: `result` (JSON text) or `error`."""

    task_id: str
    request: str
    work: asyncio.Task[Any] | None = None
    result: str | None = None
    error: str | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    ended_at: float | None = None

    def end(self, *, result: str | None = None, error: str | None = None) -> None:
        """Settle once; what comes later is dropped."""
        if not self.ended.is_set():
            self.result, self.error, self.ended_at = result, error, time.monotonic()
            self.ended.set()


class Runs:
    """The runs of one session."""

    def __init__(self, limits: Limits, showing: Showing) -> None:
        self._limits = limits
        self._showing: Showing = showing
        self._runs: dict[str, Run] = {}
        self._calls: dict[str, Run] = {}
        self._used: set[str] = set()
        self._works: set[asyncio.Task[Any]] = set()

    @property
    def busy(self) -> bool:
        """Whether an author's code is running."""
        return bool(self._works)

    def resumed(self, task_id: str, request: str) -> Run | None:
        """The run of this id, if it was started by the same request."""
        self.forget()
        run = self._runs.get(task_id)
        return run if run is not None and run.request == request else None

    def started(self, request: str, call_id: str | None, work: Callable[[], Awaitable[dict[str, Any]]]) -> Run | None:
        """Begin a run; a `call_id` that was used already gives the run that it began, None where that is forgotten.

        Raises Problem 409 where it was used for another request, and 429 above the limit.
        """
        self.forget()
        if call_id in self._used:
            return None
        known = self._calls.get(call_id) if call_id is not None else None
        if known is not None:
            if known.request != request:
                raise Problem(409, "The call id was used for another call.")
            return known
        if len(self._works) >= self._limits.calls:
            raise Problem(429, f"The session has {len(self._works)} calls under way.", {"Retry-After": "2"})
        run = Run(uuid.uuid4().hex, request)
        self._runs[run.task_id] = run
        if call_id is not None:
            self._calls[call_id] = run
        run.work = asyncio.create_task(self._watched(run, work))
        self._works.add(run.work)
        run.work.add_done_callback(self._works.discard)
        return run

    async def _watched(self, run: Run, work: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        timer = asyncio.get_running_loop().call_later(self._limits.tool_s, self._stop, run)
        try:
            value = await work()
            canonical.check_value(value, path="the result")
            run.end(result=json.dumps(value, separators=(",", ":"), allow_nan=False))
        except asyncio.CancelledError:
            run.end(error=CANCELLED)  # not raised again: the task ends here, and nobody waits for it but the session
        except Exception as error:  # noqa: BLE001  # the author's own; it is answered
            run.end(error=shown(error, self._showing))
        finally:
            timer.cancel()
            run.end(error="The call failed.")  # whatever came: a client waits

    def _stop(self, run: Run) -> None:
        run.end(error=f"The tool took longer than {self._limits.tool_s:g} seconds.")
        if run.work is not None:
            run.work.cancel()

    def forget(self) -> None:
        """Drop results that nobody asked for in time. Ids of calls are kept: none may begin a second run."""
        oldest = time.monotonic() - self._limits.result_s
        for runs in (self._runs, self._calls):
            for name in [name for name, run in runs.items() if run.ended_at is not None and run.ended_at < oldest]:
                del runs[name]
                if runs is self._calls:
                    self._used.add(name)

    async def close(self) -> None:
        """Cancel what runs, answer its clients, and return when the author's code has ended."""
        for run in self._runs.values():
            run.end(error=CANCELLED)
        works = set(self._works)
        for work in works:
            work.cancel()
        if works:
            await asyncio.wait(works)
