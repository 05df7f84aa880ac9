"""`pollux-like …`: chat, demo, simulate, doctor, local setup."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command. Says what to install where the extra `cli` is missing."""
    try:
        from pollux_like.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit('The command needs the extra cli. Run: pip install "pollux-like[cli]"')
    app()
