"""Templates that refuse a system turn, or two user turns in a row, are found out at load, met, and named."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from pollux_like_local.llama import Llama
from pollux_like_local.prompt import ChatTemplate, Piece

from pollux_like.engine import Counted, EngineInfo, Prompt, Turn

pytest.importorskip("jinja2")

CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""Refuses system turns too, as Gemma's does."""


class Characters:
    """A transport whose tokens are characters; special pieces count from a million on."""

    def __init__(self, source: str) -> None:
        self.template = ChatTemplate(source, bos="", eos="")
        self.info = EngineInfo("m", "llama", window=1000)
        self.sent: list[list[int]] = []

    async def tokenize(self, pieces: Sequence[Piece]) -> list[int]:
        return [ord(c) + (1_000_000 if piece.special else 0) for piece in pieces for c in piece.text]

    async def complete(self, prompt: Sequence[int], most: int, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        self.sent.append(list(prompt))
        yield Counted(len(prompt), 0, 0)

    async def aclose(self) -> None:
        """Nothing is held."""


TURNS = (Turn("system", "S"), Turn("assistant", "A"), Turn("user", "U"), Turn("user", "V"))
PROMPT = Prompt(TURNS, Turn("user", "ask"), "f =")


def text(tokens: Sequence[int]) -> str:
    return "".join(chr(token % 1_000_000) for token in tokens)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("source", "whole", "notes"),
    [
        (CHATML, "<|system|>S<|end|><|assistant|>A<|end|><|user|>U<|end|><|user|>V<|end|><|user|>ask<|end|><|assistant|>f =", 0),
        (ALTERNATING, "<user>S\n\nHello.</><assistant>A</><user>U\n\nV\n\nask</><assistant>f =", 2),
    ],
)  # fmt: skip
async def test_turns_are_laid_out_as_the_template_takes_them(source: str, whole: str, notes: int) -> None:
    transport = Characters(source)
    engine = Llama(transport)
    assert len(engine.info.layout) == notes
    async for _ in engine.generate(PROMPT, _choice(), max_tokens=4):
        pass
    assert text(transport.sent[0]) == whole
    await engine.open(PROMPT)
    opened = transport.sent[1]
    assert transport.sent[0][: len(opened)] == opened, "what is opened begins the prompt of every field"
    assert text(opened) == whole[: whole.index("ask")]


def _choice() -> Any:
    from pollux_like.engine import Choice

    return Choice((" a",))
