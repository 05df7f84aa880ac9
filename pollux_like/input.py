"""Input: what one turn brings - text, tool results, and the conversation that it goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pollux_like import checks
from pollux_like.continuation import Continuation
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message, ToolResult
from pollux_like.shown import Shown
from pollux_like.sources import Source


@dataclass(frozen=True, slots=True, repr=False)
class Input(Shown):
    """One turn of the application.

    * `content`: the user's text. It may be left out where there is something else to answer: tool results, a history
      that ends in them, or a paused continuation.
    * `history`: the conversation so far as portable messages; `[]` opts a plain conversation into tracking.
    * `continuation`: the conversation so far as the state of an earlier `Output`. Excludes `history`.
    * `tool_results`: the results of all calls that are open, in any order.
    * `sources`: media for this turn only; never replayed. While the tool round that they opened is unfinished, give
      the same ones with each tool result.

    Raises ConfigurationError naming the field or index.
    """

    content: str | None = field(default=None, repr=False)
    history: Sequence[Message] | None = None
    continuation: Continuation | None = None
    tool_results: Sequence[ToolResult] = ()
    sources: Sequence[Source] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.content is not None:
            checks.filled(self.content, "Input.content")
        if self.history is not None:
            object.__setattr__(self, "history", checks.sequence(self.history, "Input.history", Message))
        if self.continuation is not None and not isinstance(self.continuation, Continuation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"Input.continuation is {checks.kind(self.continuation)}",
                hint="Restore saved state with Continuation.from_jsonable(...)",
            )
        if self.history is not None and self.continuation is not None:
            raise ConfigurationError("Input has both history and continuation", hint="Give only one of the two")
        object.__setattr__(self, "tool_results", checks.sequence(self.tool_results, "Input.tool_results", ToolResult))
        object.__setattr__(self, "sources", checks.sequence(self.sources, "Input.sources", Source))
        if self.content is None and not self.tool_results and not self._answerable():
            raise ConfigurationError(
                "Input brings nothing that the model could answer",
                hint="Give content, tool_results, a history that ends in tool results, or a paused continuation",
            )

    def _answerable(self) -> bool:
        if self.continuation is not None:  # paused or with open calls: the turn decides, with a better message
            return True
        return self.history is not None and self.history[-1:] != () and self.history[-1].role == "tool"
