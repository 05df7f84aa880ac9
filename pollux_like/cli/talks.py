"""`pollux-like talks`: the conversations of a store - and `chat --store`, a conversation that lives in one."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

import typer

from pollux_like import checks
from pollux_like.cli import chat as chat_room
from pollux_like.cli.console import errors, guarded, plain, put, show_error
from pollux_like.config import Config
from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError, PolluxLikeError, UnknownConversationError
from pollux_like.input import Input
from pollux_like.sealing import ContinuationSealer
from pollux_like.store.inputs import Pending
from pollux_like.store.opening import file_of
from pollux_like.store.sync import Conversation, ConversationStore, open_store

KEYS_VARIABLE = "POLLUX_LIKE_STORE_KEYS"
"""The keys of a sealed store, the one to seal with first, separated by commas. No option: those are seen by others."""

talks = typer.Typer(no_args_is_help=True, help="Conversations in a store.")

Store = Annotated[
    str | None, typer.Option("--store", envvar="POLLUX_LIKE_STORE", help="sqlite:///file.db, postgresql://...")
]
Scope = Annotated[str, typer.Option(help="The tenant.")]
AsJSON = Annotated[bool, typer.Option("--json", help="JSON for programs.")]
Talk = Annotated[str, typer.Argument(metavar="ID", help="The conversation.")]


@contextmanager
def opened(url: str | None, *, making: bool = False) -> Generator[ConversationStore, None, None]:
    """The store of an option, closed at the end; expected errors become exit status 1.

    A file that is not there is an error, unless a conversation is to be made in it.
    """
    with guarded():
        named, sealer = source(url, making=making)
        with open_store(named, sealer=sealer) as store:
            yield store


def source(url: str | None, *, making: bool = False) -> tuple[str, ContinuationSealer | None]:
    """The URL of an option and the sealer of the environment. Raises ConfigurationError; see `opened`."""
    if not url:
        raise ConfigurationError("no store is named", hint="Give --store, or set POLLUX_LIKE_STORE")
    file = file_of(url)
    if file is not None and not making and not file.exists():
        raise ConfigurationError(f"there is no store at {str(file)!r}", hint="Look at the path of --store")
    keys = [key.strip() for key in os.environ.get(KEYS_VARIABLE, "").split(",") if key.strip()]
    return url, ContinuationSealer(keys) if keys else None


def _brought(pending: Pending) -> str:
    return plain(pending.content or "tool results")


def _json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _time(seconds: float) -> str:
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
            _json([{name: getattr(summary, name) for name in names} for summary in found])
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
        pending = conversation.pending
        if as_json:
            _json({
                "id": conversation.id, "title": conversation.title, "metadata": conversation.metadata,
                "revision": conversation.revision,
                "transcript": [shown.to_jsonable() for shown in conversation.transcript()],
                "pending_tool_calls": [call.to_jsonable() for call in conversation.pending_tool_calls],
                "pending": None if pending is None else pending.to_jsonable(),
            })  # fmt: skip
            return
        for shown in conversation.transcript():
            for message in shown.messages:
                calls = "".join(f" → {call.name}({call.arguments_text})" for call in message.tool_calls)
                put((f"{shown.seq} ", "dim"), (message.role, "bold"), " ", plain(message.content + calls))
        for call in conversation.pending_tool_calls:
            put(("waits for the result of ", "yellow"), plain(f"{call.name} {call.id}"))
        if pending is not None:
            put(("pending ", "yellow"), _brought(pending))


@talks.command()
def search(
    words: str, store: Store = None, scope: Scope = "default",
    limit: Annotated[int, typer.Option(help="Most matches.")] = 100, as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Messages that hold the words as they stand. Exit status 1 where there are none."""
    with opened(store) as open_:
        found = open_.search(words, scope=scope, limit=limit)
        if as_json:
            _json([{"id": one.id, "seq": one.seq, "role": one.role, "text": one.text} for one in found])
        else:
            for one in found:
                put(plain(one.id), (f" {one.seq} ", "dim"), (one.role, "bold"), " ", plain(one.text))
        if not found:
            raise typer.Exit(1)


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
            _json({"id": made.id, "turns": made.turns, "revision": made.revision})
        else:
            put(plain(made.id))


