"""The site: Sphinx reads the pages of this folder as they are, and the navigation from the links of index.md.

Warnings are errors (see `make docs-site`): a link, an anchor or a page outside the navigation that does not fit.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "generate"))

import llms

project = "pollux_like"
extensions = ["myst_parser"]
exclude_patterns = ["generate"]
nitpicky = True
myst_heading_anchors = 4

html_theme = "furo"
html_title = "pollux_like"
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["llms.txt", "llms-full.txt"]
html_static_path = ["site.css"]
html_css_files = ["site.css"]


def add_navigation(app: Any, name: str, source: list[str]) -> None:
    """Give the index one hidden tree per section of its links."""
    if name != "index":
        return
    for title, entries in llms.sections().items():
        names = "\n".join(path.removesuffix(".md") for _, path, _ in entries)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{names}\n```\n"


def add_sources(app: Any, error: Exception | None) -> None:
    """Serve each page as Markdown too, beside its HTML: that is where llms.txt leads."""
    if error is None:
        for name in app.env.found_docs:
            shutil.copyfile(app.env.doc2path(name), Path(app.outdir) / f"{name}.md")


def setup(app: Any) -> None:
    """Connect what this file adds."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_sources)
