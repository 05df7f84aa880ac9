"""`pollux-like serve …` and `pollux-like simulate`: the services that this library has, on an address of your own."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from pollux_like.cli.console import AsJSON, emit, put, working
from pollux_like.cli.typed import EngineName, KeyVariable, Model, Server
from pollux_like.errors import ConfigurationError

serve = typer.Typer(no_args_is_help=True, help="Serve typed conversations, or an environment.")

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")]


@serve.command("typed")
def typed(
    host: Host = "127.0.0.1", port: Port = 8398, engine: EngineName = "llama", base_url: Server = None,
    model: Model = None,
    key_variable: KeyVariable = None,
    calibrator: Annotated[Path | None, typer.Option(help="File that `typed calibrate` wrote.")] = None,
    call_url: Annotated[list[str] | None, typer.Option(help="URL that fields may call; repeat for more.")] = None,
    as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Serve typed conversations, with a playground at /."""
    from pollux_like.cli import typed as room

    app = room.application(engine, room.engine_options(base_url, model, key_variable), calibrator, call_url or [])
    from pollux_like.typed.server import serve

    with ExitStack() as opening:
        opening.enter_context(working("The engine opens", as_json=as_json))

        def ready(bound: int) -> None:
            opening.close()
            _listening("Typed conversations at", f"http://{_shown(host)}:{bound}/", as_json)

        serve(app, host, port, ready)


@serve.command("environment")
def environment(
    targets: Annotated[list[str], typer.Argument(help="module:Class; the first one is the default.")],
    host: Host = "127.0.0.1", port: Port = 8080,
    token_variable: Annotated[str | None, typer.Option(help="Environment variable with the token to ask for.")] = None,
    as_json: AsJSON = False,
) -> None:  # fmt: skip
    """Serve task environments to any harness."""
    from pollux_like.cli import environments as room
    from pollux_like.environments import Server

    def ready(bound: int) -> None:
        _listening("Serving on", f"http://{_shown(host)}:{bound}", as_json)

    Server(room.loaded(targets), token=room.token_of(token_variable)).run(host, port, ready=ready)


def simulate(host: str, port: int, *, as_json: bool) -> None:
    """The simulator, until interrupted. Raises ConfigurationError where the address cannot be had."""
    from pollux_like.simulator import Simulator, serve

    def ready(sim: Simulator) -> None:
        if as_json:
            emit({"environ": sim.environ(), "base_urls": sim.base_urls(), "pid": os.getpid()})
            return
        for name, value in sim.environ().items():
            put(f"export {name}={value}")
        for dialect, address in sim.base_urls().items():
            put(f"# {dialect}: {address}")

    try:
        serve(host, port, ready=ready)
    except (OSError, OverflowError, TypeError, UnicodeError) as error:  # the last three of addresses that cannot be
        why = getattr(error, "strerror", None) or "no such address"
        raise ConfigurationError(
            f"port {port} of {host} cannot be listened on ({why})", hint="Choose another --port or --host"
        ) from None


def _listening(words: str, url: str, as_json: bool) -> None:
    said: dict[str, Any] = {"url": url, "pid": os.getpid()}
    if as_json:
        emit(said)
    else:
        put(f"{words} {url}")


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
