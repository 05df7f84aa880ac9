"""What a value shows of itself, in a terminal and in a notebook: short, and nothing that its fields hide."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import MISSING, Field, fields
from typing import Any, cast

_SECRET = frozenset({"api_key"})
"""Of these not even the length is shown."""
_MAX_CHARS = 80
_MAX_ITEMS = 3


class Shown:
    """Mixin for dataclasses made with `repr=False`. What differs from its default is shown; of a field that hides its
    value (`repr=False`: texts, keys, a provider's items) only that it is set, and how much it holds."""

    __slots__ = ()

    def _facts(self) -> Iterator[tuple[str, str]]:
        for one in fields(cast("Any", self)):
            value = getattr(self, one.name)
            if value is not None and not one.name.startswith("_") and not _is_default(one, value):
                yield one.name, _brief(value) if one.repr else "<set>" if one.name in _SECRET else _hidden(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={words}' for name, words in self._facts())})"

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        from html import escape

        rows = "".join(
            f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{escape(words)}</td></tr>'
            for name, words in self._facts()
        )
        return f'<table><caption style="text-align:left">{type(self).__name__}</caption>{rows}</table>'


def _is_default(one: Field[Any], value: object) -> bool:
    if one.default is None:  # the value is not, and may be an object of the application that compares oddly
        return False
    if one.default is not MISSING:
        return bool(value == one.default)
    return one.default_factory is not MISSING and bool(value == one.default_factory())


def _brief(value: object) -> str:
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        more = f", +{len(items) - _MAX_ITEMS}" if len(items) > _MAX_ITEMS else ""
        return f"({', '.join(map(_brief, items[:_MAX_ITEMS]))}{more})"
    if isinstance(value, float):
        return f"{value:.4g}"
    words = repr(value)
    return words if isinstance(value, Shown) or len(words) <= _MAX_CHARS else f"{words[: _MAX_CHARS - 3]}..."


def _hidden(value: object) -> str:
    if isinstance(value, (str, bytes)):
        return f"<{len(value):,} {'characters' if isinstance(value, str) else 'bytes'}>"
    return f"<{len(cast('Sized', value)):,}>" if isinstance(value, (tuple, list, dict)) else "<set>"
