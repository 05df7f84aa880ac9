"""`pollux-like chat`: a conversation in the terminal, saved after every turn where asked."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from pollux_like import plugins, sync
from pollux_like.cli.console import FAILED, emit, errors, plain, put, show_error, working
from pollux_like.config import Config
from pollux_like.continuation import Continuation
from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError, PolluxLikeError
from pollux_like.input import Input
from pollux_like.output import Event, Output
from pollux_like.registry import vendor_of

_PREFERRED = {
    "openai": "gpt-5-mini", "anthropic": "claude-haiku-4-5", "gemini": "gemini-3.5-flash",
    "openrouter": "openai/gpt-5-mini",
}  # fmt: skip
"""The model of a chat that names none, by provider; a provider with a default of its own needs no entry."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options of a chat say. `state`: the last line of a turn in JSON carries its continuation."""

    prompt: str | None = None
    provider: str | None = None
    model: str | None = None
    instructions: str | None = None
    max_tokens: int | None = None
    as_json: bool = False
    state: bool = False


def run(this: Asked, save: Path | None, resume: Path | None) -> None:
    """One message, or one per line of standard input until it ends."""
    if save is not None and (save.is_dir() or not save.parent.is_dir()):
        raise ConfigurationError(f"{save.name!r} cannot be written there", hint="Name a file in a folder that exists")
    continuation = None if resume is None else load(resume)
    config = choose(this, continuation)
    environment = Environment(instructions=this.instructions)
    announce(this, config)
    for line in lines(this):
        try:
            given = Input(line, continuation=continuation, history=None if continuation else ())
            with sync.stream(environment, given, config, max_tokens=this.max_tokens) as events:
                continuation = shown(this, config, events).continuation
        except PolluxLikeError as error:
            failed(this, error)
            continue
        if save is not None and continuation is not None:
            store(save, continuation)


def failed(this: Asked, error: PolluxLikeError) -> None:
    """Show a turn's error: the end of a chat of one message, and no more than that in a loop."""
    show_error(error, as_json=this.as_json)
    if this.prompt is not None:
        raise typer.Exit(FAILED)


def choose(this: Asked, continuation: Continuation | None) -> Config:
    """The continuation's own provider and model, else what was asked for, else the first provider with a key."""
    provider, model = this.provider, this.model
    if continuation is not None:
        return Config(provider or continuation.provider, model or continuation.model)
    if provider is None:
        provider = next((name for name in _PREFERRED if _has_key(name)), "local")
    return Config(provider, model or _PREFERRED.get(provider))


def _has_key(name: str) -> bool:
    return name in plugins.names() and any(os.environ.get(key) for key in plugins.load(name).key_variables)


def announce(this: Asked, config: Config) -> None:
    """Who answers."""
    model = config.model or vendor_of(config).default_model
    if this.as_json:
        emit({"type": "start", "provider": config.provider, "model": model})
    else:
        put((plain(f"{config.provider} · {model}"), "dim"), to=errors)


def lines(this: Asked) -> Iterator[str]:
    """The prompt, or the lines of standard input until it ends; empty ones say nothing."""
    prompt, interactive = this.prompt, sys.stdin.isatty()
    while prompt is None:
        try:
            line = errors.input("[bold]you ›[/bold] ") if interactive else input()
        except EOFError:
            return
        except UnicodeDecodeError:
            raise ConfigurationError("standard input is no text in UTF-8", hint="Convert it first") from None
        if line.strip():
            yield line
    if prompt.strip():
        yield prompt


def shown(this: Asked, config: Config, events: Iterable[Event]) -> Output:
    """Print a turn as it comes."""
    output: Output | None = None
    for event in _awaited(this, config, iter(events)):
        if this.as_json:
            _line(event)
        elif event.type == "text_delta":
            put(plain(event.text), end="")
        elif event.type == "notice" and event.notice is not None:
            put((plain(event.notice.message), "dim"), to=errors)
        output = event.output or output
    assert output is not None  # a stream ends in done or raises
    if this.as_json:
        whole(this, output)
    else:
        put((f"({output.finish.status})" if output.finish.status != "stop" else "", "dim"))
    return output


def _awaited(this: Asked, config: Config, events: Iterator[Event]) -> Iterator[Event]:
    """The same events; the terminal shows that work goes on until the model says something."""
    embedded = config.provider == "local" and config.base_url is None
    label = "The embedded model loads and reads" if embedded else f"Waiting for {config.provider}"
    held: list[Event] = []
    with working(label, as_json=this.as_json):
        for event in events:
            held.append(event)
            if event.type not in ("start", "notice", "reasoning_delta"):
                break
    yield from held
    yield from events


def _line(event: Event) -> None:
    """An event of use to a program, as a line. What the model thinks, and pieces of arguments, are not."""
    if event.type == "text_delta":
        emit({"type": event.type, "text": event.text})
    elif event.tool_call is not None:
        emit({"type": event.type, "tool_call": event.tool_call.to_jsonable()})
    elif event.notice is not None:
        emit({"type": event.type, "notice": {"kind": event.notice.kind, "message": event.notice.message}})
    elif event.usage is not None:
        emit({"type": event.type, "usage": event.usage.to_jsonable()})
    elif event.finish is not None:
        emit({"type": event.type, "finish": {"status": event.finish.status, "raw": event.finish.raw}})


def whole(this: Asked, output: Output) -> None:
    """A turn that is complete: in JSON the last line of it, its state apart unless that is asked for."""
    if not this.as_json:
        put(plain(output.text))
        return
    said: dict[str, Any] = {"type": "turn", **output.to_jsonable()}
    if not this.state:
        del said["continuation"]
    emit(said)


def load(path: Path) -> Continuation:
    """A saved continuation. Raises ConfigurationError for an unreadable file, ContinuationError for a bad one."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path.name} cannot be read as a saved conversation ({type(error).__name__})",
            hint="Give the file of --save",
        ) from None
    return Continuation.from_jsonable(data)


def store(path: Path, continuation: Continuation) -> None:
    """Write beside the target, then rename over it: a crash leaves the old file or the new one, never half of one."""
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".pollux-like-") as folder:
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as file:
                json.dump(continuation.to_jsonable(), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(file.name, path)
    except OSError as error:
        raise ConfigurationError(
            f"{path.name} cannot be written ({error.strerror})", hint="Choose another path for --save"
        ) from None
