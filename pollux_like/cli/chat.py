"""`pollux-like chat`: a conversation in the terminal, saved after every turn where asked."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pollux_like import plugins, sync
from pollux_like.cli.console import console, errors, plain, put, show_error
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


def run(
    prompt: str | None,
    provider: str | None,
    model: str | None,
    instructions: str | None,
    save: Path | None,
    resume: Path | None,
    max_tokens: int | None,
) -> None:
    """One message, or one per line of standard input until it ends."""
    continuation = None if resume is None else load(resume)
    config = choose(provider, model, continuation)
    environment = Environment(instructions=instructions)
    announce(config)
    for line in lines(prompt):
        given = Input(line, continuation=continuation, history=None if continuation else ())
        try:
            with sync.stream(environment, given, config, max_tokens=max_tokens) as events:
                continuation = shown(events).continuation
        except PolluxLikeError as error:
            show_error(error)
            if prompt is not None:
                sys.exit(1)
            continue
        if save is not None and continuation is not None:
            store(save, continuation)


def choose(provider: str | None, model: str | None, continuation: Continuation | None) -> Config:
    """The continuation's own provider and model, else what was asked for, else the first provider with a key."""
    if continuation is not None:
        return Config(provider or continuation.provider, model or continuation.model)
    if provider is None:
        provider = next((name for name in _PREFERRED if _has_key(name)), "local")
    return Config(provider, model or _PREFERRED.get(provider))


def _has_key(name: str) -> bool:
    return name in plugins.names() and any(os.environ.get(key) for key in plugins.load(name).key_variables)


def announce(config: Config) -> None:
    """Who answers."""
    put((plain(f"{config.provider} · {config.model or vendor_of(config).default_model}"), "dim"), to=errors)


def lines(prompt: str | None) -> Iterator[str]:
    """The prompt, or the lines of standard input until it ends; empty ones say nothing."""
    interactive = sys.stdin.isatty()
    while prompt is None:
        try:
            line = console.input("[bold]you ›[/bold] ") if interactive else input()
        except EOFError:
            return
        if line.strip():
            yield line
    if prompt.strip():
        yield prompt


def shown(events: Iterable[Event]) -> Output:
    """Print a turn as it comes."""
    output: Output | None = None
    for event in events:
        if event.type == "text_delta":
            put(plain(event.text), end="")
        elif event.type == "notice" and event.notice is not None:
            put((plain(event.notice.message), "dim"), to=errors)
        output = event.output or output
    assert output is not None  # a stream ends in done or raises
    put((f"({output.finish.status})" if output.finish.status != "stop" else "", "dim"))
    return output


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
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            json.dump(continuation.to_jsonable(), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path)
    except OSError as error:
        raise ConfigurationError(
            f"{path.name} cannot be written ({error.strerror})", hint="Choose another path for --save"
        ) from None
