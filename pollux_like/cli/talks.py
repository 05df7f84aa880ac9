"""`pollux-like talks`: the conversations of a store."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

import typer

from pollux_like.cli.console import FAILED, FOUND, AsJSON, asked, emit, plain, put, show_error, working
from pollux_like.cli.stores import KEYS_VARIABLE, MaybeTalk, Scope, Store, Talk, members, opened, summaries
from pollux_like.errors import ConfigurationError, StoreDamagedError, StoreKeyError, UnknownConversationError
from pollux_like.store.lifecycle import Receipt

talks = typer.Typer(no_args_is_help=True, help="Conversations in a store.")

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

_NEVER = 253_402_200_000.0
"""The last day that a calendar has, in seconds since 1970."""
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def _time(seconds: float) -> str:
    if not 0 <= seconds < _NEVER:  # what was written behind the store's back
        return "-"
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


@talks.command("list")
def list_(
    store: Store = None, scope: Scope = "default", limit: Annotated[int, typer.Option(help="Most of them.")] = 100,
    before: Annotated[int | None, typer.Option(help="Number of the last one of the page before.")] = None,
    as_json: AsJSON = False,
) -> None:  # fmt: skip
    """The newest conversations first."""
    with opened(store) as open_:
        found = open_.list(scope=scope, limit=limit, before=before)
    if as_json:
        names = ("id", "number", "revision", "turns", "title", "pending", "created_at", "updated_at")
        emit({"conversations": [members(summary, *names) for summary in found]})
        return
    for one in found:
        title = f"  {plain(one.title)}" if one.title else ""
        waiting = "  pending" if one.pending else ""
        put(f"{plain(one.id)}  {one.turns} turns  {_time(one.updated_at)}{title}", (waiting, "yellow"))


@talks.command()
def show(talk: Talk, store: Store = None, scope: Scope = "default", as_json: AsJSON = False) -> None:
    """The transcript of a conversation, and what waits."""
    with opened(store) as open_:
        conversation = open_.load(talk, scope=scope)
        pending, transcript = conversation.pending, conversation.transcript()
    if as_json:
        emit({
            **members(conversation, "id", "title", "metadata", "revision"),
            "transcript": [shown.to_jsonable() for shown in transcript],
            "pending_tool_calls": [call.to_jsonable() for call in conversation.pending_tool_calls],
            "pending": None if pending is None else pending.to_jsonable(),
        })  # fmt: skip
        return
    for shown in transcript:
        for message in shown.messages:
            calls = "".join(f" → {call.name}({call.arguments_text})" for call in message.tool_calls)
            put((f"{shown.seq} ", "dim"), (message.role, "bold"), " ", plain(message.content + calls))
    for call in conversation.pending_tool_calls:
        put(("waits for the result of ", "yellow"), plain(f"{call.name} {call.id}"))
    if pending is not None:
        put(("pending ", "yellow"), plain(pending.content or "tool results"))


@talks.command()
def search(
    words: str, store: Store = None, scope: Scope = "default",
    limit: Annotated[int, typer.Option(help="Most matches.")] = 100, as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Messages that hold the words as they stand. Exit status 3 where there are none."""
    with opened(store) as open_:
        found = open_.search(words, scope=scope, limit=limit)
    if as_json:
        emit({"matches": [members(one, "id", "seq", "role", "text") for one in found]})
    else:
        for one in found:
            put(plain(one.id), (f" {one.seq} ", "dim"), (one.role, "bold"), " ", plain(one.text))
    if not found:
        raise typer.Exit(FOUND)


@talks.command()
def fork(
    talk: Talk, new_id: Annotated[str | None, typer.Argument(help="Its id; made up where none is given.")] = None,
    at: Annotated[int | None, typer.Option(help="Share the first so many turns, all by default.")] = None,
    title: Annotated[str | None, typer.Option(help="What to call it.")] = None,
    store: Store = None, scope: Scope = "default", as_json: AsJSON = False,
) -> None:  # fmt: skip
    """A new conversation that shares turns with another. Prints its id."""
    with opened(store) as open_:
        made = open_.fork(talk, new_id, scope=scope, at=at, title=title)
    if as_json:
        emit(members(made, "id", "turns", "revision"))
    else:
        put(plain(made.id))


