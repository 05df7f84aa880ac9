"""`pollux-like typed …` and what `serve typed` serves: engines by name, calibrators from labelled files."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from pollux_like.cli.console import AsJSON, console, emit, put, working
from pollux_like.engine import names
from pollux_like.errors import ConfigurationError

if TYPE_CHECKING:
    from pollux_like.typed.calibration import Report

typed = typer.Typer(no_args_is_help=True, help="Typed conversations.")


def engines(incomplete: str) -> list[str]:
    """The registered engines, for completion."""
    return sorted(name for name in names() if name.startswith(incomplete))


EngineName = Annotated[
    str, typer.Option(help="llama (embedded, or a llama-server), or openai.", autocompletion=engines)
]
Server = Annotated[str | None, typer.Option("--base-url", help="Server of the model.")]
Model = Annotated[str | None, typer.Option(help="A .gguf file, or the server's name of the model.")]
KeyVariable = Annotated[str | None, typer.Option(help="Environment variable with the server's key.")]


@typed.callback()
def main() -> None:
    """Typed conversations."""


@typed.command("calibrate")
def calibrate(
    labelled: Annotated[Path, typer.Argument(help="JSON lines: requests with `expected` values.")],
    out: Annotated[Path, typer.Option(help="Where the calibrator is written.")] = Path("calibrator.json"),
    engine: EngineName = "llama", base_url: Server = None, model: Model = None, key_variable: KeyVariable = None,
    as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Fit a calibrator for one model; reports ECE and AUC. Refuses under 300 labelled values."""
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigurationError(f"{out.name} cannot be written there", hint="Name a file in a folder that exists")
    report = anyio.run(_calibrated, labelled, out, engine, engine_options(base_url, model, key_variable), as_json)
    if as_json:
        emit({**asdict(report), "written": str(out)})
        return
    from rich.table import Table

    table = Table(title=f"{report.rows} values, {report.accuracy:.1%} right")
    for heading in ("", "ECE", "AUC"):
        table.add_column(heading)
    table.add_row("raw", f"{report.ece:.3f}", _shown(report.auc))
    table.add_row("fitted, on other conversations", _shown(report.fitted_ece), _shown(report.fitted_auc))
    console.print(table)
    put(f"Written: {out.name}")


async def _calibrated(labelled: Path, out: Path, engine: str, options: dict[str, Any], as_json: bool) -> Report:
    from pollux_like.typed import calibration, open_engine

    with working("The engine opens", as_json=as_json):
        opened = await open_engine(engine, **options)
    try:
        with working("Asking", as_json=as_json) as went:
            rows = await calibration.measure(opened, labelled, progress=went)
        calibrator, report = calibration.fit(rows, opened.info)
    finally:
        await opened.aclose()
    calibrator.save(out)
    return report


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def engine_options(base_url: str | None, model: str | None, key_variable: str | None) -> dict[str, Any]:
    """Keyword arguments of `open_engine`. Raises ConfigurationError for a variable that is not set."""
    options = {name: value for name, value in (("base_url", base_url), ("model", model)) if value is not None}
    if key_variable is not None:
        key = os.environ.get(key_variable)
        if not key:
            raise ConfigurationError(f"{key_variable} is not set", hint="Set it to the key of the server")
        options["api_key"] = key
    return options


def application(engine: str, options: dict[str, Any], calibrator: Path | None, urls: list[str]) -> Any:
    """The ASGI application of `serve typed`. Raises ConfigurationError; the engine opens when it starts."""
    from pollux_like.engine import Engine
    from pollux_like.typed import Calls, calibration, open_engine
    from pollux_like.typed.server import make_app

    curves = None if calibrator is None else calibration.load(calibrator)

    async def opened() -> Engine:
        made = await open_engine(engine, **options)
        if curves is not None:
            curves.check(made.info)
        return made

    return make_app(opened, calls=Calls(urls=urls), calibrator=curves)
