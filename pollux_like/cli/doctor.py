"""`pollux-like doctor`: what is installed, which keys are set, which endpoints answer. Shows no key, ever."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from pollux_like import plugins
from pollux_like.cli.console import console, emit, plain, working
from pollux_like.config import Config
from pollux_like.provider import Vendor

TIMEOUT_S = 3.0
"""How long an endpoint may take to answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is so for one provider. `packages`: their versions, None where one is missing. `key`: the variable that is
    set, or None; `key_needed`: whether there has to be one. `state`: ready, or what to do."""

    provider: str
    packages: dict[str, str | None]
    key: str | None
    key_needed: bool
    endpoint: str
    state: str


def run(*, online: bool, as_json: bool) -> None:
    """Print one row per provider, or one object."""
    with working("Asking the endpoints", as_json=as_json, quiet=not online):
        found = list(_findings(online))
    if as_json:
        emit({"version": version("pollux-like"), "providers": [asdict(one) for one in found]})
    else:
        _print(found)


def _findings(online: bool) -> Iterator[Finding]:
    for name in plugins.names():
        vendor = cast("Vendor", plugins.load(name))
        packages = {package: _installed(package) for package in vendor.packages}
        key = next((variable for variable in vendor.key_variables if os.environ.get(variable)), None)
        endpoint = vendor.endpoint(Config(name))
        state = _state(vendor, packages, key, endpoint, online)
        yield Finding(name, packages, key, bool(vendor.key_variables), _shown(endpoint), state)


def _print(found: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"pollux-like {version('pollux-like')}")
    for heading in ("provider", "packages", "key", "endpoint", "state"):
        table.add_column(heading, overflow="fold")
    for one in found:
        packages = ", ".join(f"{name} {there or '(missing)'}" for name, there in one.packages.items()) or "-"
        key = f"{one.key} is set" if one.key else "not set" if one.key_needed else "not needed"
        table.add_row(*map(Text, (one.provider, packages, key, one.endpoint, one.state)))  # brackets are no markup
    console.print(table)


def _shown(endpoint: str) -> str:
    """An address without what may be a secret in it: the user, the password, the query."""
    return plain(re.sub(r"\?.*", "?…", re.sub(r"^(\w+://)?.*@", r"\1", endpoint)))


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _state(vendor: Vendor, packages: dict[str, str | None], key: str | None, endpoint: str, online: bool) -> str:
    missing = [package for package, found in packages.items() if found is None]
    if missing:
        return f'pip install "pollux-like[{vendor.name}]"' if vendor.name != "local" else "pollux-like local setup"
    if not vendor.key_variables:
        return "ready"
    if key is None:
        return f"missing: {vendor.key_variables[0]}"
    return _answers(endpoint) if online else "not asked"


def _answers(endpoint: str) -> str:
    """Whether anything answers there, without a key: 401 is an answer."""
    import httpx2

    try:
        status = httpx2.get(f"{endpoint}/models", timeout=TIMEOUT_S).status_code
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"no answer ({type(error).__name__})"
    return f"answers ({status})"
