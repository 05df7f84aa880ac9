"""The client of environment servers, for asyncio and trio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import anyio
import httpx2

from pollux_like import checks
from pollux_like.conversation import JSONObject, ToolSpec, convert_tools
from pollux_like.environments.documents import Tools, tools_of
from pollux_like.environments.http import (
    Patience,
    Wire,
    list_of,
    malformed,
    object_of,
    secrets_header,
    text_of,
    value_of,
)
from pollux_like.environments.remote import AsyncSession
from pollux_like.errors import ConfigurationError, EnvironmentServerError, PolluxLikeError

DELETE_S = 60.0
"""Longest that leaving a session takes, in seconds; the server deletes an idle one by itself."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of an environment: its `spec` as the server gave it, and the `environment` that it belongs to."""

    spec: JSONObject = field(repr=False)
    environment: str | None = None

    def __getitem__(self, key: str) -> Any:
        return self.spec[key]


class AsyncEnvironmentClient:
    """One environment of a server.

        async with AsyncEnvironmentClient("http://127.0.0.1:8080") as environment:
            task = (await environment.list_tasks("train"))[0]
            async with environment.session(task=task) as session:
                messages = await session.get_messages(format="openai")

    `environment`: its name; else the server's first. `token` is sent to this server only, and no key of any account is
    read; of the environment variables those of proxies count. Every request is bounded by `timeout_s` and `patience`.
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
        checks.address(base_url, "base_url")
        self._ping_s = checks.number(ping_s, "ping_s", least=0.01, most=3600)
        self._own = client is None
        if token is not None:
            checks.key(token, "token")
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        timeout = httpx2.Timeout(checks.number(timeout_s, "timeout_s", least=0.001, most=86_400))
        made = client or httpx2.AsyncClient(timeout=timeout, limits=limits)
        self._wire = Wire(made, base_url.rstrip("/"), token, patience or Patience())
        self._name = None if environment is None else checks.filled(environment, "environment").lower()

    async def aclose(self) -> None:
        """Close the connections; a client of your own stays open."""
        if self._own:
            await self._wire.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    async def list_environments(self) -> list[str]:
        """The names of the server's environments, the default first."""
        names = list_of(await self._value("GET", "/list_environments"), "the list of environments")
        return [text_of(name, "the name of an environment") for name in names]

    async def name(self) -> str:
        """The name of this environment in paths."""
        if self._name is None:
            names = await self.list_environments()
            if not names:
                raise EnvironmentServerError("the server has no environment", hint="Check base_url")
            self._name = names[0]
        return self._name

    async def list_splits(self) -> list[str]:
        """The names of the splits."""
        found = list_of(await self._own_value("GET", "/splits"), "the list of splits")
        return [text_of(object_of(split, "a split").get("name"), "the name of a split") for split in found]

    async def list_tasks(self, split: str) -> list[Task]:
        """All tasks of a split."""
        return self._tasks(await self._own_value("POST", "/tasks", {"split": split}))

    async def num_tasks(self, split: str) -> int:
        """How many tasks a split has."""
        found = object_of(await self._own_value("POST", "/num_tasks", {"split": split}), "the number of tasks")
        count = found.get("num_tasks")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise malformed("the number of tasks is no number")
        return count

    async def get_task(self, split: str, index: int) -> Task:
        """One task; a negative index counts from the end."""
        found = object_of(await self._own_value("POST", "/task", {"split": split, "index": index}), "the task")
        return Task(object_of(found.get("task"), "the task"), _name(found))

    async def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Task]:
        """A slice of the tasks."""
        return self._tasks(await self._own_value("POST", "/task_range", {"split": split, "start": start, "stop": stop}))

    def _tasks(self, value: object) -> list[Task]:
        found = object_of(value, "the list of tasks")
        return [Task(object_of(task, "a task"), _name(found)) for task in list_of(found.get("tasks"), "tasks")]

    async def tools(self) -> Tools:
        """The tools document of the class."""
        return tools_of(await self._own_value("GET", "/tools"))

    async def list_tools(self, format: str | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools of the class, in the shape of a format; those of a task are its session's."""
        return convert_tools((await self.tools()).tools, format)

    @asynccontextmanager
    async def session(
        self,
        task: Task | JSONObject | None = None,
        *,
        split: str | None = None,
        index: int | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AsyncSession, None]:
        """A session for a task, or for number `index` of a `split`; kept alive inside, deleted on leaving.

        `secrets` reach the environment's constructor. Raises EnvironmentServerError where it cannot be made.
        """
        body: dict[str, Any]
        if task is not None and split is None and index is None:
            spec = task.spec if isinstance(task, Task) else task
            name = task.environment if isinstance(task, Task) else None
            body = {"env_name": name or await self.name(), "task_spec": checks.json_object(spec, "task")}
        elif task is None and split is not None and index is not None:
            name = await self.name()
            body = {"env_name": name, "split": split, "index": index}
        else:
            raise ConfigurationError("a session needs one task", hint="Give task, or split and index")
        session = AsyncSession(self._wire, str(body["env_name"]), body.get("task_spec"))
        failure: BaseException | None = None
        cancelled = anyio.get_cancelled_exc_class()
        try:
            await session.create(body, secrets_header(secrets))
            async with anyio.create_task_group() as group:
                group.start_soon(session.keep_alive, self._ping_s)
                try:
                    yield session
                except cancelled:
                    raise
                except BaseException as error:  # noqa: BLE001  # raised below, outside of the group, which would wrap it
                    failure = error
                group.cancel_scope.cancel()
        except EnvironmentServerError:  # of `create`: there is nothing to delete
            raise
        except BaseException as error:
            failure = error
            await _ended(session, failure)
            raise
        await _ended(session, failure)
        if failure is not None:
            raise failure

    async def _value(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return value_of((await self._wire.send(method, path, body))[0])

    async def _own_value(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return await self._value(method, f"/{quote(await self.name(), safe='')}{path}", body)


def _name(found: Mapping[str, Any]) -> str | None:
    name = found.get("env_name")
    return None if name is None else text_of(name, "env_name")


async def _ended(session: AsyncSession, failure: BaseException | None) -> None:
    """Delete the session, also where the caller was cancelled; a failure to do so does not hide another one."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(DELETE_S):
        try:
            await session.delete()
        except PolluxLikeError as error:
            if failure is None:
                raise
            failure.add_note(f"The session could not be deleted: {error}")
