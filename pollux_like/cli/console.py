"""The terminal: what commands say, as text or as JSON, how long work shows itself, and how a command ends."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.segment import Segment, Segments

from pollux_like.cli import COMPLETING, NAME
from pollux_like.errors import ConfigurationError, PolluxLikeError

DONE = 0
FAILED = 1
"""An expected error, in two sentences."""
WRONG_USAGE = 2
FOUND = 3
"""The command did what it was asked, and the answer is the bad one: no match, or damage."""
INTERRUPTED = 130
GONE = 141
"""Whoever read the output closed it; the status that a shell gives for SIGPIPE."""

_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

AsJSON = Annotated[bool, typer.Option("--json", help="JSON for programs on standard output, and errors as JSON.")]


class _Terminal(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints; raises ConfigurationError where nothing more can be written."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            raise _full(error) from None

    def on_broken_pipe(self) -> None:
        _gone()


console = _Terminal(highlight=False, emoji=False)
errors = _Terminal(stderr=True, highlight=False, emoji=False)

_UNSEEN = ("Cc", "Cs", "Zl", "Zp")
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What turns the direction of the text around it."""
_CODES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""What JSON lets stand in a text, and a terminal obeys or a reader of lines cuts at."""


def plain(text: object) -> str:
    """Text of others for a terminal: what steers it, or hides what is said, is shown as its code."""
    return "".join(
        repr(letter)[1:-1]
        if letter not in "\n\t" and (unicodedata.category(letter) in _UNSEEN or letter in _TURNING)
        else letter
        for letter in str(text)
    )


def put(*parts: str | tuple[str, str], to: Console | None = None, end: str = "\n") -> None:
    """Print parts, each a text or (text, style), to the letter: no markup, no wrapping, tabs as tabs."""
    to = to or console
    pairs = ((part, "") if isinstance(part, str) else part for part in (*parts, end))
    to.print(Segments([Segment(text, to.get_style(style)) for text, style in pairs]), soft_wrap=True, end="")


def emit(value: Any) -> None:
    """One JSON value as a line of standard output, at once."""
    plainly = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    try:
        print(json.dumps(value, ensure_ascii=plainly, allow_nan=False).translate(_CODES), flush=True)
    except BrokenPipeError:
        _gone()
    except OSError as error:
        raise _full(error) from None


def notes(as_json: bool) -> Console:
    """Where a command tells people how it goes: beside the JSON, never in it."""
    return errors if as_json else console


def show_error(error: PolluxLikeError, *, as_json: bool) -> None:
    """What is so in red, what to do beneath; or one JSON object. Both on standard error."""
    _show(type(error).__name__, error.message, error.hint, as_json)


def _show(kind: str, message: str, hint: str, as_json: bool) -> None:
    if as_json:
        text = json.dumps({"error": {"type": kind, "message": message, "hint": hint}})
        put(text, to=errors)
    else:
        put((f"{plain(message)}.", "red"), f"\n{plain(hint)}.", to=errors)


@contextmanager
def working(label: str, *, as_json: bool, quiet: bool = False) -> Generator[Callable[[int, int | None], None]]:
    """Show that work goes on, while it does, on a standard error that is a terminal; never beside JSON.

    Gives a function for how far it is: the number done, and of how many (None where nobody knows).
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    far = (BarColumn(), MofNCompleteColumn())
    off = quiet or as_json or not sys.stderr.isatty()
    # Standard output is not redirected: what is printed there meanwhile is the command's own.
    bar = Progress(
        *columns, TimeElapsedColumn(), console=errors, transient=True, disable=off, redirect_stdout=False,
        redirect_stderr=False,
    )  # fmt: skip
    task = bar.add_task(label, total=None)

    def went(done: int, total: int | None) -> None:
        bar.columns = (*columns, *far, TimeElapsedColumn())
        bar.update(task, completed=done, total=total)

    with bar:
        yield went


def asked(question: str, hint: str) -> bool:
    """What the person at the terminal says. Raises ConfigurationError with the hint where nobody is there."""
    if not sys.stdin.isatty():
        raise ConfigurationError(f"nobody is there to answer: {question}", hint=hint)
    return typer.confirm(question, err=True)


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command. Its exit status: see the constants of this room."""
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed before the command began
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # as long as the process
    # What this terminal has no letters for is shown as codes; bytes that are no text are refused, under LANG=C too.
    shown = "backslashreplace"
    for stream, handling in ((sys.stdin, "strict"), (sys.stdout, shown), (sys.stderr, shown)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=handling)
    try:
        status: Any = app(list(arguments), prog_name=NAME, standalone_mode=False)
    except PolluxLikeError as error:
        show_error(error, as_json=as_json)
        return FAILED
    except typer.TyperException as error:
        return _usage(error, as_json)
    except typer.Abort:  # Ctrl-C or the end of input, at a question
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _UNWRITTEN:
            raise
        show_error(_full(error), as_json=as_json)  # of the help, which is not printed by this room
        return FAILED
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # of the help, whose status would be that of an error
            _gone()
        if COMPLETING in os.environ:  # a look-up that hangs in a thread does not hold the shell
            sys.stdout.flush()
            os._exit(error.code if isinstance(error.code, int) else DONE)
        raise
    return status if isinstance(status, int) else DONE


def _usage(error: typer.TyperException, as_json: bool) -> int:
    message = error.format_message().rstrip(".")
    if message:  # a command without arguments has printed its help, and says nothing more
        path = getattr(getattr(error, "ctx", None), "command_path", NAME)
        _show("UsageError", message, f"Run: {path} --help", as_json)
    return error.exit_code


def _gone() -> NoReturn:
    """End without a word: nobody reads."""
    _dropped()
    raise SystemExit(GONE)


def _full(error: OSError) -> ConfigurationError:
    _dropped()
    return ConfigurationError(
        f"the output cannot be written ({error.strerror or 'it is closed'})", hint="Look at where it is sent"
    )


def _dropped() -> None:
    """What is still to be written goes nowhere: the interpreter would try again as it ends, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
