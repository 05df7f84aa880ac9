"""The same for code that is not async; see `pollux_like.sync` for the loop that it runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pollux_like import sync as _sync
from pollux_like.engine import Engine
from pollux_like.typed import api as _api
from pollux_like.typed.answers import TypedAnswer


def typed(
    messages: Sequence[Mapping[str, Any]] | None = None,
    schema: Mapping[str, Any] | type[Any] | None = None,
    **arguments: Any,
) -> TypedAnswer:
    """Typed values out of a conversation; see `pollux_like.typed.typed` for the arguments and errors."""

    async def one() -> TypedAnswer:
        return await _api.typed(messages, schema, **arguments)

    return _sync.run(one)


def open_engine(name: str = "llama", **options: Any) -> Engine:
    """An engine for these calls; see `pollux_like.typed.open_engine`."""

    async def one() -> Engine:
        return await _api.open_engine(name, **options)

    return _sync.run(one)
