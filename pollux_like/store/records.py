"""Turns as they are stored, and back: the one place where text is redacted, checked and brought up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pollux_like import canonical, checks, plugins
from pollux_like.continuation import FORMAT, UPCASTERS, VERSION, Continuation, turns_of
from pollux_like.errors import ConfigurationError, ContinuationError, StoreDamagedError, StoreSchemaError
from pollux_like.messages import Message
from pollux_like.output import Finish, Metrics, Notice, Output, Status, Usage
from pollux_like.provider import Vendor
from pollux_like.sealing import ContinuationSealer
from pollux_like.store.keys import Box

GENESIS = canonical.sha256(FORMAT)
"""The digest before the first turn."""


WITHHELD = "[withheld: the redact hook failed]"
"""Stands in the transcript for a message that could not be redacted."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens to text on its way. `redact` sees each transcript message once; opaque state cannot be redacted.

    `sealer` wraps the data keys that all conversation text is sealed with.
    """

    redact: Callable[[Message], Message] | None = None
    sealer: ContinuationSealer | None = None

    def redacted(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Notice, ...]]:
        """The messages as the transcript keeps them.

        Where the hook raises, or gives no message of the same role, its message is withheld, and a notice says so: the
        answer was paid for, and the turn is stored.
        """
        if self.redact is None:
            return tuple(messages), ()
        kept: list[Message] = []
        notices: list[Notice] = []
        for message in messages:
            why = "gave no message of the same role"
            try:
                result: object = self.redact(message)
            except Exception as error:  # noqa: BLE001  the application's own code: whatever it raises
                result, why = None, f"raised {type(error).__name__}"
            if not isinstance(result, Message) or result.role != message.role:
                result = replace(message, content=WITHHELD, tool_calls=())
                notices.append(
                    Notice("redaction_failed", f"the redact hook {why}: a {message.role} message is withheld")
                )
            kept.append(result)
        return tuple(kept), tuple(notices)


@dataclass(frozen=True, slots=True)
class Record:
    """One turn on its way into the store: the opaque line, and what is shown of it.

    `messages`: as the redact hook left them. `details`: JSON values about the answer that is neither state nor message.
    `said`: text and refusal as JSON text, where the messages do not tell them to the letter; it belongs to the state.
    """

    digest: str
    line: str = field(repr=False)
    fingerprint: str
    finish: str
    messages: tuple[Message, ...] = field(repr=False)
    usage: Usage | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    said: str | None = field(default=None, repr=False)


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


def check_follows(output: Output, before: Continuation | None, turns: int) -> None:
    """Raises ConfigurationError for what is no output of the very next turn."""
    if not isinstance(output, Output):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"output is {checks.kind(output)}", hint="Pass what interact gave")
    made = output.continuation
    if made is None or not extends(made, before.digest if before else GENESIS, turns):
        raise ConfigurationError(
            f"the output does not follow turn {turns} of this conversation",
            hint="Append the output of the very next turn; track the first with Input(history=[])",
        )


def of_output(output: Output, continuation: Continuation, policy: Policy) -> tuple[Record, Output]:
    """The newest turn of an output, and the output with a notice for each message that is withheld.

    The transcript has the whole of what the turn put before the model.
    """
    turn = turns_of(continuation)[-1]
    brought = len(turn.added) - sum(message.role != "assistant" for message in output.messages)
    said = tuple(message for message in output.messages[-1:] if message.role == "assistant")
    if output.refusal is not None and output.text.strip() and output.refusal.strip():
        said = (*said, Message("assistant", _encodable(output.refusal)))
    messages, notices = policy.redacted((*turn.added, *said))
    output = replace(output, notices=(*output.notices, *notices))
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
    spoken = (output.text, output.refusal)
    apart = None if _spoken(messages[len(turn.added) :], details) == spoken else _encodable(canonical.dumps(spoken))
    record = Record(
        continuation.digest, lines_of(continuation)[-1], turn.stamp.environment, output.finish.status, messages,
        output.usage, details, apart,
    )  # fmt: skip
    return record, output


def _encodable(text: str) -> str:
    """Without lone surrogates, which a provider may send and UTF-8 does not have."""
    return text.encode("utf-8", "replace").decode()


def of_saved(continuation: Continuation, policy: Policy) -> list[Record]:
    """Every turn of a state that was saved elsewhere; the transcript is what `handoff` would give."""
    vendor = cast("Vendor", plugins.load(continuation.provider))
    records: list[Record] = []
    digest = GENESIS
    for turn, line in zip(turns_of(continuation), lines_of(continuation), strict=True):
        digest = after(digest, line)
        said = vendor.portable(turn).message
        messages, notices = policy.redacted(turn.added if said is None else (*turn.added, said))
        details = {"notices": [[notice.kind, notice.message] for notice in notices]} if notices else {}
        records.append(Record(digest, line, turn.stamp.environment, turn.status, messages, details=details))
    return records


def shown_text(record: Record) -> str:
    """What is shown of a turn as JSON text; of its usage the numbers that are not 0."""
    messages = [message.to_jsonable() for message in record.messages]
    fields: dict[str, Any] = {"finish": record.finish, "messages": messages}
    if record.usage is not None:
        numbers = record.usage.to_jsonable()
        fields["usage"] = {name: number for name, number in numbers.items() if number and name != "total_tokens"}
    if record.details:
        fields["details"] = dict(record.details)
    return _encodable(canonical.dumps(fields))


def shown_of(seq: int, text: str, fingerprint: str, digest: str, created_at: float) -> Shown:
    """Back from `shown_text`."""
    fields: dict[str, Any] = canonical.loads(text)
    usage = fields.get("usage")
    return Shown(
        seq, tuple(map(Message.from_jsonable, fields["messages"])), fields["finish"],
        None if usage is None else Usage(**usage), fingerprint, digest, created_at, fields.get("details", {}),
    )  # fmt: skip


def checksum(digest: str, fingerprint: str, shown: str, said: str | None) -> str:
    """SHA-256 over what is shown of a turn, and what was said where that stands apart, bound to its opaque digest."""
    return canonical.sha256("\n".join((digest, fingerprint, shown, *(() if said is None else (said,)))))


@dataclass(frozen=True, slots=True)
class Stored:
    """A turn as it was read: format version, digest as the row names it, opaque line, and the box that names."""

    version: int
    digest: str
    line: str = field(repr=False)
    box: Box = field(repr=False)


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
    for row in rows:
        if row.version != version:
            lines, before = _upcast(lines, before, version, row.version)
            version = row.version
        before = after(before, row.line)
        if row.box.name(before) != row.digest:
            raise damaged(f"turn {len(lines) + 1} does not follow from the one before it")
        lines.append(row.line)
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


def output_of(shown: Shown, apart: str | None, continuation: Continuation) -> Output:
    """The output of a stored turn, for a retry. Display reasoning and `structured` are not stored.

    What was said is that of the model, whatever the redact hook left of it in the transcript.
    """
    details = shown.details
    turn = turns_of(continuation)[-1]
    spoken = _spoken(shown.messages[len(turn.added) :], details) if apart is None else canonical.loads(apart)
    text, refusal = spoken
    said = text if text.strip() else refusal or ""
    answer = (Message("assistant", said, turn.calls),) if said.strip() or turn.calls else ()
    return Output(
        text=text, refusal=refusal, tool_calls=turn.calls, continuation=continuation,
        messages=(*turn.added[details.get("brought", 0) :], *answer),
        usage=shown.usage or Usage(), finish=Finish(cast("Status", shown.finish), details.get("raw")),
        metrics=Metrics(request_id=details.get("request_id"), model=details.get("model")),
        notices=tuple(Notice(kind, message) for kind, message in details.get("notices", ())),
    )  # fmt: skip


def _spoken(replies: Sequence[Message], details: Mapping[str, Any]) -> tuple[str, str | None]:
    """Text and refusal as the transcript tells them."""
    said = replies[0].content if replies else ""
    match details.get("refused"):
        case "apart":
            return said, replies[-1].content
        case "said":
            return "", said
        case _:
            return said, None
