"""`pollux-like typed …` and what `serve typed` does: engines by name, calibrators from labelled files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer
from rich.table import Table

from pollux_like.cli.console import console, guarded
from pollux_like.errors import ConfigurationError

typed = typer.Typer(no_args_is_help=True, help="Typed conversations.")


@typed.callback()
def main() -> None:
    """Typed conversations."""


@typed.command("calibrate")
def calibrate(
    labelled: Annotated[Path, typer.Argument(help="JSON lines: requests with `expected` values.")],
    out: Annotated[Path, typer.Option(help="Where the calibrator is written.")] = Path("calibrator.json"),
    engine: Annotated[str, typer.Option(help="llama or openai.")] = "llama",
    base_url: Annotated[str | None, typer.Option(help="Server of the model.")] = None,
    model: Annotated[str | None, typer.Option(help="A .gguf file, or the server's name of the model.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="Environment variable with the server's key.")] = None,
) -> None:
    """Fit a calibrator for one model; reports ECE and AUC. Refuses under 300 labelled values."""
    with guarded():
        _room()
        if out.is_dir() or not out.parent.is_dir():
            raise ConfigurationError(f"{out.name} cannot be written there", hint="Name a file in a folder that exists")
        anyio.run(_calibrate, labelled, out, engine, engine_options(base_url, model, key_variable))


async def _calibrate(labelled: Path, out: Path, engine: str, options: dict[str, Any]) -> None:
    from pollux_like.typed import calibration, open_engine

    opened = await open_engine(engine, **options)
    try:
        rows = await calibration.measure(opened, labelled)
        calibrator, report = calibration.fit(rows, opened.info)
    finally:
        await opened.aclose()
    calibrator.save(out)
    table = Table(title=f"{report.rows} values, {report.accuracy:.1%} right")
    for heading in ("", "ECE", "AUC"):
        table.add_column(heading)
    table.add_row("raw", f"{report.ece:.3f}", _shown(report.auc))
    table.add_row("fitted, on other conversations", _shown(report.fitted_ece), _shown(report.fitted_auc))
    console.print(table)
    console.print(f"Written: {out.name}")


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
    _room()
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


def run(app: Any, host: str, port: int) -> None:
    """Serve until interrupted."""
    from pollux_like.typed.server import serve

    shown = f"[{host}]" if ":" in host else host
    serve(app, host, port, lambda bound: console.print(f"Typed conversations at http://{shown}:{bound}/", markup=False))


def _room() -> None:
    try:
        import pollux_like.typed.server  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name} is not installed", hint='Run: pip install "pollux-like[typed]"'
        ) from None
