"""The commands and their options; what they do is in the other rooms of this package."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pollux_like import plugins
from pollux_like.cli import chat as chat_room
from pollux_like.cli import demo as demo_room
from pollux_like.cli import doctor as doctor_room
from pollux_like.cli import serve as serve_room
from pollux_like.cli import talks as talks_room
from pollux_like.cli import typed as typed_room
from pollux_like.cli import view as view_room
from pollux_like.cli.console import console, guarded
from pollux_like.errors import ConfigurationError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Keep an LLM conversation going."
)
local = typer.Typer(no_args_is_help=True, help="The embedded model.")
app.add_typer(local, name="local")
app.add_typer(serve_room.serve, name="serve")
app.add_typer(typed_room.typed, name="typed")
app.add_typer(talks_room.talks, name="talks")


@app.command()
def chat(
    prompt: Annotated[str | None, typer.Argument(help="One message; without it, a loop over the lines typed.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="Else the first provider with a key, else the embedded model.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model name.")] = None,
    instructions: Annotated[str | None, typer.Option(help="System text.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the continuation here after every turn.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on from a saved continuation.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens per answer.")] = None,
    store: Annotated[str | None, typer.Option(help="Keep the conversation in this store; with --talk.")] = None,
    talk: Annotated[str | None, typer.Option(help="Its id in the store, which is made where there is none.")] = None,
    scope: Annotated[str, typer.Option(help="Its tenant in the store.")] = "default",
    take_up: Annotated[
        bool | None, typer.Option("--take-up/--give-up", help="What becomes of an input that has no answer yet.")
    ] = None,
) -> None:
    """Talk to a model; the answer streams. Works without a key, on the embedded model."""
    with guarded():
        url = store or (os.environ.get("POLLUX_LIKE_STORE") if talk is not None else None)
        if talk is not None or url is not None:
            if talk is None or url is None or save is not None or resume is not None:
                raise ConfigurationError(
                    "--store and --talk go together, without --save and --resume", hint="Give both"
                )
            talks_room.chat(url, talk, scope, prompt, provider, model, instructions, max_tokens, take_up)
            return
        chat_room.run(prompt, provider, model, instructions, save, resume, max_tokens)


@app.command()
def demo(
    embedded: Annotated[bool, typer.Option(help="Include the part on the embedded model.")] = True,
) -> None:
    """Watch a conversation go on: over processes, and over a crash inside a tool loop. No key needed."""
    with guarded():
        demo_room.run(embedded=embedded)


@app.command()
def simulate(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free port.")] = 8399,
) -> None:
    """Serve strict stand-ins for the vendor APIs on loopback; point any vendor's SDK at them."""
    with guarded():
        from pollux_like.simulator import serve

        serve(host, port)


@app.command()
def view(
    store: talks_room.Store = None,
    scope: Annotated[str | None, typer.Option(help="Show this tenant only; all of the store by default.")] = None,
    host: Annotated[str, typer.Option(help="Address of the loopback to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free port.")] = 8397,
    open: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print url, token and pid as JSON for programs.")] = False,
    playground: Annotated[bool, typer.Option(help="Offer typed conversations beside the store.")] = True,
    engine: Annotated[str, typer.Option(help="Engine of the playground: llama or openai.")] = "llama",
    base_url: Annotated[str | None, typer.Option(help="Server of its model.")] = None,
    model: Annotated[str | None, typer.Option(help="A .gguf file, or the server's name of the model.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="Environment variable with the server's key.")] = None,
) -> None:
    """Look at the conversations of a store, on a page that only this machine can open. Nothing is changed."""
    with guarded():
        make = partial(view_room.typed_application, engine, base_url, model, key_variable) if playground else None
        view_room.run(store, scope, host, port, make, open=open, as_json=as_json)


@app.command()
def doctor(
    online: Annotated[bool, typer.Option(help="Ask each endpoint whose key is set whether it answers.")] = True,
) -> None:
    """Say what is installed, which keys are set (never their values), and which endpoints answer."""
    with guarded():
        doctor_room.run(online=online)


@local.command("setup")
def local_setup() -> None:
    """Install the embedded model's runtime and weights into this environment, and check them."""
    with guarded():
        path = plugins.load("local").setup(echo=console.print)
        console.print(f"The embedded model is ready: {path.name}")
