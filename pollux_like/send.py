"""Send: one rendered request, with the identical body at every attempt. The only owner of retries."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import anyio

from pollux_like import canonical
from pollux_like.errors import APIError, StreamInterruptedError
from pollux_like.output import Event, Notice
from pollux_like.provider import Adapter, Reply, ServerStateLost, Wire
from pollux_like.telemetry import logger

MAX_RETRY_AFTER_S = 60.0
"""Longest wait that a provider may ask for; above that the error is raised at once, with `retry_after_s`."""


@dataclass(slots=True, eq=False)
class Sending:
    """A request on its way: `attempts` are the HTTP requests so far, `notices` what was reported meanwhile."""

    wire: Wire
    timeout_s: float
    max_attempts: int
    attempts: int = 0
    notices: list[Notice] = field(default_factory=list[Notice])


async def send(this: Sending, adapter: Adapter) -> AsyncGenerator[Event | Reply, None]:
    """At most `max_attempts` HTTP requests.

    Again only where the error says so (transport, 408, 409, 429, 5xx, 529) and nothing was shown yet.
    """
    while True:
        this.attempts += 1
        shown = False
        text: list[str] = []
        try:
            async with adapter.open(this.wire, timeout_s=this.timeout_s) as items:
                async for item in items:
                    shown = True
                    if isinstance(item, Event) and item.type == "text_delta":
                        text.append(item.text)
                    yield item
            return
        except ServerStateLost:
            if shown or this.wire.fallback is None or this.attempts >= this.max_attempts:
                raise
            this.wire = this.wire.fallback()
            notice = Notice("chain_fallback", "the provider forgot the stored turn; the whole conversation was sent")
            this.notices.append(notice)
            yield Event("notice", notice=notice)
        except APIError as error:
            if isinstance(error, StreamInterruptedError):
                error.partial_text = canonical.repair_text("".join(text))
            wait = _wait(error, this.attempts)
            if shown or not error.retryable or this.attempts >= this.max_attempts or wait is None:
                raise
            logger.info("attempt %d failed with %s, again in %.1f s", this.attempts, type(error).__name__, wait)
            await anyio.sleep(wait)


def _wait(error: APIError, attempt: int) -> float | None:
    """Seconds before the next attempt: what the provider asked for, else 0.5 s doubling up to 8 s, with jitter."""
    if error.retry_after_s is not None:
        return max(error.retry_after_s, 0.0) if error.retry_after_s <= MAX_RETRY_AFTER_S else None
    from random import uniform

    return min(0.5 * 2.0 ** (attempt - 1), 8.0) * uniform(0.75, 1.0)  # noqa: S311  # jitter, no secret
