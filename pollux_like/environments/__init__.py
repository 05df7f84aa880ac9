"""Environments: tasks whose prompt is a conversation, served over HTTP to any harness. Needs the extra `environments`.

    from pollux_like.environments import Environment, EnvironmentClient, Message, Server, TextBlock

This `Environment` is a task environment. The model-facing one, instructions and tools of a turn, is
`pollux_like.Environment`.
"""

from __future__ import annotations

from pollux_like.errors import missing_extra

try:
    import httpx2  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import starlette  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as error:
    raise missing_extra("environments", error) from None

from pollux_like.conversation import (
    ImageBlock,
    JSONObject,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSpec,
)
from pollux_like.environments.authoring import (
    Environment,
    GroupCandidate,
    GroupScore,
    Split,
    ToolOutput,
    terminal,
    tool,
)
from pollux_like.environments.bridge import Episode, History, run_episode, run_episode_sync, to_history
from pollux_like.environments.client import AsyncEnvironmentClient, Task
from pollux_like.environments.documents import TerminalTool, Tools, UnknownBlockWarning
from pollux_like.environments.export import Span, Templated, export_responses, export_text
from pollux_like.environments.http import Patience
from pollux_like.environments.limits import Limits
from pollux_like.environments.remote import AsyncSession
from pollux_like.environments.server import Server
from pollux_like.environments.sync import EnvironmentClient, Session

__all__ = [
    "AsyncEnvironmentClient",
    "AsyncSession",
    "Environment",
    "EnvironmentClient",
    "Episode",
    "GroupCandidate",
    "GroupScore",
    "History",
    "ImageBlock",
    "JSONObject",
    "Limits",
    "Message",
    "Patience",
    "ReasoningBlock",
    "Server",
    "Session",
    "Span",
    "Split",
    "Task",
    "Templated",
    "TerminalTool",
    "TextBlock",
    "ToolCallBlock",
    "ToolOutput",
    "ToolResultBlock",
    "ToolSpec",
    "Tools",
    "UnknownBlockWarning",
    "export_responses",
    "export_text",
    "run_episode",
    "run_episode_sync",
    "terminal",
    "to_history",
    "tool",
]
