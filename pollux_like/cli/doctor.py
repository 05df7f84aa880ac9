"""`pollux-like doctor`: what is installed, which keys are set, which endpoints answer. Shows no key, ever."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from rich.table import Table
from rich.text import Text

from pollux_like import plugins
from pollux_like.cli.console import console
from pollux_like.config import Config
from pollux_like.provider import Vendor

TIMEOUT_S = 3.0
"""How long an endpoint may take to answer."""


def run(*, online: bool) -> None:
    """Print one row per provider."""
    table = Table(title=f"pollux-like {version('pollux-like')}")
    for heading in ("provider", "packages", "key", "endpoint", "state"):
        table.add_column(heading, overflow="fold")
    for name in plugins.names():
        vendor = cast("Vendor", plugins.load(name))
        packages = {package: _installed(package) for package in vendor.packages}
        key = next((variable for variable in vendor.key_variables if os.environ.get(variable)), None)
        endpoint = vendor.endpoint(Config(name))
        shown = ", ".join(f"{package} {found or '(missing)'}" for package, found in packages.items()) or "-"
        said = f"{key} is set" if key else ("not needed" if not vendor.key_variables else "not set")
        cells = (name, shown, said, endpoint, _state(vendor, packages, key, endpoint, online))
        table.add_row(*map(Text, cells))  # brackets are no markup: "pollux-like[gemini]"
    console.print(table)


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
    except httpx2.HTTPError as error:
        return f"no answer ({type(error).__name__})"
    return f"answers ({status})"
