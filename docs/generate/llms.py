"""llms.txt and llms-full.txt, as llmstxt.org has them: an index of the pages with what each is about, and all pages.

docs/index.md owns what there is and in which order: its sections and its links are the navigation of the site too.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent

_LINK = re.compile(r"^\* \[([^]]+)\]\(([^):]+\.md)\): (.+)$")


def sections() -> dict[str, list[tuple[str, str, str]]]:
    """The index by section: title, path and what it is about, of every page."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    title = ""
    for line in (DOCS / "index.md").read_text("utf-8").replace("\n  ", " ").splitlines():
        if line.startswith("## "):
            title = line[3:]
        elif link := _LINK.match(line):
            found.setdefault(title, []).append((link[1], link[2], link[3]))
    return found


def pages() -> dict[str, str]:
    """Both files, by their paths in docs/."""
    name, intro = (DOCS / "index.md").read_text("utf-8").split("\n\n")[:2]
    summary = " ".join(intro.split())
    listed = [
        f"## {title}\n\n" + "\n".join(f"- [{of}]({path}): {about}" for of, path, about in entries)
        for title, entries in sections().items()
    ]
    paths = [path for entries in sections().values() for _, path, _ in entries]
    texts = [f"<!-- {path} -->\n\n{_plain((DOCS / path).read_text('utf-8'))}" for path in paths]
    return {
        "llms.txt": "\n\n".join([name, f"> {summary}", *listed]) + "\n",
        "llms-full.txt": "\n\n".join([name, f"> {summary}", *texts]) + "\n",
    }


def _plain(text: str) -> str:
    """A page without the comments that direct its tests and its making."""
    return re.sub(r"^<!--.*?-->\n+", "", text, flags=re.MULTILINE | re.DOTALL).strip()