@talks.command()
def export(
    talk: MaybeTalk = None, every: Annotated[bool, typer.Option("--all", help="All of the scope.")] = False,
    store: Store = None, scope: Scope = "default", as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Everything of a conversation as a line of JSON: state, transcript, pending input. With --all, a line for each.

    Those of --all that are damaged, or sealed with a key that was not given, are left out and named: exit status 1.
    """
    if (talk is None) is not every:
        raise ConfigurationError("an id or --all says what is exported", hint="Give one of them")
    with opened(store) as open_:
        if talk is not None:
            emit(open_.export(talk, scope=scope))
            return
        names = [one.id for one in summaries(open_, scope)]
        left_out = 0
        with working("Exporting", as_json=as_json, quiet=_seen()) as went:
            for number, name in enumerate(names, 1):
                try:
                    emit(open_.export(name, scope=scope))
                except UnknownConversationError:
                    pass  # deleted since it was listed
                except (StoreDamagedError, StoreKeyError) as error:
                    left_out += 1
                    show_error(type(error)(f"{name}: {error.message}", hint=error.hint), as_json=as_json)
                went(number, len(names))
    if left_out:
        raise typer.Exit(FAILED)


def _seen() -> bool:
    """Whether the lines of standard output are on the terminal too, among which a bar would be a mess."""
    return sys.stdout.isatty()


@talks.command()
def delete(
    talk: Talk, store: Store = None, scope: Scope = "default", yes: Yes = False, as_json: AsJSON = False
) -> None:
    """Erase a conversation: the turns that no fork shares, its transcript, effects and keys. Prints the receipt."""
    with opened(store) as open_:
        if not yes and not asked(f"Erase {plain(repr(talk))} for good?", "Give --yes"):
            raise typer.Exit(FAILED)
        receipt = open_.delete(talk, scope=scope)
    if as_json:
        emit(_receipt(receipt))
        return
    _told([receipt])


@talks.command()
def prune(
    older_than: Annotated[str, typer.Option(help="Age of the last change: 90d, or in s, m, h, w.")],
    store: Store = None, scope: Scope = "default", yes: Yes = False, as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Erase the conversations that were last changed longer ago than that. Prints the receipts."""
    age = _age(older_than)
    with opened(store) as open_:
        if not yes:
            limit = time.time() - age.total_seconds()
            count = sum(one.updated_at < limit for one in summaries(open_, scope))
            if not asked(f"Erase {count} conversations of the scope {plain(repr(scope))} for good?", "Give --yes"):
                raise typer.Exit(FAILED)
        with working("Erasing", as_json=as_json) as went:
            receipts = open_.prune(scope=scope, older_than=age, progress=went)
    if as_json:
        emit({"receipts": [_receipt(receipt) for receipt in receipts]})
        return
    put(f"{len(receipts)} conversations: {', '.join(plain(receipt.id) for receipt in receipts) or 'none is so old'}.")
    if receipts:
        _told(receipts)


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is no age: write 90d, or s, m, h, w in place of d", param_hint="--older-than"
        )
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def _receipt(receipt: Receipt) -> dict[str, object]:
    return members(receipt, "id", "turns", "messages", "effects", "kept", "digests", "keys")


def _told(receipts: Sequence[Receipt]) -> None:
    turns, messages, effects, kept = (
        sum(getattr(receipt, name) for receipt in receipts) for name in ("turns", "messages", "effects", "kept")
    )
    put(f"Erased {turns} turns, {messages} messages, {effects} effects.")
    if kept:
        put(f"{kept} turns stay, since a fork shares them.")
    keys = [key for receipt in receipts for key in receipt.keys]
    if keys:
        put(f"{len(keys)} keys are gone: {', '.join(keys)}.")


@talks.command()
def rotate(store: Store = None, as_json: AsJSON = False) -> None:
    """Wrap every data key of a sealed store, of all scopes, with the first key of POLLUX_LIKE_STORE_KEYS.

    Turns are not written anew. An older key can be dropped when this is done and no worker has it as its first.
    """
    looked = 0
    if not os.environ.get(KEYS_VARIABLE):
        raise ConfigurationError("no keys are given", hint=f"Set {KEYS_VARIABLE}, the key to wrap with first")
    with opened(store) as open_, working("Wrapping keys anew", as_json=as_json) as went:

        def progress(seen: int, rewrapped: int) -> None:
            nonlocal looked
            looked = seen
            went(seen, None)

        count = open_.rotate(progress=progress)
    if as_json:
        emit({"keys": looked, "rewrapped": count})
    else:
        put(f"{looked} keys, {count} of them wrapped anew.")


@talks.command()
def verify(talk: MaybeTalk = None, store: Store = None, scope: Scope = "default", as_json: AsJSON = False) -> None:
    """Check chains and transcripts. Exit status 3 where anything was changed, cut or corrupted."""
    with opened(store) as open_:
        report = open_.verify(talk, scope=scope)
    if as_json:
        problems = [{"id": name, "problem": problem} for name, problem in report.problems]
        emit({"conversations": report.conversations, "turns": report.turns, "problems": problems})
    else:
        for name, problem in report.problems:
            put((plain(name), "red"), f" {plain(problem)}")
        put(f"{report.conversations} conversations, {report.turns} turns, {len(report.problems)} problems.")
    if report.problems:
        raise typer.Exit(FOUND)
