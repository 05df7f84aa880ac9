"""Typed conversations: values with evidence out of a conversation, in process or over HTTP.

    from pollux_like.typed import typed

    answer = await typed(messages, {"policy_number": {"type": "string", "extract": True, "nullable": True}})
    answer.values["policy_number"]

Read `run.py` first.
"""

from __future__ import annotations

from pollux_like.errors import missing_extra

try:
    import regex  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as error:
    raise missing_extra("typed", error) from None

from pollux_like.typed.answers import FieldAnswer, FieldError, Fired, Generated, TypedAnswer, Usage
from pollux_like.typed.api import default_engine, open_engine, stream, typed
from pollux_like.typed.calls import Calls
from pollux_like.typed.extract import Span
from pollux_like.typed.schema import Field, read_schema
from pollux_like.typed.scripted import ScriptedEngine

__all__ = [
    "Calls",
    "Field",
    "FieldAnswer",
    "FieldError",
    "Fired",
    "Generated",
    "ScriptedEngine",
    "Span",
    "TypedAnswer",
    "Usage",
    "default_engine",
    "open_engine",
    "read_schema",
    "stream",
    "typed",
]
