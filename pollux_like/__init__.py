"""pollux_like keeps an LLM conversation going: over turns, tool calls, crashes, processes, machines and providers."""

from typing import TYPE_CHECKING

from pollux_like.config import Config
from pollux_like.continuation import Continuation
from pollux_like.counting import count_tokens
from pollux_like.environment import Environment
from pollux_like.errors import (
    APIError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    ContextOverflowError,
    ContinuationError,
    PolluxLikeError,
    ProviderTimeoutError,
    RateLimitError,
    SourceError,
    StoreError,
    StreamInterruptedError,
    StructuredOutputError,
    ToolCallParseError,
)
from pollux_like.handoff import Handoff, handoff
from pollux_like.history import Compacted, compact
from pollux_like.input import Input
from pollux_like.messages import Message, ToolCall, ToolResult
from pollux_like.output import Event, Finish, Metrics, Notice, Output, Usage
from pollux_like.session import Session
from pollux_like.sources import Source
from pollux_like.tools import ToolChoice, ToolDeclaration
from pollux_like.turn import interact, stream

if TYPE_CHECKING:
    from pollux_like.sealing import ContinuationSealer
    from pollux_like.store import open_store
else:

    def __getattr__(name):
        """What a turn does not need is loaded when it is first asked for: it is a fifth of the import."""
        if name == "open_store":
            from pollux_like.store import open_store as found
        elif name == "ContinuationSealer":
            from pollux_like.sealing import ContinuationSealer as found
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return found

    def __dir__():
        """Also the names that are not loaded yet: for completion, help() and inspect."""
        return sorted({*globals(), *__all__})


__all__ = [
    "APIError",
    "AuthenticationError",
    "Compacted",
    "Config",
    "ConfigurationError",
    "ConflictError",
    "ContextOverflowError",
    "Continuation",
    "ContinuationError",
    "ContinuationSealer",
    "Environment",
    "Event",
    "Finish",
    "Handoff",
    "Input",
    "Message",
    "Metrics",
    "Notice",
    "Output",
    "PolluxLikeError",
    "ProviderTimeoutError",
    "RateLimitError",
    "Session",
    "Source",
    "SourceError",
    "StoreError",
    "StreamInterruptedError",
    "StructuredOutputError",
    "ToolCall",
    "ToolCallParseError",
    "ToolChoice",
    "ToolDeclaration",
    "ToolResult",
    "Usage",
    "compact",
    "count_tokens",
    "handoff",
    "interact",
    "open_store",
    "stream",
]
