"""The public names: none goes, and none takes something else, unseen."""

from __future__ import annotations

import difflib
from pathlib import Path

import public_api

RENEW = """
The public names are no longer those of tests/public_api.txt:

{difference}

Where that is meant, run: python tests/public_api.py
A name that goes, or a parameter, field or result that changes, needs a line in CHANGELOG.md and what docs/versioning.md
says of deprecation. A new name needs a docstring, and `make docs`.
"""


def test_the_public_names_are_those_that_were_agreed() -> None:
    known, found = public_api.FILE.read_text("utf-8"), public_api.text()
    lines = difflib.unified_diff(known.splitlines(), found.splitlines(), "agreed", "found", lineterm="", n=0)
    assert found == known, RENEW.format(difference="\n".join(lines))


def test_a_name_that_goes_and_a_parameter_that_changes_are_seen() -> None:
    lines = public_api.FILE.read_text("utf-8").splitlines()
    assert len(lines) > 600
    by_name = {line.partition(": ")[0]: line.partition(": ")[2] for line in lines}
    assert by_name["pollux_like.interact"].startswith("async (environment: Environment, input: Input, config: Config")
    assert "api_key: str | None = None" in by_name["pollux_like.Config"]
    assert by_name["pollux_like.Usage.total_tokens"] == "property int"
    assert by_name["pollux_like.provider.Vendor.render"].endswith("-> Wire")
    assert by_name["pollux_like.store.sync.ConversationStore.prune"].startswith("(*, scope: str, older_than: timedelta")


def test_the_packaged_version_is_named_in_the_changelog() -> None:
    from importlib.metadata import version

    assert f"\n## {version('pollux-like')}\n" in (Path(__file__).parent.parent / "CHANGELOG.md").read_text("utf-8")
