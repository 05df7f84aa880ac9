"""Environment: what the model works with in every turn - instructions, sources, tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pollux_like import canonical, checks
from pollux_like.errors import ConfigurationError
from pollux_like.memo import Memo
from pollux_like.shown import Shown
from pollux_like.sources import Source
from pollux_like.tools import ToolDeclaration


@dataclass(frozen=True, slots=True, repr=False)
class Environment(Memo, Shown):
    """Deep-frozen: later changes of the caller's own lists and dicts change nothing here.

    `instructions` is the system text; `sources` stand at the head of the first user message of every request; `tools`
    are run by the application. `cache` ("auto" or "none") and `metadata` (JSON, the application's own) say nothing to
    the model and are no part of `fingerprint`.
    """

    instructions: str | None = field(default=None, repr=False)
    sources: Sequence[Source] = ()
    tools: Sequence[ToolDeclaration] = ()
    cache: str | None = None
    metadata: Mapping[str, Any] | None = field(default=None, repr=False, hash=False)

    def __post_init__(self) -> None:
        if self.instructions is not None:
            checks.filled(self.instructions, "Environment.instructions")
        object.__setattr__(self, "sources", checks.sequence(self.sources, "Environment.sources", Source))
        if isinstance(self.tools, (list, tuple)):
            for index, tool in enumerate(self.tools):
                if callable(tool):
                    raise ConfigurationError(
                        f"Environment.tools[{index}] is a function",
                        hint="Declare it with ToolDeclaration.from_function",
                    )
        object.__setattr__(self, "tools", checks.sequence(self.tools, "Environment.tools", ToolDeclaration))
        seen: set[str] = set()
        for index, tool in enumerate(self.tools):
            if tool.name in seen:
                raise ConfigurationError(
                    f"Environment.tools[{index}] repeats the name {tool.name!r}", hint="Give each tool its own name"
                )
            seen.add(tool.name)
        if self.cache is not None:
            checks.one_of(self.cache, "Environment.cache", ("auto", "none"))
        if self.metadata is not None:
            object.__setattr__(self, "metadata", checks.json_object(self.metadata, "Environment.metadata"))

    def fingerprint(self, *, provider: str) -> str:
        """SHA-256 (64 hex digits) over instructions, sources, tools and provider, as RFC 8785 JSON.

        The same in every process. It changes with anything that the model sees, the order of tools and sources
        included, and with nothing else: cache, metadata and the order of schema keys do not count.
        """
        checks.filled(provider, "provider")
        return self.remember(("fingerprint", provider), lambda: self._fingerprint(provider))

    def _fingerprint(self, provider: str) -> str:
        return canonical.sha256(canonical.canonical({"version": 1, "provider": provider, **self._identity()}))

    def _identity(self) -> dict[str, Any]:
        return {
            "instructions": self.instructions,
            "sources": [source.identity() for source in self.sources],
            "tools": [
                {"name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": tool.strict}
                for tool in self.tools
            ],
        }

    def parts(self) -> Mapping[str, str]:
        """A short digest (8 hex digits) of each of instructions, sources and tools that is there."""
        return self.remember(
            "parts",
            lambda: {
                name: canonical.sha256(canonical.canonical(part))[:8] for name, part in self._identity().items() if part
            },
        )
