"""Options: what can be switched on a simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Options:
    """Switches of a simulator; the defaults are the strict ones.

    `models`: names that exist (None: every name does). `api_key`: the only key accepted (None: any key).
    `tools_required`: Anthropic refuses tool blocks in a history when no tools are given. `binding`: what a preserved
    thinking block with another prefix leads to where the request does not say ("error" for accounts made since
    2026-08-31). `max_input_tokens`: longer requests get the vendor's overflow error (four characters are one token).
    `shared_signatures`: a Gemini model takes the signatures of another one.
    """

    strict: bool = True
    models: frozenset[str] | None = None
    api_key: str | None = None
    tools_required: bool = True
    binding: Literal["error", "drop_block"] = "error"
    max_input_tokens: int | None = None
    shared_signatures: bool = True

    def listed(self, *usual: str) -> tuple[str, ...]:
        """The names that a list of models shows: those that exist, or the usual ones where every name does."""
        return usual if self.models is None else tuple(sorted(self.models))
