"""The effects ledger: a tool's execution is recorded around its side effect, so that after a crash a loop knows.

Per call of the open round: never begun (run it), done (use the result), or unknown - claimed by a worker that may be
alive or dead. No clock decides that: the application does, with `resolve` or `release`.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import anyio
import anyio.lowlevel
import anyio.to_thread

from pollux_like import canonical, checks
from pollux_like.errors import ConfigurationError, StoreError, UnknownEffectError
from pollux_like.messages import ToolCall, ToolResult
from pollux_like.store import rows
from pollux_like.store.database import Database, Transaction
from pollux_like.store.keys import Box
from pollux_like.store.rows import Head

_OF = "conversation = (SELECT number FROM pollux_like_conversations WHERE scope = ? AND number = ?)"
_KEY = f"{_OF} AND turn = ? AND call_id = ? AND arguments_digest = ?"
_CLAIM = (
    "INSERT INTO pollux_like_effects (conversation, turn, call_id, arguments_digest, state, owner) "
    "SELECT number, ?, ?, ?, 'claimed', ? FROM pollux_like_conversations WHERE scope = ? AND number = ? "
    "ON CONFLICT DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class Effect:
    """What the ledger knows of a call. `result` where `status` is "done"."""

    call_id: str
    status: Literal["run", "done", "unknown"]
    result: ToolResult | None = None


def arguments_digest(call: ToolCall) -> str:
    """SHA-256 over the tool's name and the arguments as the model wrote them."""
    return canonical.sha256(canonical.dumps([call.name, call.arguments_text]))


def checked(call: ToolCall) -> ToolCall:
    """Raises ConfigurationError for what is no call."""
    if not isinstance(call, ToolCall):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"call is {checks.kind(call)}", hint="Pass one of pending_tool_calls")
    return call


