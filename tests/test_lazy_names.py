"""What is loaded late is there as everything else: by name, by star, in dir(), help() and inspect."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys

import pytest

import pollux_like


def test_every_public_name_is_in_dir_before_it_is_loaded() -> None:
    """Asked in a new process, where nothing has asked for the names before."""
    code = "import sys, pollux_like as p; assert 'pollux_like.store' not in sys.modules; print(*set(p.__all__) - set(dir(p)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_inspect_and_help_find_the_late_names() -> None:
    found = dict(inspect.getmembers(pollux_like))
    assert found.keys() >= set(pollux_like.__all__)
    assert "ContinuationSealer" in pydoc.render_doc(pollux_like)


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="open_shop"):
        _ = getattr(pollux_like, "open_shop")  # noqa: B009  # a type checker knows that it is none
