"""ScriptedEngine: an engine without a model, for tests. It writes what it is told, byte by byte, and counts words.

    engine = ScriptedEngine({"policy_number": "3201456789012345", "reply": "Thank you."})

A field that the script does not name gets the first text that its constraint allows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import anyio.lowlevel

from pollux_like.engine import Choice, Constraint, Copy, Counted, EngineInfo, Prompt, Shape, Step
from pollux_like.errors import ContextOverflowError
from pollux_like.typed import patterns

_FIRST = (" 0", " 2001-01-01")


@dataclass(slots=True)
class ScriptedEngine:
    """`script` maps a field's name (for `generate`: "") to a text, to a function of the prompt that returns one, or to
    the items of a list.

    `probability` is what each step gives the scripted text; the rest goes to a token that no constraint allows.
    `prompts` keeps what was asked.
    """

    script: Mapping[str, str | Sequence[str] | Callable[[Prompt], str]] = field(default_factory=dict[str, str])
    probability: float = 0.9
    window: int = 100_000
    prompts: list[Prompt] = field(default_factory=list[Prompt])
    opened: int = 0
    running: int = 0
    _seen: frozenset[str] = frozenset()
    _prefix: int = 0

    @property
    def info(self) -> EngineInfo:
        """No model at all."""
        return EngineInfo(model="scripted", engine="scripted", window=self.window, masked=False, parallel=1)

    async def open(self, prompt: Prompt) -> Counted:
        """Count the shared turns."""
        await anyio.lowlevel.checkpoint()
        self.opened += 1
        size = _words(prompt, shared=True)
        if size > self.window:
            raise ContextOverflowError(
                f"The conversation takes {size} tokens and the window holds {self.window}", hint="Shorten it"
            )
        self._prefix = size
        return Counted(size, 0, 0)

    async def generate(
        self, prompt: Prompt, constraint: Constraint, *, max_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> AsyncGenerator[Step | Counted, None]:
        """The scripted text, one character a token."""
        self.prompts.append(prompt)
        name = prompt.begin.split(" =")[0]
        said = self.script.get(name)
        if said is None:
            text = _first(constraint)
        elif callable(said):
            text = said(prompt)
        elif isinstance(said, str):
            text = said
        else:
            text = [*said, "none"][prompt.begin.count(";")]
        if said is not None and name:
            text = f" {text}"
        self.running += 1
        try:
            made = 0
            for data in [character.encode() for character in text][:max_tokens]:
                await anyio.lowlevel.checkpoint()
                made += 1
                yield self._step(data)
            finish = "length" if len(text) > max_tokens else "stop"
            if finish == "stop":
                yield self._step(b"")
            whole = _words(prompt, shared=False)
            yield Counted(whole, min(self._prefix, whole), made, finish)
        finally:
            self.running -= 1

    def _step(self, data: bytes) -> Step:
        rest = ((b"\x00", log(1 - self.probability)),) if self.probability < 1 else ()
        return Step(data, log(self.probability), ((data, log(self.probability)), *rest))

    async def aclose(self) -> None:
        """Nothing is held."""


def _words(prompt: Prompt, *, shared: bool) -> int:
    turns = prompt.shared if shared or prompt.ask is None else (*prompt.shared, prompt.ask)
    return sum(len(turn.text.split()) + 1 for turn in turns)


def _first(constraint: Constraint) -> str:
    match constraint:
        case Choice(options):
            return options[0]
        case Copy(lines, also):
            return f" {lines[0][0]}" if lines else also[0]
        case Shape(pattern):
            return next(text for text in _FIRST if patterns.matches(pattern, text))
        case _:
            return "Noted."
