"""The limits of a server. Each has an answer of its own when it is reached."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pollux_like import checks


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds.

    * `body`: a request body (413). `body_s`: the time it may take to arrive (408).
    * `sessions`: open sessions (429). `calls`: unfinished calls of one session (429).
    * `idle_s`: a session without requests and calls is deleted after it. `setup_s`: a request waits for `setup` (503).
    * `tool_s`: a tool is cancelled after it, and the call answers so. `result_s`: a finished result can be asked for
      again. `drain_s`: a delete waits for tools that do not end; their teardown follows later.
    * `ping_s`: the longest silence of a stream. `threads`: sync code that runs at once.
    """

    body: int = 32 * 1024 * 1024
    body_s: float = 60.0
    sessions: int = 10_000
    calls: int = 256
    idle_s: float = 900.0
    setup_s: float = 25.0
    tool_s: float = 3600.0
    result_s: float = 60.0
    drain_s: float = 30.0
    ping_s: float = 10.0
    threads: int = 64

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name.endswith("_s"):
                checks.number(value, f"Limits.{one.name}", least=0.001, most=86_400)
            else:
                checks.whole(value, f"Limits.{one.name}", least=1)
