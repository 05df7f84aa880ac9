"""The classes behind `pollux-like serve environment module:Class`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from pollux_like.errors import ConfigurationError


def loaded(targets: Sequence[str]) -> list[Any]:
    """The named classes; modules of the current folder are found too. Raises ConfigurationError naming the target."""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return [_loaded(target) for target in targets]


def _loaded(target: str) -> Any:
    module, _, name = target.partition(":")
    if not module or module.startswith(".") or not name:
        raise ConfigurationError(f"{target!r} names no class", hint="Write it as module:Class")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the module of {target!r} cannot be imported: there is no module {error.name}",
            hint="Run the command in the folder of the module, or install it",
        ) from None
    if not hasattr(found, name):
        raise ConfigurationError(f"the module {module} has no {name}", hint="Check the name of the class")
    return getattr(found, name)


def token_of(variable: str | None) -> str | None:
    """The token in an environment variable; None where none is named. Raises ConfigurationError where it is empty."""
    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise ConfigurationError(f"the variable {variable} is not set", hint="Set it to the token, or leave it out")
    return token
