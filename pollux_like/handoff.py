"""handoff: the one bridge between providers. A continuation becomes portable history, and every loss is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from pollux_like import checks, plugins
from pollux_like.continuation import Continuation, turns_of
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message
from pollux_like.provider import Vendor
from pollux_like.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Handoff(Shown):
    """`history` for `Input(history=...)` on any provider, and `losses`: what portable history cannot hold, in words."""

    history: tuple[Message, ...] = field(repr=False)
    losses: tuple[str, ...] = ()


def handoff(continuation: Continuation) -> Handoff:
    """Convert a conversation for another provider. Pure: the continuation stays as it is, nothing is sent.

    Kept: user text, assistant text, tool calls with their ids, results. Lost, and named: signed and sealed reasoning,
    items of the provider's own tools, compactions, media. Nothing is invented, and reasoning never becomes speech.
    Open tool calls stay open: go on with `Input(history=..., tool_results=...)`.
    """
    if not isinstance(continuation, Continuation):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"handoff got {checks.kind(continuation)}", hint="Pass Output.continuation or a restored Continuation"
        )
    vendor = cast("Vendor", plugins.load(continuation.provider))
    history: list[Message] = []
    losses: list[str] = []
    for number, turn in enumerate(turns_of(continuation), start=1):
        history.extend(turn.added)
        if turn.media:
            losses.append(f"turn {number}: {len(turn.media)} sources given for that turn only")
        portable = vendor.portable(turn)
        if portable.message is not None:
            history.append(portable.message)
        else:
            losses.append(f"turn {number}: the answer held no text and no tool call")
        losses.extend(f"turn {number}: {loss}" for loss in portable.losses)
        if turn.status == "pause":
            losses.append(f"turn {number}: it was paused, and the other provider will not resume it")
    return Handoff(tuple(history), tuple(losses))
