"""A session on an environment server, as the client holds it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, overload
from urllib.parse import quote

import anyio
import httpx2

from pollux_like import checks
from pollux_like.conversation import (
    ImageBlock,
    JSONObject,
    Message,
    TextBlock,
    ToolSpec,
    convert,
    convert_tools,
    decode_messages,
)
from pollux_like.conversation.formats import Converted, ListFormat, ObjectFormat, check_format
from pollux_like.environments.authoring import GroupCandidate, GroupScore, ToolOutput
from pollux_like.environments.calls import StreamedCall
from pollux_like.environments.documents import Tools, output_of, tools_of, warn
from pollux_like.environments.http import Wire, detail_of, list_of, malformed, object_of, value_of
from pollux_like.errors import ConfigurationError, EnvironmentServerError

_NO_ROUTE = "Not Found"
"""How a server says that it lacks a route; a dead session has other words."""


class AsyncSession:
    """Made by `AsyncEnvironmentClient.session`. `sid` is its id, which alone gives access to it."""

    def __init__(self, wire: Wire, environment: str, task: JSONObject | None) -> None:
        self.sid = uuid.uuid4().hex
        self.environment = environment
        self.task = task
        self._wire = wire
        self._path = f"/{quote(environment, safe='')}"
        self._tools: Tools | None = None
        self._gone = False

    async def create(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Instantiate the environment. A reply that was lost is asked for again."""
        answer, lost = await self._wire.send("POST", "/create", body, sid=self.sid, headers=headers)
        if answer.status_code == 400 and lost:  # the first attempt arrived: the id is ours alone
            answer, _ = await self._wire.send("POST", "/ping", sid=self.sid)
        value_of(answer)

    async def delete(self) -> None:
        """End it on the server; already gone is no error."""
        if not self._gone:
            value_of((await self._wire.send("POST", "/delete", sid=self.sid))[0])

    async def keep_alive(self, every_s: float) -> None:
        """Ping until cancelled, or until the server says that the session is gone."""
        while not self._gone:
            await anyio.sleep(every_s)
            try:
                answer, _ = await self._wire.send("POST", "/ping", sid=self.sid)
            except EnvironmentServerError:
                continue  # the next request of the caller will say so
            self._gone = answer.status_code in (404, 410)

    @overload
    async def get_messages(self, format: None = None) -> list[Message]: ...
    @overload
    async def get_messages(self, format: ListFormat) -> list[dict[str, Any]]: ...
    @overload
    async def get_messages(self, format: ObjectFormat) -> dict[str, Any]: ...
    @overload
    async def get_messages(self, format: str | None) -> Converted: ...
    async def get_messages(self, format: str | None = None) -> Converted:
        """The task as a conversation, in a provider's form where `format` names one.

        A server older than 0.1.157 has none; its prompt is wrapped as one user message. Blocks of a later version are
        left out with an UnknownBlockWarning. Raises FormatError (a ValueError) for what the format cannot hold.
        """
        if format is not None:
            check_format(format)
        answer, _ = await self._wire.send("GET", f"{self._path}/messages", sid=self.sid)
        if answer.status_code == 404 and await self._is_old():
            return convert([Message(role="user", blocks=list(await self.get_prompt()))], format)
        decoded = decode_messages(value_of(answer))
        if decoded.skipped:
            warn(decoded.skipped)
        return convert(decoded.messages, format)

    async def _is_old(self) -> bool:
        return (await self.tools()).message_block_types is None

    async def get_prompt(self) -> list[TextBlock | ImageBlock]:
        """The task as blocks."""
        answer, _ = await self._wire.send("GET", f"{self._path}/prompt", sid=self.sid)
        decoded = decode_messages([{"role": "user", "blocks": value_of(answer)}])
        if decoded.skipped:
            warn(decoded.skipped)
        blocks = decoded.messages[0].blocks if decoded.messages else []
        return [block for block in blocks if isinstance(block, (TextBlock, ImageBlock))]

    async def tools(self) -> Tools:
        """The tools document of the task, read once; that of the class where the server has no other."""
        if self._tools is None:
            answer, _ = await self._wire.send("GET", f"{self._path}/task_tools", sid=self.sid)
            if _no_route(answer):
                answer, _ = await self._wire.send("GET", f"{self._path}/tools", sid=self.sid)
            self._tools = tools_of(value_of(answer))
        return self._tools

    @overload
    async def list_tools(self, format: None = None) -> list[ToolSpec]: ...
    @overload
    async def list_tools(self, format: str) -> list[dict[str, Any]]: ...
    async def list_tools(self, format: str | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools of the task, in the shape that goes with messages of the same format."""
        return convert_tools((await self.tools()).tools, format)

    async def call_tool(self, name: str, input: JSONObject | None = None) -> ToolOutput:
        """Run a tool. A cut stream is taken up again; the tool is not run again.

        Raises ToolRefusedError where it was not run (its `reason` says why), ToolFailedError where it failed or may
        have been run, EnvironmentServerError for the rest.
        """
        checks.filled(name, "name of the tool")
        body = {"name": name, "input": checks.maybe_object(input, "input of the tool")}
        return output_of(await self._streamed("call", body))

    async def call_terminal_tool(self, message: str = "") -> ToolOutput:
        """Give the final answer to the terminal tool. Raises ConfigurationError where there is none."""
        final = (await self.tools()).terminal
        if final is None:
            raise ConfigurationError("the environment has no terminal tool", hint="Check tools().terminal first")
        return await self.call_tool(final.name, {} if final.arg is None else {final.arg: message})

    async def score_group(self, candidates: Sequence[GroupCandidate]) -> list[GroupScore]:
        """Score several answers against each other.

        Raises ConfigurationError where the environment does not, and for blocks that the server does not know.
        """
        tools = await self.tools()
        if not tools.scores_groups:
            raise ConfigurationError("the environment does not score groups", hint="Check tools().scores_groups first")
        given = checks.sequence(candidates, "candidates", GroupCandidate)
        known = tools.message_block_types or ("text", "image")
        used = {block.type for one in given for message in one.messages for block in message.blocks}
        if not used <= set(known):
            raise ConfigurationError(
                f"the server does not know blocks of type {', '.join(sorted(used - set(known)))}",
                hint="Leave them out of the candidates",
            )
        found = await self._streamed("score_group", {"candidates": [one.model_dump() for one in given]})
        scores = [object_of(one, "a score") for one in list_of(found.get("scores"), "scores")]
        if len(scores) != len(given):
            raise malformed(f"{len(scores)} scores for {len(given)} candidates")
        try:
            return [GroupScore(reward=one["reward"], metadata=one.get("metadata")) for one in scores]
        except (KeyError, ValueError):
            raise malformed("a score has no reward that is a number") from None

    async def _streamed(self, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
        call_ids = (await self.tools()).call_ids
        return await StreamedCall(self._wire, self.sid, f"{self._path}/{route}", body, call_ids=call_ids).result()


def _no_route(answer: httpx2.Response) -> bool:
    return answer.status_code == 404 and detail_of(answer) == _NO_ROUTE
