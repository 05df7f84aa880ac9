"""`pollux-like serve …`: the services that this library has, on an address of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pollux_like.cli.console import guarded

serve = typer.Typer(no_args_is_help=True, help="Serve typed conversations, or an environment.")


@serve.command("typed")
def typed(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")] = 8398,
    engine: Annotated[str, typer.Option(help="llama (embedded, or a llama-server), or openai.")] = "llama",
    base_url: Annotated[str | None, typer.Option(help="Server of the model.")] = None,
    model: Annotated[str | None, typer.Option(help="A .gguf file, or the server's name of the model.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="Environment variable with the server's key.")] = None,
    calibrator: Annotated[Path | None, typer.Option(help="File that `typed calibrate` wrote.")] = None,
    call_url: Annotated[list[str] | None, typer.Option(help="URL that fields may call; repeat for more.")] = None,
) -> None:
    """Serve typed conversations, with a playground at /."""
    with guarded():
        from pollux_like.cli import typed as room

        options = room.engine_options(base_url, model, key_variable)
        app = room.application(engine, options, calibrator, call_url or [])
        room.run(app, host, port)


@serve.command("environment")
def environment(
    targets: Annotated[list[str], typer.Argument(help="module:Class; the first one is the default.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")] = 8080,
    token_variable: Annotated[str | None, typer.Option(help="Environment variable with the token to ask for.")] = None,
) -> None:
    """Serve task environments to any harness."""
    with guarded():
        from pollux_like.cli import environments as room
        from pollux_like.environments import Server

        Server(room.loaded(targets), token=room.token_of(token_variable)).run(host, port)
