"""The engine of typed conversations on llama.cpp: the model in this process, or a llama-server by its URL, one code.

Turns are rendered by the model's own template and sent as token ids; only template text may hold special tokens. A
template without a system turn gets the system text at the head of the first user turn. One that wants the roles to
alternate gets neighbouring turns of one role as one turn, a blank line between them, and a short user turn before an
assistant's first one. `info.layout` says which of it was done.

Grammars are GBNF. llama-server reports log-probabilities before sampling and without the grammar (its README, n_probs),
the end of the turn included.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread

from pollux_like.engine import Constraint, Counted, EngineInfo, Prompt, Step, gbnf
from pollux_like.errors import ConfigurationError, ContextOverflowError
from pollux_like_local.engine import DEFAULT_N_CTX
from pollux_like_local.models import find_model
from pollux_like_local.prompt import ChatTemplate, Piece, Turn
from pollux_like_local.remote import Remote
from pollux_like_local.worker import Job, Loaded, load, release

TOP = 100
"""Alternatives per token: 9.6 kB of answer each, and all that a constraint allows in nearly every case."""

OPENING = "Hello."
"""The user turn before an assistant's first one, where the template wants it."""


async def open_engine(
    *,
    model: str | Path | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    n_ctx: int = DEFAULT_N_CTX,
    threads: int | None = None,
) -> Llama:
    """The embedded model (`model`, `n_ctx` in tokens, `threads`: as for the chat engine), or the llama-server at
    `base_url`. Raises ConfigurationError where it cannot be used, APIError where the server does not answer."""
    if base_url is not None:
        if model is not None:
            raise ConfigurationError("model and base_url are both given", hint="A llama-server has one model")
        return Llama(await Remote.open(base_url, api_key))
    path = find_model(model)
    return Llama(Embedded(await anyio.to_thread.run_sync(load, path, n_ctx, threads)))


