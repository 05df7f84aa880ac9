"""The cookbook's own command: lists the recipes and runs one.

    python -m cookbook list [--json]
    python -m cookbook run NAME [ARGUMENTS...]

A recipe is a file of this folder. Its docstring has a title and sections; this module is their only reader.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
USAGE = "Usage: python -m cookbook list [--json], or: python -m cookbook run NAME [ARGUMENTS...]"
HEADINGS = ("Problem", "Run", "Success check", "Real model")

_SECTION = re.compile(rf"^({'|'.join(HEADINGS)}): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the docstring of a recipe says, each text on one line.

    `run` is the command, `notes` what is said about it, `file` a path in the project.
    """

    name: str
    title: str
    problem: str
    run: str
    notes: str
    success_check: str
    real_model: str
    file: str


def read(file: Path) -> Recipe:
    """Read the docstring of a recipe. Raises ValueError where a section is missing or stands out of order."""
    head, *parts = _SECTION.split(ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "")
    if tuple(parts[::2]) != HEADINGS:
        raise ValueError(f"{file.name} has the sections {parts[::2]}. Give it {', '.join(HEADINGS)}.")
    problem, run, *rest = parts[1::2]
    said = [" ".join(text.split()) for text in (head, problem, *run.partition("\n")[::2], *rest)]
    return Recipe(file.stem, *said, f"{FOLDER.name}/{file.name}")


def recipes() -> dict[str, Path]:
    """The file of each recipe by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("[!_]*.py"))}


def show(text: str) -> int:
    """Print. A reader that has gone, as `head` does, is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def main(arguments: list[str]) -> int:
    """Do what the command line says. Returns the exit status; a recipe may end the process with its own."""
    match arguments:
        case ["list"]:
            width = max(map(len, recipes()))
            return show("\n".join(f"{one.name:{width}}  {one.problem}" for one in map(read, recipes().values())))
        case ["list", "--json"]:
            return show(json.dumps([asdict(read(file)) for file in recipes().values()], indent=2))
        case ["run", name, *rest] if name in recipes():
            sys.argv = [str(recipes()[name]), *rest]
            runpy.run_path(sys.argv[0], run_name="__main__")
            return 0
        case ["run", name, *_]:
            print(f"There is no recipe {name[:80]!r}. Run `python -m cookbook list`.", file=sys.stderr)
            return 2
        case ["-h" | "--help"]:
            print(USAGE)
            return 0
        case _:
            print(f"That is no command of the cookbook. {USAGE}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
