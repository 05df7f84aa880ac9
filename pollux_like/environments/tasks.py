"""The tasks of one served class: read once per server, never shared between classes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pollux_like import canonical, checks
from pollux_like.environments.authoring import Environment, Split, check_class, overrides
from pollux_like.environments.calling import Calling
from pollux_like.environments.problems import Problem
from pollux_like.environments.toolbox import Tool, tools_of


class Hosted:
    """An environment class on a server: `key` is its name in paths, lower-case."""

    def __init__(self, given: object, calling: Calling) -> None:
        self.cls: type[Environment] = check_class(given)
        self.key = self.cls.__name__.lower()
        self.tools: Mapping[str, Tool] = tools_of(self.cls)
        self._calling = calling
        self._splits: list[Split] | None = None
        self._tasks: dict[str, list[dict[str, Any]]] = {}
        self._lock: asyncio.Lock | None = None

    async def splits(self) -> list[Split]:
        """The splits, in the author's order."""
        if self._splits is None:
            given = cast("Sequence[Split | str]", await self._calling(self.cls.list_splits))
            self._splits = [Split.of(split) for split in given]
        return self._splits

    async def _known(self, split: str) -> None:
        names = [one.name for one in await self.splits()]
        if split not in names:
            raise Problem(400, f"There is no such split. Known: {', '.join(names) or 'none'}.")

    async def tasks(self, split: str) -> list[dict[str, Any]]:
        """All tasks of a split. Raises Problem 400 where the split is unknown or cannot be listed."""
        await self._known(split)
        if not overrides(self.cls, "list_tasks"):
            raise Problem(400, "This environment does not list its tasks; ask for one by index.")
        if self._lock is None:  # belongs to the loop that it is made on
            self._lock = asyncio.Lock()
        async with self._lock:
            if split not in self._tasks:
                given = cast("Sequence[object]", await self._calling(self.cls.list_tasks, split))
                self._tasks[split] = [self._task(task, f"{split}[{at}]") for at, task in enumerate(given)]
        return self._tasks[split]

    async def count(self, split: str) -> int:
        """How many tasks a split has."""
        await self._known(split)
        if overrides(self.cls, "num_tasks"):
            return checks.whole(await self._calling(self.cls.num_tasks, split), "num_tasks", least=0)
        return len(await self.tasks(split))

    async def task(self, split: str, index: int) -> dict[str, Any]:
        """One task; a negative index counts from the end. Raises Problem 400 out of range."""
        total = await self.count(split)
        at = index + total if index < 0 else index
        if not 0 <= at < total:
            raise Problem(400, f"The index is out of range: the split has {total} tasks.")
        if overrides(self.cls, "get_task"):
            return self._task(await self._calling(self.cls.get_task, split, at), f"{split}[{at}]")
        return checks.copied_object((await self.tasks(split))[at])  # an author may change the one that he gets

    async def range(self, split: str, start: int | None, stop: int | None) -> list[dict[str, Any]]:
        """A slice by Python's rules; reversed bounds give nothing."""
        total = await self.count(split)
        if overrides(self.cls, "get_task"):
            return [await self.task(split, at) for at in range(*slice(start, stop).indices(total))]
        return (await self.tasks(split))[start:stop]

    def _task(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError(f"task {where} of {self.cls.__name__} is {checks.kind(value)}, not a dict")
        task = dict(cast("Mapping[str, Any]", value))
        canonical.check_value(task, path=f"task {where}")
        return task
