"""The client for code that is not async: the same sessions, on the loop that `pollux_like.sync` keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx2

from pollux_like import sync as _sync
from pollux_like.conversation import ImageBlock, JSONObject, Message, TextBlock, ToolSpec
from pollux_like.conversation.formats import Converted, ListFormat, ObjectFormat
from pollux_like.environments.authoring import GroupCandidate, GroupScore, ToolOutput
from pollux_like.environments.client import AsyncEnvironmentClient, Task
from pollux_like.environments.documents import Tools
from pollux_like.environments.http import Patience
from pollux_like.environments.remote import AsyncSession

T = TypeVar("T")
_loop = _sync._loop  # pyright: ignore[reportPrivateUsage]


def call(function: Callable[[], Awaitable[T]]) -> T:
    """Run on the background loop."""
    return _loop.call(function)


class Session:
    """See `AsyncSession`; every method is the same."""

    def __init__(self, session: AsyncSession) -> None:
        self.asynchronous = session

    @property
    def sid(self) -> str:
        """Its id."""
        return self.asynchronous.sid

    @property
    def task(self) -> JSONObject | None:
        """Its task, where the caller gave one."""
        return self.asynchronous.task

    @overload
    def get_messages(self, format: None = None) -> list[Message]: ...
    @overload
    def get_messages(self, format: ListFormat) -> list[dict[str, Any]]: ...
    @overload
    def get_messages(self, format: ObjectFormat) -> dict[str, Any]: ...
    @overload
    def get_messages(self, format: str | None) -> Converted: ...
    def get_messages(self, format: str | None = None) -> Converted:
        """The task as a conversation."""
        return call(lambda: self.asynchronous.get_messages(format))

    def get_prompt(self) -> list[TextBlock | ImageBlock]:
        """The task as blocks."""
        return call(self.asynchronous.get_prompt)

    def tools(self) -> Tools:
        """The tools document of the task."""
        return call(self.asynchronous.tools)

    @overload
    def list_tools(self, format: None = None) -> list[ToolSpec]: ...
    @overload
    def list_tools(self, format: str) -> list[dict[str, Any]]: ...
    def list_tools(self, format: str | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools of the task."""
        if format is None:
            return call(self.asynchronous.list_tools)
        return call(lambda: self.asynchronous.list_tools(format))

    def call_tool(self, name: str, input: JSONObject | None = None) -> ToolOutput:
        """Run a tool."""
        return call(lambda: self.asynchronous.call_tool(name, input))

    def call_terminal_tool(self, message: str = "") -> ToolOutput:
        """Give the final answer to the terminal tool."""
        return call(lambda: self.asynchronous.call_terminal_tool(message))

    def score_group(self, candidates: Sequence[GroupCandidate]) -> list[GroupScore]:
        """Score several answers against each other."""
        return call(lambda: self.asynchronous.score_group(candidates))


class EnvironmentClient:
    """One environment of a server; see `AsyncEnvironmentClient`.

    with EnvironmentClient("http://127.0.0.1:8080") as environment:
        task = environment.list_tasks("train")[0]
        with environment.session(task=task) as session:
            messages = session.get_messages(format="openai")
    """

    def __init__(
        self,
        base_url: str,
        *,
        environment: str | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        patience: Patience | None = None,
        ping_s: float = 60.0,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.asynchronous = AsyncEnvironmentClient(
            base_url, environment=environment, token=token, timeout_s=timeout_s, patience=patience, ping_s=ping_s,
            client=client,
        )  # fmt: skip

    def close(self) -> None:
        """Close the connections."""
        call(self.asynchronous.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def list_environments(self) -> list[str]:
        """The names of the server's environments."""
        return call(self.asynchronous.list_environments)

    def list_splits(self) -> list[str]:
        """The names of the splits."""
        return call(self.asynchronous.list_splits)

    def list_tasks(self, split: str) -> list[Task]:
        """All tasks of a split."""
        return call(lambda: self.asynchronous.list_tasks(split))

    def num_tasks(self, split: str) -> int:
        """How many tasks a split has."""
        return call(lambda: self.asynchronous.num_tasks(split))

    def get_task(self, split: str, index: int) -> Task:
        """One task."""
        return call(lambda: self.asynchronous.get_task(split, index))

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Task]:
        """A slice of the tasks."""
        return call(lambda: self.asynchronous.get_task_range(split, start, stop))

    def list_tools(self, format: str | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools of the class."""
        return call(lambda: self.asynchronous.list_tools(format))

    @contextmanager
    def session(
        self,
        task: Task | JSONObject | None = None,
        *,
        split: str | None = None,
        index: int | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Generator[Session, None, None]:
        """A session for a task; kept alive inside, deleted on leaving."""
        opened = self.asynchronous.session(task, split=split, index=index, secrets=secrets)
        left: BaseException | None = None
        with _loop.portal().wrap_async_context_manager(opened) as session:
            try:
                yield Session(session)
            except Exception:
                raise
            except BaseException as error:  # noqa: BLE001  # an interrupt raised on the shared loop would end it
                left = error
        if left is not None:
            raise left
