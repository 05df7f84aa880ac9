"""Calls over a stream: taken up again where they were cut, and never run a second time."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, cast

import anyio
import httpx2

from pollux_like import canonical
from pollux_like.environments import sse
from pollux_like.environments.http import (
    RETRIED,
    SAID,
    STARTING,
    Wire,
    malformed,
    object_of,
    refusal,
    shortened,
    unreachable,
    whole,
)
from pollux_like.errors import ToolFailedError

_LOST = "the tool may have had its effect"


class _Cut(Exception):  # a step of the loop
    """The stream ended without its end."""


class StreamedCall:
    """One call: `sid`, path and body. `call_ids`: the server knows our own ids, so a call can be sent again safely."""

    def __init__(self, wire: Wire, sid: str, path: str, body: Mapping[str, Any], *, call_ids: bool) -> None:
        self._wire = wire
        self._sid = sid
        self._path = path
        self._body = dict(body)
        self._task_id: str | None = None
        self._headers = {"X-Call-ID": uuid.uuid4().hex} if call_ids else {}

    async def result(self) -> dict[str, Any]:
        """The result document.

        Raises ToolFailedError where the tool failed, or where its stream was cut so that nobody can say whether it
        ran; EnvironmentServerError where the server refused the call.
        """
        patience, cuts, refused = self._wire.patience, 0, 0
        deadline = anyio.current_time() + patience.start_s
        while True:
            try:
                answer = await self._once()
            except httpx2.ConnectError as error:  # nothing was sent
                cuts += 1
                if cuts > (patience.reconnects if self._task_id else patience.attempts):
                    raise unreachable(error) from None
                await anyio.sleep(patience.wait_s(cuts))
            except (_Cut, httpx2.TransportError, httpx2.StreamError):
                cuts += 1
                if self._task_id is None and not self._headers:
                    raise ToolFailedError(
                        f"the connection was cut before the server named the call: {_LOST}",
                        hint="Decide whether it can be called again",
                    ) from None
                if cuts > patience.reconnects:
                    raise ToolFailedError(
                        f"the stream of the call was cut {cuts} times: {_LOST}", hint="Check the way to the server"
                    ) from None
                await anyio.sleep(patience.wait_s(cuts))
            except httpx2.RequestError as error:
                raise unreachable(error) from None
            else:
                if isinstance(answer, dict):
                    return answer
                refused += 1
                starting = answer.headers.get(STARTING) == "starting" and anyio.current_time() < deadline
                if answer.status_code not in RETRIED or (refused >= patience.attempts and not starting):
                    raise refusal(answer)
                await anyio.sleep(patience.wait_s(refused, answer))

    async def _once(self) -> dict[str, Any] | httpx2.Response:
        body = self._body if self._task_id is None else {**self._body, "task_id": self._task_id}
        async with self._wire.stream(self._path, body, sid=self._sid, headers=self._headers) as answer:
            if answer.status_code != 200:
                return await whole(answer)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise malformed("a call was answered without a stream")
            return await self._read(answer)

    async def _read(self, answer: httpx2.Response) -> dict[str, Any]:
        text: list[str] = []
        answer.encoding = "utf-8-sig"  # whatever the header says: an event stream has no other
        try:
            chunks = cast("AsyncGenerator[str, None]", answer.aiter_text())
            async with aclosing(sse.read(chunks)) as events:
                async for event in events:
                    match event.event:
                        case "task_id":
                            self._task_id = event.data
                        case "chunk":
                            text.append(event.data)
                        case "end":
                            return _parsed("".join((*text, event.data)))
                        case "error":
                            said = shortened(event.data, SAID)
                            raise ToolFailedError(f"the call failed: {said}", hint="Look at the server's log")
                        case _:
                            pass  # the protocol may grow
        except sse.TooLong as error:
            raise malformed(str(error)) from None
        except httpx2.DecodingError:
            raise malformed("its compression is broken") from None
        raise _Cut


def _parsed(text: str) -> dict[str, Any]:
    try:
        return object_of(canonical.loads(text), "the result")
    except canonical.JSONPolicyError as error:
        raise malformed(f"the result: {error}") from None
