"""One entry for all dialects: the schema as the target takes it, whether it is strict, and what was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

from pollux_like.errors import ConfigurationError
from pollux_like.schemas.check import checked, too_entangled
from pollux_like.schemas.subset import NotStrict
from pollux_like.schemas.walker import Schema

_Write: TypeAlias = "Callable[[Schema], tuple[Schema, list[tuple[str, str]]]]"

_DIALECTS: Final = {
    "openai": ("openai", "strict", "loose"),
    "anthropic": ("anthropic", "strict", "loose"),
    "gemini": ("gemini", None, "json_schema"),
    "gemini-openapi": ("gemini", None, "openapi"),
    "plain": ("plain", None, "loose"),
}
"""By name: the file, loaded when it is first asked for, and its writers of the strict form and of the other."""


@dataclass(frozen=True, slots=True)
class Normalised:
    """A schema ready for one target.

    `schema` is the caller's own copy. `strict` is False where strict mode was not asked for, or cannot say what the
    schema means. `losses` has one sentence, with name and JSON pointer, for everything that is not enforced or gone.
    """

    schema: dict[str, Any]
    strict: bool
    losses: tuple[str, ...]


def normalise(schema: Mapping[str, Any] | None, dialect: str, *, strict: bool, name: str) -> Normalised:
    """Write the schema for `dialect`, one of _DIALECTS. The caller's mapping is never changed.

    `name` is the tool's or the output's name, for errors and losses. Where `strict` is asked for and cannot be had,
    the result is the non-strict form, with a loss that says why. A dialect without a strict form keeps the flag.
    Raises ConfigurationError as `check_schema` does, and for an unknown dialect.
    """
    if dialect not in _DIALECTS:
        raise ConfigurationError(
            f"There is no schema dialect {dialect!r}", hint=f"Use one of {', '.join(sorted(_DIALECTS))}"
        )
    file, write_strict, write_loose = _DIALECTS[dialect]
    room = import_module(f"pollux_like.schemas.{file}")
    root = checked(schema, name=name)
    try:
        return _written(
            root, getattr(room, write_strict) if write_strict else None, getattr(room, write_loose),
            strict=strict, name=name,
        )  # fmt: skip
    except RecursionError:
        raise too_entangled(name) from None


def _written(root: Schema, write_strict: _Write | None, write_loose: _Write, *, strict: bool, name: str) -> Normalised:
    why: list[tuple[str, str]] = []
    if strict and write_strict is not None:
        try:
            result, losses = write_strict(root)
            return Normalised(result, True, _sentences(name, losses))
        except NotStrict as error:
            why = [(error.path, f"strict mode was not used: this schema {error.why}")]
    result, losses = write_loose(root)
    return Normalised(result, strict and write_strict is None, _sentences(name, why + losses))


def _sentences(name: str, losses: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"Schema of {name!r} at {path or '/'}: {clause}." for path, clause in losses)
