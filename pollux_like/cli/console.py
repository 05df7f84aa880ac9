"""The terminal: one console, and errors as two sentences instead of a traceback."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from pollux_like.errors import PolluxLikeError

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


@contextmanager
def guarded() -> Generator[None, None, None]:
    """Turn an expected error into its sentences and exit status 1."""
    try:
        yield
    except PolluxLikeError as error:
        show_error(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def show_error(error: PolluxLikeError) -> None:
    """What is so in red, what to do beneath."""
    errors.print(f"[red]{escape(error.message)}.[/red]\n{escape(error.hint)}.")
