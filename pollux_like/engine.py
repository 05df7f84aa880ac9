"""THE CONTRACT of an engine: what typed conversations need of a model, and nothing else.

An engine renders turns by the model's own chat template, encodes what many prompts share once, and generates step by
step under a constraint, with the probabilities of each step and the counters that prove what was encoded. It holds no
conversation. Packages register one under the entry-point group `pollux_like.engines`: a function that takes keyword
arguments (`model`, `base_url`, `api_key`, where they apply) and returns an opened engine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pollux_like.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pollux_like.engines"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a prompt. `role` is system (the first turn only), user or assistant. The text is never template."""

    role: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Shared turns, then one user turn, then the text that the assistant's turn begins with (may be empty).

    `ask` is None where the shared turns end in the user's own: the assistant answers that one.
    """

    shared: tuple[Turn, ...]
    ask: Turn | None = None
    begin: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """Exactly one of these texts, each with the blank that follows the prefix."""

    options: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """ASCII text of one shape, in the two notations that servers take: a regular expression, and GBNF without root."""

    pattern: str
    gbnf: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A blank and then successive words of one line, with the gaps between them, or one of `also`.

    A line is `(word, gap, word, gap, …, word)`; gaps may be empty.
    """

    lines: tuple[tuple[str, ...], ...] = field(repr=False)
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Free:
    """Any text, up to the end of the turn."""


Constraint: TypeAlias = Choice | Shape | Copy | Free


@dataclass(frozen=True, slots=True)
class Step:
    """One token. `data` are its bytes, empty where the turn ends. `alternatives` are the likeliest tokens at this
    place with their natural log-probabilities, the chosen one among them; empty where the server tells none."""

    data: bytes = field(repr=False)
    logprob: float | None = None
    alternatives: tuple[tuple[bytes, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Counted:
    """Tokens of one call, by the engine's own counters; None where it has none.

    `prompt` is the whole prompt, `cached` the part that was not encoded again, `generated` what was made. `finish` is
    stop or length.
    """

    prompt: int | None
    cached: int | None
    generated: int | None
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What stands behind the answers.

    `fingerprint` and `template_hash` are SHA-256 in hexadecimal, None where a server does not show the file. `window`
    is in tokens. `masked`: log-probabilities are already those under the constraint, None where there are none.
    `layout` says how the template's limits are met. `parallel`: how many requests make sense at once.
    """

    model: str
    engine: str
    fingerprint: str | None = None
    template_hash: str | None = None
    window: int | None = None
    masked: bool | None = None
    constrained: bool = True
    layout: tuple[str, ...] = ()
    parallel: int = 1


class Engine(Protocol):
    """A model that is open. Methods run on asyncio and on trio."""

    @property
    def info(self) -> EngineInfo:
        """What is behind it; fixed for the life of the engine."""
        ...

    async def open(self, prompt: Prompt) -> Counted:
        """Encode what `prompt.shared` begins every prompt with; `prompt` of the result is its length in tokens.

        Raises ContextOverflowError, naming tokens and limit, and APIError.
        """
        ...

    def generate(
        self, prompt: Prompt, constraint: Constraint, *, max_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> AsyncGenerator[Step | Counted, None]:
        """Steps, and last the counters. Closing the generator, or cancelling, frees the engine.

        Raises ContextOverflowError and APIError.
        """
        ...

    async def aclose(self) -> None:
        """Give back what the engine holds. Closing twice is harmless."""
        ...


def gbnf(constraint: Constraint) -> str | None:
    """The constraint as a grammar: llama.cpp's GBNF, which is the EBNF of xgrammar too. None for free text."""
    match constraint:
        case Choice(options):
            return "root ::= " + " | ".join(_quoted(option) for option in options)
        case Shape(_, notation):
            return f"root ::= {notation}"
        case Copy(lines, also):
            return _copied(lines, also)
        case Free():
            return None


def _copied(lines: tuple[tuple[str, ...], ...], also: tuple[str, ...]) -> str:
    """One rule per word, so that the grammar is as long as the text."""
    rules: list[str] = []
    starts: list[str] = []
    for number, line in enumerate(lines):
        for at in range(0, len(line), 2):
            name = f"s{number}-{at}"
            starts.append(name)
            gap = f" ({_quoted(line[at + 1])} s{number}-{at + 2})?" if at + 2 < len(line) else ""
            gap = f" s{number}-{at + 2}?" if at + 2 < len(line) and not line[at + 1] else gap
            rules.append(f"{name} ::= {_quoted(line[at])}{gap}")
    first = [f'" " ({" | ".join(starts)})'] if starts else []
    return "\n".join((f"root ::= {' | '.join((*first, *(_quoted(word) for word in also)))}", *rules))


def _quoted(text: str) -> str:
    escaped = "".join(c if c.isascii() and c.isalnum() else f"\\U{ord(c):08X}" for c in text)
    return f'"{escaped}"'


def _registered() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """The names of all engines, sorted."""
    return tuple(sorted(_registered()))


def load(name: str) -> Callable[..., Awaitable[Engine]]:
    """The opening function of a registered engine. Raises ConfigurationError for an unknown name."""
    found = _registered()
    if name not in found:
        raise ConfigurationError(f"engine {name!r} is unknown", hint=f"Use one of: {', '.join(sorted(found)) or '-'}")
    opened: Any = found[name].load()
    return opened  # type: ignore[no-any-return]  # the contract of the group
