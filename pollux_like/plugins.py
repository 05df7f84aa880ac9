"""Which providers exist: the entry-point group `pollux_like.providers`, and those an application registers itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pollux_like.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pollux_like.providers"

_registered: dict[str, Any] = {}


@cache
def _installed() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # a fifth of this library's import time, so not before it is needed

    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise ConfigurationError(
                f"provider {point.name!r} is claimed by both {other.value} and {point.value}",
                hint="Uninstall one of the two packages",
            )
    return found


@cache
def _load(name: str) -> Any:
    return _installed()[name].load()


def names() -> tuple[str, ...]:
    """The names of all providers, sorted."""
    return tuple(sorted({*_installed(), *_registered}))


def known(name: str) -> bool:
    """Whether a provider of that name is there."""
    return name in _registered or name in _installed()


def load(name: str) -> Any:
    """The vendor module of a provider (see `provider.Vendor`). Raises ConfigurationError for an unknown name."""
    if name in _registered:
        return _registered[name]
    if not known(name):
        raise ConfigurationError(f"provider {name!r} is unknown", hint=f"Use one of: {', '.join(names())}")
    return _load(name)


def register(name: str, vendor: Any) -> None:
    """Add a provider at run time. Raises ConfigurationError for a name that is taken, or is not the vendor's own."""
    if getattr(vendor, "name", None) != name or not callable(getattr(vendor, "connect", None)):
        raise ConfigurationError(
            f"the object for provider {name!r} is no vendor of that name", hint="See pollux_like.provider.Vendor"
        )
    if known(name):
        raise ConfigurationError(f"provider {name!r} has an owner already", hint="Choose another name")
    _registered[name] = vendor


def unregister(name: str) -> None:
    """Take back a provider that was registered at run time; installed ones stay."""
    _registered.pop(name, None)
