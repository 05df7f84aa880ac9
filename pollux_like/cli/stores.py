"""The store that a command works on: its options, its opening, and the completion of what is in it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from pollux_like.errors import ConfigurationError
from pollux_like.sealing import ContinuationSealer
from pollux_like.store.opening import file_of
from pollux_like.store.rows import Summary
from pollux_like.store.sync import ConversationStore, open_store

VARIABLE = "POLLUX_LIKE_STORE"
KEYS_VARIABLE = "POLLUX_LIKE_STORE_KEYS"
"""The keys of a sealed store, the one to seal with first, separated by commas. No option: those are seen by others."""
LOOKUP_S = 1.0
"""How long a shell waits for the completion of an id."""
OFFERED = 200
"""Most ids that are offered."""
PAGE = 1000
_OFFERED = re.compile(r"[\w@%+,.:/][\w@%+,.:/-]*")
"""Ids that a shell takes as they stand. Others are not offered: bash would put a `;` or a `$(...)` on the line."""


def ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The newest conversations of the store and scope on the line; nothing where they cannot be had in time."""
    url, scope = ctx.params.get("store") or os.environ.get(VARIABLE), ctx.params.get("scope") or "default"

    def look() -> list[str]:
        named, sealer = source(url)
        with open_store(named, sealer=sealer, migrate=False) as store:
            return [one.id for one in store.list(scope=scope, limit=OFFERED)]

    found = within(LOOKUP_S, look)
    return [name for name in found if name.startswith(incomplete) and _OFFERED.fullmatch(name)]


def within(seconds: float, look: Callable[[], list[str]]) -> list[str]:
    """What a look-up gives, or nothing: a shell shows no error, and does not wait."""
    found: list[str] = []

    def quietly() -> None:
        try:
            found.extend(look())
        except Exception:  # noqa: BLE001  # whatever it is, there is nothing to offer
            return

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(seconds)
    return list(found)


Store = Annotated[
    str | None, typer.Option("--store", envvar=VARIABLE, help="sqlite:///file.db, postgresql://...", show_envvar=True)
]
Scope = Annotated[str, typer.Option(help="The tenant.")]
Talk = Annotated[str, typer.Argument(metavar="ID", help="The conversation.", autocompletion=ids)]
MaybeTalk = Annotated[
    str | None, typer.Argument(metavar="ID", help="One; all of the scope by default.", autocompletion=ids)
]


@contextmanager
def opened(url: str | None, *, making: bool = False) -> Generator[ConversationStore]:
    """The store of an option, closed at the end. Raises ConfigurationError, and what opening it raises.

    A file that is not there is an error, and so are tables that are missing or older, unless a conversation is to be
    made: whoever looks changes nothing, least of all in the database of another program.
    """
    named, sealer = source(url, making=making)
    with open_store(named, sealer=sealer, migrate=making) as store:
        yield store


def source(url: str | None, *, making: bool = False) -> tuple[str, ContinuationSealer | None]:
    """The URL of an option and the sealer of the environment. Raises ConfigurationError; see `opened`."""
    if not url:
        raise ConfigurationError("no store is named", hint="Give --store, or set POLLUX_LIKE_STORE")
    file = file_of(url)
    if file is not None and not making and not os.path.exists(file):  # a path that cannot be is none, too
        raise ConfigurationError(f"there is no store at {str(file)[:500]!r}", hint="Look at the path of --store")
    keys = [key.strip() for key in os.environ.get(KEYS_VARIABLE, "").split(",") if key.strip()]
    return url, ContinuationSealer(keys) if keys else None


def summaries(store: ConversationStore, scope: str) -> Iterator[Summary]:
    """Every conversation of a scope, the newest first."""
    before: int | None = None
    while page := store.list(scope=scope, limit=PAGE, before=before):
        yield from page
        before = page[-1].number


def members(value: Any, *names: str) -> dict[str, Any]:
    """Some attributes of a value, by name, as JSON has them."""
    return {name: getattr(value, name) for name in names}
