"""The page of the cookbook: what each recipe is for, how it is run, and how one sees that it worked."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

COOKBOOK = Path(__file__).parent.parent.parent / "cookbook"

HEAD = """<!-- Written by docs/generate from the docstrings of the recipes. Do not edit: run `make docs`. -->

# Cookbook

Whole programs, one file each, in `cookbook/` of the repository. They run offline, on a stand-in for the
model or the embedded one, and the tests run them. From the repository's folder:

```bash
python -m cookbook list
python -m cookbook run chat_loop "I am Sean."
```

`list --json` is for programs. Each recipe is a script too: `python cookbook/chat_loop.py`. It writes its files where it
is run. For Temporal there is [a page of its own](temporal.md).
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
