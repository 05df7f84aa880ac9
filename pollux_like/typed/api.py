"""The Python face: `await typed(…)`, `stream`, and which engine answers where none is given."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from pollux_like import engine as _engine
from pollux_like.engine import Engine
from pollux_like.typed import models, run
from pollux_like.typed.answers import FieldAnswer, TypedAnswer
from pollux_like.typed.calls import Calls
from pollux_like.typed.fields import Calibrates

_default: dict[str, Engine] = {}
_lock = threading.Lock()


async def open_engine(name: str = "llama", **options: Any) -> Engine:
    """An engine by its registered name: `llama` (in process, or `base_url` of a llama-server), `openai` (a server that
    speaks chat completions). Raises ConfigurationError where it is unknown or cannot run here."""
    return await _engine.load(name)(**options)


async def default_engine() -> Engine:
    """The embedded model, opened once and kept for the life of the process."""
    if "llama" not in _default:
        opened = await open_engine()
        with _lock:
            kept = _default.setdefault("llama", opened)
        if kept is not opened:
            await opened.aclose()
    return _default["llama"]


async def typed(
    messages: Sequence[Mapping[str, Any]] | None = None,
    schema: Mapping[str, Any] | type[Any] | None = None,
    *,
    context: str | None = None,
    system: str | None = None,
    engine: Engine | None = None,
    calls: Calls | None = None,
    calibrator: Calibrates | None = None,
    previous: TypedAnswer | Mapping[str, Any] | None = None,
    seed: int = 0,
) -> TypedAnswer:
    """Typed values out of a conversation, with evidence.

    `schema` maps names to fields, or is a pydantic model: then `answer.instance()` is one. `engine` is the embedded
    model where it is left out. Raises ConfigurationError (SchemaError with a path, ImageInputError) before any token is
    spent, ContextOverflowError naming tokens and window, APIError where the engine fails. What fails for one field
    stands in that field's `error`.
    """
    answer: TypedAnswer | None = None
    given = stream(
        messages, schema, context=context, system=system, engine=engine, calls=calls, calibrator=calibrator,
        previous=previous, seed=seed,
    )  # fmt: skip
    async with aclosing(given) as items:
        async for item in items:
            answer = item if isinstance(item, TypedAnswer) else answer
    assert answer is not None  # a stream ends in the answer or raises
    return answer


async def stream(
    messages: Sequence[Mapping[str, Any]] | None = None,
    schema: Mapping[str, Any] | type[Any] | None = None,
    *,
    context: str | None = None,
    system: str | None = None,
    engine: Engine | None = None,
    calls: Calls | None = None,
    calibrator: Calibrates | None = None,
    previous: TypedAnswer | Mapping[str, Any] | None = None,
    seed: int = 0,
) -> AsyncGenerator[tuple[str, FieldAnswer] | TypedAnswer, None]:
    """The same, each field `(name, answer)` as soon as it is known, and last the whole. Closing it frees the engine."""
    model = schema if models.is_model(schema) else None
    request = run.read_request(
        messages=messages,
        context=context,
        system=system,
        schema=models.schema_of(model) if model is not None else schema,
        previous=previous.to_jsonable() if isinstance(previous, TypedAnswer) else previous,
        seed=seed,
        calls=calls,
        model=model,
    )
    chosen = engine if engine is not None else await default_engine()
    running = run.fields(chosen, request, calls=calls, calibrator=calibrator)
    async with aclosing(running) as items:
        async for item in items:
            yield item
