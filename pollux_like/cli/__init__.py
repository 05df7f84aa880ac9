"""`pollux-like …`: the command. See docs/command-line.md."""

from __future__ import annotations

import json
import os
import sys

NAME = "pollux-like"
COMPLETING = "_POLLUX_LIKE_COMPLETE"
"""The variable by which a shell asks for completions."""


def main() -> None:
    """Entry point of the command. Says what to install where the extra `cli` is missing."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:  # while modules are imported, or as the command ends
        sys.exit(130)


def _run() -> int:
    from pollux_like.errors import missing_extra

    try:
        from pollux_like.cli.app import app
        from pollux_like.cli.console import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich") or COMPLETING in os.environ:
            raise
        said = missing_extra("cli", error)
        facts = {"type": type(said).__name__, "message": said.message, "hint": said.hint}
        sys.exit(json.dumps({"error": facts}) if "--json" in sys.argv else f"{said.message}.\n{said.hint}.")
    return run(app, sys.argv[1:])
