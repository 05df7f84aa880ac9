"""History: portable messages as a whole, shortened where a round of the conversation is complete and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pollux_like import checks, pairing
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message
from pollux_like.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Compacted(Shown):
    """`history` for `Input(history=...)`, and `dropped`: what stands in it no more, oldest first, to be summarised or
    kept elsewhere."""

    history: tuple[Message, ...] = field(repr=False)
    dropped: tuple[Message, ...] = field(repr=False)


def compact(history: Sequence[Message], *, keep_last: int, summary: str | None = None) -> Compacted:
    """Keep the last `keep_last` rounds of a portable history. Pure; the messages themselves stay as they are.

    A round is what begins with user messages and ends before the next ones: questions, calls, results and answers are
    kept together or dropped together, so no call loses its result. The round that is still unanswered at the end (a
    last user message, or results that the model has not seen) counts as one. `summary` is put before what is kept, as
    a user message: text that the application made of `dropped`, most simply with a turn of its own.

    Raises ConfigurationError for a history that is no history, one that ends in open tool calls (their round is not
    complete: return the results first, with the continuation that made the calls), and for `summary` where nothing is
    dropped.
    """
    checks.whole(keep_last, "keep_last", least=1)
    messages = checks.sequence(history, "history", Message)
    ordered, pending = pairing.pair((), messages)
    pairing.check_pending(pending)
    if ordered and ordered[0].role != "user":
        raise ConfigurationError(
            f"history[0] is of role {ordered[0].role}", hint="Begin a history with the user message that opened it"
        )
    starts = [
        index
        for index, message in enumerate(ordered)
        if message.role == "user" and (index == 0 or ordered[index - 1].role != "user")
    ]
    cut = starts[-keep_last] if len(starts) > keep_last else 0
    if summary is None:
        return Compacted(ordered[cut:], ordered[:cut])
    if not cut:
        raise ConfigurationError(
            f"nothing of {len(starts)} rounds is dropped, and a summary is given", hint="Leave summary out"
        )
    return Compacted((Message("user", checks.filled(summary, "summary")), *ordered[cut:]), ordered[:cut])
