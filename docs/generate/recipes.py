"""The page of the cookbook: what each recipe is for, how it is run, and how one sees that it worked."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

COOKBOOK = Path(__file__).parent.parent.parent / "cookbook"

HEAD = """<!-- Written by docs/generate from the docstrings of the recipes. Do not edit: run `make docs`. -->

# Cookbook

Whole programs, one file each, in `cookbook/` of the repository. They run offline, on a stand-in for the
model or the embedded one, and the tests run them. From the repository's folder, with what they need:

```bash
pip install ".[openai,anthropic,gemini,simulator,environments,seal]"
python -m cookbook list
python -m cookbook run chat_loop "I am Sean."
```

`make demo` has installed all of it into `.venv`: run `.venv/bin/python` then. What one recipe needs beside stands with
it. `list --json` is for programs. Each recipe is a script too, and writes its files where it is run:
`python cookbook/chat_loop.py`. For Temporal there is [a page of its own](temporal.md).
"""


def pages() -> dict[str, str]:
    """The page, by its path in docs/."""
    main = runpy.run_path(str(COOKBOOK / "__main__.py"))
    read: list[Any] = [main["read"](file) for file in main["recipes"]().values()]
    return {"cookbook.md": "\n".join([HEAD, *map(_section, read)])}


def _section(recipe: Any) -> str:
    return f"""## {recipe.name}

{recipe.title} [Source](../{recipe.file})

* **Problem**: {recipe.problem}
* **Run**: `{recipe.run}`{recipe.notes and f". {recipe.notes}"}
* **Success check**: {recipe.success_check}
* **Real model**: {recipe.real_model}
"""
