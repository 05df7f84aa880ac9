"""Turns as they are stored, and back: the one place where text is redacted, checked and brought up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pollux_like import canonical, plugins
from pollux_like.continuation import FORMAT, UPCASTERS, VERSION, Continuation, turns_of
from pollux_like.errors import ConfigurationError, ContinuationError, StoreDamagedError, StoreSchemaError
from pollux_like.messages import Message
from pollux_like.output import Finish, Metrics, Notice, Output, Status, Usage
from pollux_like.provider import Vendor
from pollux_like.sealing import ContinuationSealer
from pollux_like.store.keys import Box

GENESIS = canonical.sha256(FORMAT)
"""The digest before the first turn."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens to text on its way. `redact` sees each transcript message; opaque state cannot be redacted.

    `sealer` wraps the data keys that all conversation text is sealed with.
    """

    redact: Callable[[Message], Message] | None = None
    sealer: ContinuationSealer | None = None

    def redacted(self, message: Message) -> Message:
        """The message as the transcript keeps it. Raises ConfigurationError where the hook gives something else."""
        if self.redact is None:
            return message
        result = self.redact(message)
        if not isinstance(result, Message) or result.role != message.role:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                "the redact hook gave no message of the same role", hint="Return Message(...) with other content"
            )
        return result


@dataclass(frozen=True, slots=True)
class Record:
    """One turn on its way into the store: the opaque line, and what is shown of it.

    `details`: JSON values about the answer that is neither state nor message.
    """

    digest: str
    line: str = field(repr=False)
    fingerprint: str
    finish: str
    messages: tuple[Message, ...] = field(repr=False)
    usage: Usage | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """One turn of the transcript, for display and audit: never the source of a request.

    `seq` counts the turns of the conversation from 1. `usage` is None for turns that were imported. `digest` names the
    turn as the rows do: in a sealed store it is not that of the continuation.
    """

    seq: int
    messages: tuple[Message, ...]
    finish: str
    usage: Usage | None
    fingerprint: str
    digest: str
    created_at: float
    details: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def to_jsonable(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "seq": self.seq,
            "messages": [message.to_jsonable() for message in self.messages],
            "finish": self.finish,
            "usage": None if self.usage is None else self.usage.to_jsonable(),
            "fingerprint": self.fingerprint,
            "digest": self.digest,
            "created_at": self.created_at,
            "details": dict(self.details),
        }


def lines_of(continuation: Continuation) -> tuple[str, ...]:
    """The lines of its turns, oldest first; not a copy, so that an append costs the same at every length."""
    return continuation._lines  # pyright: ignore[reportPrivateUsage]


def after(digest: str, line: str) -> str:
    """The digest of a turn by the one before it; see `pollux_like.continuation`."""
    return canonical.sha256(f"{digest}\n{line}")


def extends(continuation: Continuation, digest: str, turns: int) -> bool:
    """It is the state of that digest and number of turns, and one turn more."""
    lines = lines_of(continuation)
    return len(lines) == turns + 1 and after(digest, lines[-1]) == continuation.digest


def of_output(output: Output, continuation: Continuation) -> Record:
    """The newest turn of an output. The transcript has the whole of what the turn put before the model."""
    turn = turns_of(continuation)[-1]
    brought = len(turn.added) - sum(message.role != "assistant" for message in output.messages)
    said = tuple(message for message in output.messages[-1:] if message.role == "assistant")
    known: dict[str, Any] = {
        "raw": output.finish.raw,
        "model": output.metrics.model,
        "request_id": output.metrics.request_id,
        "brought": brought,
        "notices": [[notice.kind, notice.message] for notice in output.notices],
    }
    details = {name: value for name, value in known.items() if value}
    if output.refusal is not None:
        details["refused"] = "apart" if output.text.strip() else "said"
        if output.text.strip() and output.refusal.strip():
            said = (*said, Message("assistant", output.refusal))
    return Record(
        continuation.digest, lines_of(continuation)[-1], turn.stamp.environment, output.finish.status,
        (*turn.added, *said), output.usage, details,
    )  # fmt: skip


def of_saved(continuation: Continuation) -> list[Record]:
    """Every turn of a state that was saved elsewhere; the transcript is what `handoff` would give."""
    vendor = cast("Vendor", plugins.load(continuation.provider))
    records: list[Record] = []
    digest = GENESIS
    for turn, line in zip(turns_of(continuation), lines_of(continuation), strict=True):
        digest = after(digest, line)
        said = vendor.portable(turn).message
        messages = turn.added if said is None else (*turn.added, said)
        records.append(Record(digest, line, turn.stamp.environment, turn.status, messages))
    return records


def shown_text(record: Record, messages: Sequence[Message]) -> str:
    """What is shown of a turn as JSON text; of its usage the numbers that are not 0."""
    fields: dict[str, Any] = {"finish": record.finish, "messages": [message.to_jsonable() for message in messages]}
    if record.usage is not None:
        numbers = record.usage.to_jsonable()
        fields["usage"] = {name: number for name, number in numbers.items() if number and name != "total_tokens"}
    if record.details:
        fields["details"] = dict(record.details)
    return canonical.dumps(fields)


def shown_of(seq: int, text: str, fingerprint: str, digest: str, created_at: float) -> Shown:
    """Back from `shown_text`."""
    fields: dict[str, Any] = canonical.loads(text)
    usage = fields.get("usage")
    return Shown(
        seq, tuple(map(Message.from_jsonable, fields["messages"])), fields["finish"],
        None if usage is None else Usage(**usage), fingerprint, digest, created_at, fields.get("details", {}),
    )  # fmt: skip


def checksum(digest: str, fingerprint: str, shown: str) -> str:
    """SHA-256 over what is shown of a turn, bound to its opaque digest."""
    return canonical.sha256(f"{digest}\n{fingerprint}\n{shown}")


class Stored(NamedTuple):
    """A turn as it was read: format version, digest as the row names it, opaque line, and the box that names."""

    version: int
    digest: str
    line: str
    box: Box


def assembled(rows: Sequence[Stored], turns: int, digest: str) -> Continuation | None:
    """The continuation of rows in order; None of none.

    Each row's digest must follow from the one before it, across upcasters too: what was saved after one of them ran
    chains on what it gave. Raises StoreDamagedError where a row is missing, was changed or does not fit.
    """
    if len(rows) != turns or (rows[-1].digest if rows else GENESIS) != digest:
        raise damaged("turns are missing or do not fit the head")
    if not rows:
        return None
    newest = max(row.version for row in rows)
    if newest > VERSION:
        raise StoreSchemaError(
            f"the conversation has turns of version {newest}, this library knows up to {VERSION}",
            hint="Upgrade pollux_like on this machine",
        )
    before = GENESIS
    lines: list[str] = []
    version = rows[0].version
    for row_version, row_digest, line, box in rows:
        if row_version != version:
            lines, before = _upcast(lines, before, version, row_version)
            version = row_version
        before = after(before, line)
        if box.name(before) != row_digest:
            raise damaged(f"turn {len(lines) + 1} does not follow from the one before it")
        lines.append(line)
    saved = _saved(lines, before, version)
    provider = saved["provider"]
    try:
        return Continuation.from_jsonable(saved)
    except ContinuationError as error:
        if provider not in plugins.names():
            raise
        raise damaged(error.message) from error


def _upcast(lines: list[str], digest: str, version: int, target: int) -> tuple[list[str], str]:
    if target < version:
        raise damaged("the versions of its turns are out of order")
    fields = _saved(lines, digest, version)
    for step in range(version, target):
        fields = UPCASTERS[step](fields)
    return list(cast("list[str]", fields["turns"])), str(fields["digest"])


def _saved(lines: list[str], digest: str, version: int) -> dict[str, Any]:
    provider = ""
    try:
        provider = canonical.loads(canonical.members(lines[0])["stamp"])[0]
    except (canonical.JSONPolicyError, KeyError, IndexError) as error:
        raise damaged("its first turn names no provider") from error
    return {"format": FORMAT, "version": version, "provider": provider, "digest": digest, "turns": lines}


def damaged(why: str) -> StoreDamagedError:
    """What is stored is not what was written."""
    return StoreDamagedError(
        f"the stored conversation was changed or cut ({why})",
        hint="Restore it, or fork it before that turn",
    )


def output_of(shown: Shown, continuation: Continuation) -> Output:
    """The output of a stored turn, for a retry. Display reasoning and `structured` are not stored."""
    details = shown.details
    turn = turns_of(continuation)[-1]
    replies = shown.messages[len(turn.added) :]
    said = replies[0].content if replies else ""
    refusal = None
    match details.get("refused"):
        case "apart":
            refusal = replies[-1].content
            replies = replies[:1]
        case "said":
            said, refusal = "", said
        case _:
            pass  # no refusal
    return Output(
        text=said, refusal=refusal, tool_calls=turn.calls, continuation=continuation,
        messages=(*shown.messages[details.get("brought", 0) : len(turn.added)], *replies),
        usage=shown.usage or Usage(), finish=Finish(cast("Status", shown.finish), details.get("raw")),
        metrics=Metrics(request_id=details.get("request_id"), model=details.get("model")),
        notices=tuple(Notice(kind, message) for kind, message in details.get("notices", ())),
    )  # fmt: skip