@talks.command()
def export(talk: Talk, store: Store = None, scope: Scope = "default", as_json: AsJSON = True) -> None:
    """Everything of a conversation as JSON: state, transcript, pending input."""
    with opened(store) as open_:
        _json(open_.export(talk, scope=scope))


@talks.command()
def delete(
    talk: Talk, store: Store = None, scope: Scope = "default",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Erase a conversation: the turns that no fork shares, its transcript, effects and keys. Prints the receipt."""
    with opened(store) as open_:
        if not yes:
            _ask(f"Erase {talk!r} for good?", "Give --yes")
        receipt = open_.delete(talk, scope=scope)
        if as_json:
            names = ("id", "turns", "messages", "effects", "kept", "digests", "keys")
            _json({name: getattr(receipt, name) for name in names})
            return
        put(f"Erased {receipt.turns} turns, {receipt.messages} messages, {receipt.effects} effects.")
        if receipt.kept:
            put(f"{receipt.kept} turns stay, since a fork shares them.")
        if receipt.keys:
            put(f"{len(receipt.keys)} keys are gone: {', '.join(receipt.keys)}.")


@talks.command()
def verify(
    talk: Annotated[str | None, typer.Argument(metavar="ID", help="One; all of the scope by default.")] = None,
    store: Store = None, scope: Scope = "default", as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Check chains and transcripts. Exit status 1 where anything was changed, cut or corrupted."""
    with opened(store) as open_:
        report = open_.verify(talk, scope=scope)
        if as_json:
            problems = [{"id": name, "problem": problem} for name, problem in report.problems]
            _json({"conversations": report.conversations, "turns": report.turns, "problems": problems})
        else:
            for name, problem in report.problems:
                put((plain(name), "red"), f" {plain(problem)}")
            put(f"{report.conversations} conversations, {report.turns} turns, {len(report.problems)} problems.")
        if report.problems:
            raise typer.Exit(1)


def _ask(question: str, hint: str) -> None:
    """A question whose "no" ends the command. Raises ConfigurationError where nobody can answer."""
    if not sys.stdin.isatty():
        raise ConfigurationError("nobody is there to be asked", hint=hint)
    typer.confirm(question, abort=True)


def chat(
    url: str, talk: str, scope: str, prompt: str | None, provider: str | None, model: str | None,
    instructions: str | None, max_tokens: int | None, take_up: bool | None,
) -> None:  # fmt: skip
    """The chat of `pollux-like chat`, durable: each input and each answer is in the store when it is shown."""
    checks.filled(talk, "--talk")
    environment = Environment(instructions=instructions)
    with opened(url, making=True) as store:
        try:
            conversation = store.load(talk, scope=scope)
        except UnknownConversationError:
            conversation = store.create(talk, scope=scope)
        config = chat_room.choose(provider, model, conversation.continuation)
        chat_room.announce(config)
        _settle(conversation, environment, config, max_tokens, take_up)
        for line in chat_room.lines(prompt):
            try:
                with conversation.stream(
                    environment, Input(line), config, key=uuid.uuid4().hex, max_tokens=max_tokens
                ) as events:
                    chat_room.shown(events)
            except PolluxLikeError as error:
                show_error(error)
                if prompt is not None:
                    raise typer.Exit(1) from None


def _settle(
    conversation: Conversation, environment: Environment, config: Config, max_tokens: int | None, take_up: bool | None
) -> None:
    """Take up or give up an input that has no answer, as was said or as the person at the terminal says."""
    pending, state = conversation.pending, conversation.continuation
    if pending is None:
        if state is not None and state.paused:  # the model is not done, and nobody has to be asked
            put(plain(conversation.resume(environment, config, max_tokens=max_tokens).text))
        return
    put(("No answer came to: ", "yellow"), _brought(pending), to=errors)
    if take_up is None:
        if not sys.stdin.isatty():
            raise ConfigurationError("an input is pending", hint="Give --take-up to send it again, or --give-up")
        take_up = typer.confirm("Send it again?")
    if not take_up:
        conversation.discard_pending()
    elif pending.key is None:
        put(plain(conversation.resume(environment, config, max_tokens=max_tokens).text))
    else:
        with conversation.stream(
            environment, pending.input((), state), config, key=pending.key, max_tokens=max_tokens
        ) as events:
            chat_room.shown(events)
