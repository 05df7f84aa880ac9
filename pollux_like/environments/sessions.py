"""Sessions: one environment instance with one task each, from its birth to its teardown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import ValidationError

from pollux_like.conversation import ToolSpec
from pollux_like.environments.authoring import Environment, GroupCandidate, GroupScore, ToolOutput, overrides
from pollux_like.environments.calling import Calling
from pollux_like.environments.gate import Gate
from pollux_like.environments.limits import Limits
from pollux_like.environments.problems import Problem, Showing
from pollux_like.environments.runs import Runs
from pollux_like.environments.tasks import Hosted
from pollux_like.environments.toolbox import Tool, document, task_tools

log = logging.getLogger("pollux_like.environments")

Reason = Literal["not_found", "name_collision", "input_validation", "episode_finished"]
_GONE = "The session was deleted."


class Session:
    """`request` is the digest of the request that made it. Used on one event loop."""

    def __init__(self, hosted: Hosted, request: str, limits: Limits, calling: Calling, showing: Showing) -> None:
        self.hosted = hosted
        self.request = request
        self.touched = time.monotonic()
        self.runs = Runs(limits, showing)
        self._limits = limits
        self._calling = calling
        self._gate = Gate()
        self._environment: Environment | None = None
        self._birth: asyncio.Task[Environment] | None = None
        self._setup: asyncio.Task[None] | None = None
        self._closed: asyncio.Task[None] | None = None
        self._finished = False

    async def born(self, task: Any, secrets: Mapping[str, str]) -> None:
        """Construct the instance (`task`: an awaitable of the task), once for all who ask. Setup begins behind it."""
        if self._birth is None:
            self._birth = asyncio.create_task(self._construct(task, secrets))
        await self._instance(self._birth)

    async def _construct(self, task: Any, secrets: Mapping[str, str]) -> Environment:
        spec = await task()
        environment = await self._calling(self.hosted.cls, task_spec=spec, secrets=dict(secrets))
        self._environment = cast("Environment", environment)
        self._setup = asyncio.create_task(self._set_up(self._environment))
        return self._environment

    async def _set_up(self, environment: Environment) -> None:
        await self._calling(environment.setup)

    @property
    def stillborn(self) -> bool:
        """Whether construction has failed."""
        return self._birth is not None and self._birth.done() and self._environment is None

    @property
    def idle_s(self) -> float:
        """Seconds since the last request or running call."""
        starting = self._setup is not None and not self._setup.done()
        return 0.0 if starting or self.runs.busy else time.monotonic() - self.touched

    async def existing(self) -> Environment:
        """The instance, ready or not. Raises Problem 410 where the session was deleted meanwhile."""
        if self._birth is None or self._closed is not None:
            raise Problem(410, _GONE)
        return await self._instance(self._birth)

    async def _instance(self, birth: asyncio.Task[Environment]) -> Environment:
        await asyncio.wait([birth])  # whoever stops waiting leaves it running
        if birth.cancelled():
            raise Problem(410, _GONE)
        return birth.result()

    async def ready(self) -> Environment:
        """The instance after its setup.

        Raises Problem 503 where setup goes on, 410 where the session is deleted, and setup's own exception each time.
        """
        environment = await self.existing()
        setup = cast("asyncio.Task[None]", self._setup)
        await asyncio.wait([setup], timeout=self._limits.setup_s)
        if self._closed is not None:
            raise Problem(410, _GONE)
        if not setup.done():
            raise Problem(503, "Environment still starting.", {"X-Backend-State": "starting", "Retry-After": "2"})
        setup.result()
        return environment

    async def tools(self) -> dict[str, Any]:
        """The tools document of this task; also during setup."""
        environment = await self.existing()
        return document(self.hosted.cls, self.hosted.tools, await self._calling(environment.list_task_tools))

    async def surface(self, name: Literal["get_prompt", "get_messages"]) -> object:
        """What the author's method returns."""
        environment = await self.ready()
        return await self._calling(getattr(environment, name))

    async def call(self, name: str, input: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool: the result document of the protocol. An exception of the tool passes through."""
        environment = cast("Environment", self._environment)
        tool = self.hosted.tools.get(name)
        if tool is None or not await self._offered(environment, tool):
            return _refusal("not_found", f"There is no tool {name!r} in this task.")
        try:
            arguments = () if tool.model is None else (tool.model.model_validate(input),)
        except ValidationError as error:
            return _refusal("input_validation", _explained(error))
        async with self._gate.entered(tool):
            if self._finished:
                return _refusal("episode_finished", "The episode is finished.")
            output = await self._calling(getattr(environment, name), *arguments)
            if not isinstance(output, ToolOutput):
                raise TypeError(f"tool {name} returned {type(output).__name__}, not ToolOutput")
            document = {"ok": True, "output": output.model_dump(mode="json")}
            return self._settled(output.finished, document)

    def _settled(self, finished: bool, document: dict[str, Any]) -> dict[str, Any]:
        if self._finished:  # another call ended the episode while this one ran
            return _refusal("episode_finished", "The episode is finished.")
        self._finished = finished
        return document

    async def _offered(self, environment: Environment, tool: Tool) -> bool:
        if tool.traits.shared or tool.traits.terminal:
            return True
        given: list[str | ToolSpec] = await self._calling(environment.list_task_tools)
        return tool.name in task_tools(self.hosted.cls, self.hosted.tools, given)

    async def score(self, candidates: list[GroupCandidate]) -> dict[str, Any]:
        """Score a group. Raises what the author raises, and ValueError for another number of scores."""
        environment = cast("Environment", self._environment)
        given = cast("list[GroupScore | float]", list(await self._calling(environment.score_group, candidates)))
        if len(given) != len(candidates):
            raise ValueError(f"score_group gave {len(given)} scores for {len(candidates)} candidates")
        scores = [one if isinstance(one, GroupScore) else GroupScore(reward=one) for one in given]
        return {"scores": [one.model_dump(mode="json") for one in scores]}

    @property
    def scores_groups(self) -> bool:
        """Whether the author overrode `score_group`."""
        return overrides(self.hosted.cls, "score_group")

    async def close(self) -> None:
        """Cancel setup and calls, then tear down when the author's code has ended. Waits for it within `drain_s`."""
        if self._closed is None:
            self._closed = asyncio.create_task(self._close())
        await asyncio.wait([self._closed], timeout=self._limits.drain_s)

    async def _close(self) -> None:
        if self._birth is not None and not self._birth.done():
            self._birth.cancel()  # a constructor in a thread ends by itself
            await asyncio.wait([self._birth])
        if self._setup is not None and not self._setup.done():
            self._setup.cancel()
            await asyncio.wait([self._setup])
        await self.runs.close()
        for task in (self._birth, self._setup):
            if task is not None and not task.cancelled():
                task.exception()  # seen, so that nobody reports it as never retrieved
        if self._environment is not None:
            try:
                await self._calling(self._environment.teardown)
            except Exception:
                log.exception("teardown of %s failed", self.hosted.cls.__name__)


def _refusal(reason: Reason, error: str) -> dict[str, Any]:
    return {"ok": False, "error": error, "reason": reason}


def _explained(error: ValidationError) -> str:
    """What is wrong with the input, by field; the model reads it and can correct itself."""
    parts = [f"{'.'.join(map(str, item['loc'])) or 'input'}: {item['msg']}" for item in error.errors(include_url=False)]
    return "; ".join(parts)
