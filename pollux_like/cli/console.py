"""The terminal: one console, and errors as two sentences instead of a traceback."""

from __future__ import annotations

import unicodedata
from collections.abc import Generator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from pollux_like.errors import PolluxLikeError

console = Console(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)

_UNSEEN = ("Cc", "Cs", "Zl", "Zp")
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What turns the direction of the text around it."""


def plain(text: object) -> str:
    """Text of others for a terminal: what steers it, or hides what is said, is shown as its code."""
    return "".join(
        repr(letter)[1:-1]
        if letter not in "\n\t" and (unicodedata.category(letter) in _UNSEEN or letter in _TURNING)
        else letter
        for letter in str(text)
    )


def put(*parts: str | tuple[str, str], to: Console = console, end: str = "\n") -> None:
    """Print parts, each a text or (text, style), to the letter: no markup, no emoji by name, no wrapping."""
    to.print(Text.assemble(*parts), soft_wrap=True, end=end)


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
    put((f"{plain(error.message)}.", "red"), f"\n{plain(error.hint)}.", to=errors)