class Effects:
    """The ledger of one conversation, at the turn whose calls are open.

    Keyed by conversation, turn, call id and arguments digest: providers may use a call id again in a later turn. `turn`
    names that turn, and `box` is the conversation's. One worker wins a claim; to everybody else the call is unknown
    until it is done. Every method raises UnknownConversationError where the conversation was deleted.
    """

    def __init__(self, database: Database, box: Box, head: Head) -> None:
        self._database = database
        self._box = box
        self._head = head
        self._place = (head.scope, head.number)
        self.turn = head.digest
        self._claims: dict[str, str] = {}

    async def claim(self, call: ToolCall) -> Effect:
        """ "run": this worker, and no other, is to execute it. Otherwise what is known."""
        token = uuid.uuid4().hex
        key = self._key(call)

        def work(tx: Transaction) -> Effect:
            self._hold(tx)
            row = self._row(tx, call)
            if row is not None and row[1] != token:
                return self._effect(call, row)
            tx.run(_CLAIM, *key, token, *self._place)
            return Effect(call.id, "run")

        def known(effect: Effect) -> None:
            if effect.status == "run":
                self._claims[call.id] = token

        # Running it again is safe: the token says whose claim the row is.
        return await self._database.write(work, again=True, known=known)

    async def done(self, call: ToolCall, result: ToolResult) -> Effect:
        """Record the result of a call that this object claimed. Raises StoreError where the claim is not its own."""
        token = self._claims.get(checked(call).id)
        if token is None:
            raise StoreError(f"tool call {call.id[:80]!r} was not claimed here", hint="Call claim first, or resolve")
        return await self._finished(call, result, token)

    async def resolve(self, call: ToolCall, result: ToolResult) -> Effect:
        """Decide that an unknown call was done, with this result. The result that stands is returned."""
        return await self._finished(call, result, None)

    async def release(self, call: ToolCall) -> None:
        """Decide that an unknown call was never executed: the next claim runs it. A call that is done stays done."""
        key = self._key(call)
        sql = f"DELETE FROM pollux_like_effects WHERE {_KEY} AND state = 'claimed'"

        def work(tx: Transaction) -> None:
            self._hold(tx)
            tx.run(sql, *self._place, *key)

        await self._database.write(work, again=True, known=lambda done: self._forget(call))

    async def status(self, call: ToolCall) -> Effect:
        """What a claim would find, without claiming: "run" where nobody has."""
        checked(call)

        def work(tx: Transaction) -> tuple[Any, ...] | None:
            rows.get(tx, self._head.scope, self._head.id, self._head.number)
            return self._row(tx, call)

        row = await self._database.read(work)
        return Effect(call.id, "run") if row is None else self._effect(call, row)

    async def run(self, call: ToolCall, function: Callable[..., Any]) -> ToolResult:
        """Claim, execute, record. The result is the recorded one where the call was done before.

        `function` gets the arguments by name; it may be async, a blocking one runs in a thread. It returns JSON values
        or a ToolResult. Arguments that it does not take are the model's mistake: nothing is executed, and the result
        says so with `is_error`. Raises UnknownEffectError where the call was begun and not finished, and
        ToolCallParseError for arguments that are no object. What `function` raises goes on to the caller, and the call
        is then unknown.
        """
        arguments = checked(call).arguments_dict()
        misfit = _misfit(function, arguments)
        try:
            if misfit is None:
                effect = await self.claim(call)
            else:
                effect = await self._unrun(
                    call, ToolResult(call.id, f"{call.name} was not run: {misfit}", is_error=True)
                )
        except anyio.get_cancelled_exc_class():
            if call.id in self._claims:  # the claim was written, and the tool is not begun
                with anyio.CancelScope(shield=True):
                    await self.release(call)
            raise
        if effect.status == "unknown":
            raise UnknownEffectError(
                f"tool call {call.id[:80]!r} was begun, and it is not known whether it was done",
                hint="Look at the tool's own records, then call effects.resolve(call, result) or effects.release(call)",
            )
        if effect.result is not None:
            return effect.result
        value = await _executed(function, arguments)
        result = value if isinstance(value, ToolResult) else ToolResult.from_value(call_id=call.id, value=value)
        with anyio.CancelScope(shield=True):  # the effect has happened: its record is not given up
            await self.done(call, result)
        await anyio.lowlevel.checkpoint_if_cancelled()
        return result

    async def _unrun(self, call: ToolCall, result: ToolResult) -> Effect:
        """Record a result without an execution, in one transaction: the call is never unknown. What stands is kept."""
        token, key = uuid.uuid4().hex, self._key(call)

        def work(tx: Transaction) -> Effect:
            self._hold(tx)
            row = self._row(tx, call)
            if row is None:
                tx.run(_CLAIM, *key, token, *self._place)
                self._finish(tx, call, result, token)
                row = self._row(tx, call)
            assert row is not None  # the conversation is held, so the claim was written
            return self._effect(call, row)

        return await self._database.write(work, again=True)

    def _finish(self, tx: Transaction, call: ToolCall, result: ToolResult, token: str | None) -> None:
        """Record a result of a claim: of any owner where no token is given."""
        saved = canonical.dumps([result.content, result.is_error])
        owner, owners = ("", ()) if token is None else (" AND owner = ?", (token,))
        tx.run(
            f"UPDATE pollux_like_effects SET state = 'done', result = ? WHERE {_KEY} AND state = 'claimed'{owner}",
            self._box.seal(saved, self._spot(call)), *self._place, *self._key(call), *owners,
        )  # fmt: skip

    async def _finished(self, call: ToolCall, result: ToolResult, token: str | None) -> Effect:
        if not isinstance(result, ToolResult) or result.call_id != checked(call).id:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError("the result answers another call", hint="Give ToolResult(call.id, ...)")

        def work(tx: Transaction) -> Effect:
            self._hold(tx)
            self._finish(tx, call, result, token)
            row = self._row(tx, call)
            effect = None if row is None else self._effect(call, row)
            if effect is None or effect.status != "done" or (token is not None and effect.result != result):
                raise StoreError(
                    f"tool call {call.id[:80]!r} is not claimed, or was decided otherwise",
                    hint="Look at it with effects.status(call)",
                )
            return effect

        return await self._database.write(work, again=True, known=lambda effect: self._forget(call))

    def _forget(self, call: ToolCall) -> None:
        self._claims.pop(call.id, None)

    def _hold(self, tx: Transaction) -> None:
        """No deletion comes between the statements of a change."""
        rows.hold(tx, self._head.scope, self._head.id, self._head.number)

    def _key(self, call: ToolCall) -> tuple[str, str, str]:
        return self.turn, canonical.dumps(checked(call).id), self._box.name(arguments_digest(call))

    def _spot(self, call: ToolCall) -> str:
        return canonical.dumps(["effect", *self._key(call)])

    def _row(self, tx: Transaction, call: ToolCall) -> tuple[Any, ...] | None:
        sql = f"SELECT state, owner, result FROM pollux_like_effects WHERE {_KEY}"
        return tx.one(sql, *self._place, *self._key(call))

    def _effect(self, call: ToolCall, row: tuple[Any, ...]) -> Effect:
        if row[0] != "done":
            return Effect(call.id, "unknown")
        content, is_error = canonical.loads(self._box.unseal(row[2], self._spot(call)))
        return Effect(call.id, "done", ToolResult(call.id, content, is_error))


async def _executed(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    value = await anyio.to_thread.run_sync(partial(function, **arguments))
    return await value if inspect.isawaitable(value) else value


def _misfit(function: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """Why the function does not take these arguments by name; None where it does, or says nothing of what it takes."""
    try:
        taken = inspect.signature(function, follow_wrapped=False)  # a wrapper may bring arguments of its own
    except (TypeError, ValueError):  # of builtins; no function at all fails when it is executed
        return None
    try:
        taken.bind(**arguments)
    except TypeError as error:
        return str(error)
    return None