class Transport(Protocol):
    """The way to a llama.cpp server."""

    template: ChatTemplate
    info: EngineInfo

    async def tokenize(self, pieces: Sequence[Piece]) -> list[int]:
        """Token ids; special tokens in template pieces only."""
        ...

    def complete(self, prompt: Sequence[int], most: int, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Choices of a streamed completion, then `Counted`."""
        ...

    async def aclose(self) -> None:
        """Give back what is held."""
        ...


class Embedded:
    """The model in this process, on the worker thread that chat uses too."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded: Loaded | None = loaded
        self._jobs: set[Job[Any]] = set()
        model = loaded.runtime.model
        self.template = loaded.runtime.template
        self.info = EngineInfo(
            model.id, "llama", model.fingerprint, model.template_hash, model.n_ctx, masked=False, parallel=1
        )

    async def tokenize(self, pieces: Sequence[Piece]) -> list[int]:
        """On a thread of its own: the runtime's listener answers beside a running generation."""
        return await anyio.to_thread.run_sync(self._open().runtime.tokenize, pieces)

    async def complete(self, prompt: Sequence[int], most: int, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """A job of the worker."""
        loaded = self._open()

        def work(emit: Callable[[Any], None], cancelled: Callable[[], bool]) -> None:
            done = loaded.runtime.generate(prompt, max_tokens=most, cancelled=cancelled, on_chosen=emit, **options)
            emit(Counted(done.prompt_tokens, done.cached, done.generated, done.finish))

        job: Job[Any] = Job(loaded, work)
        self._jobs.add(job)
        try:
            while (item := await job.next()) is not None:
                yield item
        finally:
            job.cancel()
            self._jobs.discard(job)

    async def aclose(self) -> None:
        """The last user of the model frees it."""
        loaded, self._loaded = self._loaded, None
        for job in self._jobs:
            job.cancel()
        if loaded is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(release, loaded)

    def _open(self) -> Loaded:
        if self._loaded is None:
            raise ConfigurationError("The engine is closed", hint="Open it again with open_engine()")
        return self._loaded


class Llama:
    """See `pollux_like.engine.Engine`. One request at a time makes sense: a second slot shares no cache with the first,
    and encodes the prefix again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._template = transport.template
        notes: list[str] = []
        if not self._template.takes_system:
            notes.append("system text at the head of the first user turn")
        if not self._template.takes_any_order:
            notes.append("neighbouring turns of one role joined by a blank line")
        given = transport.info
        self.info = EngineInfo(
            given.model, given.engine, given.fingerprint, given.template_hash, given.window,
            masked=False, layout=tuple(notes), parallel=1,
        )  # fmt: skip

    async def open(self, prompt: Prompt) -> Counted:
        """Encode up to the field's own text; the opening of its turn is shared as well."""
        pieces = self._pieces(prompt)
        if prompt.ask is not None:
            last = max(
                index for index, piece in enumerate(pieces[: len(pieces) - bool(prompt.begin)]) if not piece.special
            )
            pieces = pieces[:last]
        ids = self._fitting(await self._transport.tokenize(pieces))
        async with aclosing(self._transport.complete(ids, 0, {"temperature": 0})) as items:
            async for item in items:
                if isinstance(item, Counted):
                    return Counted(item.prompt, item.cached, 0)
        raise AssertionError  # complete ends in counters or raises

    async def generate(
        self, prompt: Prompt, constraint: Constraint, *, max_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> AsyncGenerator[Step | Counted, None]:
        """Token by token."""
        ids = self._fitting(await self._transport.tokenize(self._pieces(prompt)))
        window = self.info.window
        most = max_tokens if window is None else max(1, min(max_tokens, window - len(ids)))
        options: dict[str, Any] = {"temperature": temperature, "seed": seed}
        rule = gbnf(constraint)
        if rule is not None:
            options |= {"grammar": rule, "logprobs": TOP}
        async with aclosing(self._transport.complete(ids, most, options)) as items:
            async for item in items:
                if isinstance(item, Counted):
                    yield item
                elif rule is None:
                    if item["text"]:
                        yield Step(item["text"].encode())
                    elif item["finish_reason"] == "stop":
                        yield Step(b"")
                else:
                    for step in _steps(item):
                        yield step

    async def aclose(self) -> None:
        """Give the model back, or close the connection."""
        await self._transport.aclose()

    def _pieces(self, prompt: Prompt) -> list[Piece]:
        turns = [Turn(turn.role, (turn.text,)) for turn in prompt.shared]
        if prompt.ask is not None:
            turns.append(Turn(prompt.ask.role, (prompt.ask.text,)))
        if not self._template.takes_any_order:
            turns = _alternating(turns)
        return self._template.render(turns, begin=(prompt.begin,))

    def _fitting(self, ids: list[int]) -> list[int]:
        window = self.info.window
        if window is not None and len(ids) >= window:
            raise ContextOverflowError(
                f"The conversation takes {len(ids)} tokens and the window of the model holds {window}",
                hint="Shorten the conversation, or open the engine with a larger window",
                provider="local",
                code="context_length_exceeded",
            )
        return ids


def _alternating(turns: Sequence[Turn]) -> list[Turn]:
    made: list[Turn] = []
    for turn in turns:
        if made and made[-1].role == turn.role:
            made[-1] = Turn(turn.role, (*made[-1].parts, "\n\n", *turn.parts))
        else:
            if turn.role == "assistant" and (not made or made[-1].role == "system"):
                made.append(Turn("user", (OPENING,)))
            made.append(turn)
    return made


def _steps(chosen: dict[str, Any]) -> Iterator[Step]:
    shown: dict[str, Any] = chosen.get("logprobs") or {}
    for entry in shown.get("content", ()):
        alternatives = tuple((bytes(one["bytes"]), float(one["logprob"])) for one in entry["top_logprobs"])
        yield Step(bytes(entry["bytes"]), float(entry["logprob"]), alternatives)
