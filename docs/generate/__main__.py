"""Writes the pages that are made from the code and from other pages.

    python docs/generate [PART...]            write them
    python docs/generate --check [PART...]    exit with 1 where one is stale

The parts are capabilities, reference, recipes and llms. Left out, all are written, and the last reads the others.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parent.parent
PARTS = ("capabilities", "reference", "recipes", "llms")


def main(arguments: list[str]) -> int:
    """Write or check. Returns the exit status."""
    check = "--check" in arguments
    named = [argument for argument in arguments if argument != "--check"]
    if unknown := set(named) - set(PARTS):
        print(f"There is no part {', '.join(sorted(unknown))}. Name some of: {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    stale: list[str] = []
    for part in named or PARTS:
        made: dict[str, str] = import_module(part).pages()
        for path, text in made.items():
            file = DOCS / path
            if file.is_file() and file.read_text("utf-8") == text:
                continue
            stale.append(path)
            if not check:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, "utf-8")
    if check and stale:
        print(f"{', '.join(stale)} in docs/ no longer say what the code does. Run: make docs", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
