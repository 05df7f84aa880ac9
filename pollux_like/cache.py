"""Cache: what changed before the conversation, and whether the provider read the past from its prompt cache.

Providers cache a request by its prefix: a change in what stands before the conversation (instructions, tools, sources,
the output schema; on some also tool choice and reasoning) makes them read everything anew, at the full price. The
turns themselves never change, so what broke a cache is always one of these, or time.
"""

from __future__ import annotations

from pollux_like.continuation import Continuation, size_of, turns_of
from pollux_like.output import Notice, Usage
from pollux_like.turns import Stamp

MIN_TOKENS = 4096
"""Shorter prompts may be below what a provider caches at all: the largest minimum that one documents (Anthropic, prompt
caching, cache limitations)."""
MIN_CHARS = 4 * MIN_TOKENS
"""The same for the conversation before this turn, at four characters a token: what was too short was never written."""
ENVIRONMENT = ("instructions", "sources", "tools")
_PLAIN = ("tool_choice", "parallel_tool_calls", "reasoning")
"""Parts whose words can be shown; the others are digests."""


def changes(then: Stamp, now: Stamp) -> dict[str, str]:
    """What differs between two turns in front of the conversation: by part, in words."""
    said = {name: f"{name} changed" for name in ("endpoint", "model") if getattr(then, name) != getattr(now, name)}
    if then.prefix is None or now.prefix is None:
        if then.environment != now.environment:
            said["environment"] = f"{', '.join(ENVIRONMENT[:-1])} or {ENVIRONMENT[-1]} changed"
        return said
    old, new = then.prefix, now.prefix
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        if name in _PLAIN:
            said[name] = f"{name} changed from {old.get(name, 'its default')} to {new.get(name, 'its default')}"
        else:
            said[name] = f"{name} {'added' if name not in old else 'removed' if name not in new else 'changed'}"
    return said


def broken(before: Continuation | None, now: Stamp, usage: Usage, *, media: bool) -> Notice | None:
    """A notice where nothing of a long conversation was read from the cache. `media`: the turn before or this one has
    sources of its own, which are sent once."""
    if before is None or usage.cached_tokens or usage.input_tokens < MIN_TOKENS or size_of(before) < MIN_CHARS:
        return None
    causes = list(changes(turns_of(before)[-1].stamp, now).values())
    if media:
        causes.append("sources were given for one turn only")
    why = ", ".join(causes) or "nothing before the conversation changed, so its cache had expired or was never written"
    return Notice("cache_break", f"none of {usage.input_tokens:,} input tokens were read from the cache: {why}")
