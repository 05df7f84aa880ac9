"""The commands and their options; what they do is in the other rooms of this package."""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from pollux_like import plugins
from pollux_like.cli import NAME, chat_kept, stores
from pollux_like.cli import chat as chat_room
from pollux_like.cli import serve as serve_room
from pollux_like.cli import talks as talks_room
from pollux_like.cli import typed as typed_room
from pollux_like.cli.console import AsJSON, emit, notes, put, working
from pollux_like.errors import ConfigurationError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
local = typer.Typer(no_args_is_help=True, help="The embedded model.")
app.add_typer(local, name="local")
app.add_typer(serve_room.serve, name="serve")
app.add_typer(typed_room.typed, name="typed")
app.add_typer(talks_room.talks, name="talks")


def _version(asked: bool) -> None:
    if asked:
        put(f"{NAME} {version(NAME)}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """Keep an LLM conversation going."""


def providers(incomplete: str) -> list[str]:
    """The registered providers, for completion."""
    return [name for name in plugins.names() if name.startswith(incomplete)]


@app.command()
def chat(
    prompt: Annotated[str | None, typer.Argument(help="One message; without it, a loop over the lines typed.")] = None,
    provider: Annotated[
        str | None,
        typer.Option(help="Else the first provider with a key, else the embedded model.", autocompletion=providers),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model name.")] = None,
    instructions: Annotated[str | None, typer.Option(help="System text.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the continuation here after every turn.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on from a saved continuation.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens per answer.")] = None,
    store: Annotated[str | None, typer.Option(help="Keep the conversation in this store; with --talk.")] = None,
    talk: Annotated[
        str | None,
        typer.Option(help="Its id in the store, which is made where there is none.", autocompletion=stores.ids),
    ] = None,
    scope: Annotated[str | None, typer.Option(help="Its tenant in the store: default, where none is named.")] = None,
    take_up: Annotated[
        bool | None, typer.Option("--take-up/--give-up", help="What becomes of an input that has no answer yet.")
    ] = None,
    as_json: AsJSON = False,
    state: Annotated[bool, typer.Option("--state", help="With --json: the continuation in each turn's line.")] = False,
) -> None:
    """Talk to a model; the answer streams. Works without a key, on the embedded model."""
    this = chat_room.Asked(prompt, provider, model, instructions, max_tokens, as_json, state)
    if state and not as_json:
        raise ConfigurationError("--state says what is in the lines of --json", hint="Give both, or use --save")
    if talk is None and (take_up is not None or scope is not None):
        raise ConfigurationError("--scope, --take-up and --give-up go with --talk", hint="Give --store and --talk")
    url = store or (os.environ.get(stores.VARIABLE) if talk is not None else None)
    if talk is None and url is None:
        chat_room.run(this, save, resume)
    elif talk is None or url is None or save is not None or resume is not None:
        raise ConfigurationError("--store and --talk go together, without --save and --resume", hint="Give both")
    else:
        chat_kept.run(this, url, talk, "default" if scope is None else scope, take_up)


@app.command()
def demo(
    embedded: Annotated[bool, typer.Option(help="Include the part on the embedded model.")] = True,
    as_json: AsJSON = False,
) -> None:
    """Watch a conversation go on: over processes, and over a crash inside a tool loop. No key needed."""
    from pollux_like.cli import demo as room

    room.run(embedded=embedded, as_json=as_json)


@app.command()
def simulate(
    host: serve_room.Host = "127.0.0.1",
    port: serve_room.Port = 8399,
    as_json: AsJSON = False,
) -> None:
    """Serve strict stand-ins for the vendor APIs on loopback; point any vendor's SDK at them."""
    serve_room.simulate(host, port, as_json=as_json)


@app.command()
def view(
    store: stores.Store = None,
    scope: Annotated[str | None, typer.Option(help="Show this tenant only; all of the store by default.")] = None,
    host: Annotated[str, typer.Option(help="Address of the loopback to listen on.")] = "127.0.0.1",
    port: serve_room.Port = 8397,
    open: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
    as_json: AsJSON = False,
    playground: Annotated[bool, typer.Option(help="Offer typed conversations beside the store.")] = True,
    engine: typed_room.EngineName = "llama",
    base_url: typed_room.Server = None,
    model: typed_room.Model = None,
    key_variable: typed_room.KeyVariable = None,
) -> None:
    """Look at the conversations of a store, on a page that only this machine can open. Nothing is changed."""
    from pollux_like.cli import view as room

    make = partial(room.typed_application, engine, base_url, model, key_variable) if playground else None
    room.run(store, scope, host, port, make, open=open, as_json=as_json)


@app.command()
def doctor(
    online: Annotated[bool, typer.Option(help="Ask each endpoint whose key is set whether it answers.")] = True,
    as_json: AsJSON = False,
) -> None:
    """Say what is installed, which keys are set (never their values), and which endpoints answer."""
    from pollux_like.cli import doctor as room

    room.run(online=online, as_json=as_json)


@local.command("setup")
def local_setup(as_json: AsJSON = False) -> None:
    """Install the embedded model's runtime and weights into this environment, and check them."""

    def echo(line: str) -> None:
        put(line, to=notes(as_json))

    with working("Installing", as_json=as_json):
        path = plugins.load("local").setup(echo=echo)
    if as_json:
        emit({"model": path.name, "path": str(path)})
    else:
        put(f"The embedded model is ready: {path.name}")
