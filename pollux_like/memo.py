"""A value that remembers what was computed from it. Immutable to its users, so the memory can never be stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")

_NOTHING = object()


class Memo:
    """Mixin with one slot: results by key. Two threads may compute the same result twice; both are right."""

    __slots__ = ("_memo",)
    _memo: dict[Any, Any]

    def remember(self, key: Any, compute: Callable[[], T]) -> T:
        """The result of `compute`, kept under `key` for as long as the value lives."""
        try:
            memo = self._memo
        except AttributeError:
            memo = {}
            object.__setattr__(self, "_memo", memo)
        kept: Any = memo.get(key, _NOTHING)  # another thread may take it at any time
        if kept is _NOTHING:
            kept = memo[key] = compute()
        return cast("T", kept)

    def take(self, key: Any) -> Any:
        """What is kept under `key`, which is forgotten here; None where nothing is."""
        memo: dict[Any, Any] = getattr(self, "_memo", {})
        return memo.pop(key, None)
