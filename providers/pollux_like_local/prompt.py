"""From turns to prompt pieces: the model's own chat template, with message text kept apart from template text.

The template is rendered with a placeholder in the place of every text, and the result is cut at the placeholders. Only
the pieces that the template wrote may hold special tokens; a message that spells `<|im_end|>` stays plain text, so no
text can open a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pollux_like.errors import ConfigurationError

DEFAULT_SYSTEM = "You are a helpful assistant."
"""Sent where the caller gives no system message: small models lose the thread on their template's own default."""

_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as the template sees it. `role` is system, user or assistant.

    `parts` are texts that stand one after another and are tokenised one by one, so that a reply that was generated
    after a given beginning gets the same tokens when it is replayed.
    """

    role: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of prompt. `special` says that it is the template's own and may hold special tokens."""

    text: str
    special: bool


class ChatTemplate:
    """A model's Jinja chat template, run in a sandbox. Raises ConfigurationError where it cannot carry a conversation.

    `begins_with_bos` says whether the template writes the begin-of-text token itself; `takes_system`, whether it knows
    a system turn; `takes_any_order`, whether user turns may follow each other and an assistant's turn may be first.
    """

    def __init__(self, source: str, *, bos: str, eos: str) -> None:
        import jinja2.sandbox

        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        self._failure: type[Exception] = jinja2.TemplateError
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise _bad_template(str(error)) from None
        self._variables = {"bos_token": bos, "eos_token": eos, "raise_exception": _raise(jinja2.TemplateError)}
        self.takes_system = True
        self.takes_system = self._takes([Turn("system", ("a",)), Turn("user", ("b",))])
        probe = self.render([Turn("user", ("a",)), Turn("assistant", ("b",)), Turn("user", ("c",))])
        self.begins_with_bos = bool(bos) and probe[0].special and probe[0].text.startswith(bos)
        self.takes_any_order = self._takes(
            [Turn("assistant", ("a",)), Turn("user", ("b",)), Turn("user", ("c",)), Turn("assistant", ("d",)),
             Turn("assistant", ("e",)), Turn("user", ("f",))]
        )  # fmt: skip
        texts = [piece.text for piece in probe]
        self.after_reply = texts[texts.index("b") + 1]
        """What the template writes after an assistant's text; its first token ends the turn."""

    def render(self, turns: Sequence[Turn], *, begin: Sequence[str] = ()) -> list[Piece]:
        """The prompt for the assistant's next turn. `begin` is text that the turn already begins with.

        The first turn may be of role system. Where the template knows no system turn, its text leads the first user
        turn.
        """
        if not self.takes_system and len(turns) > 1 and turns[0].role == "system":
            turns = [Turn("user", (*turns[0].parts, "\n\n", *turns[1].parts)), *turns[2:]]
        messages = [{"role": turn.role, "content": f"{_OPEN}{i}{_CLOSE}"} for i, turn in enumerate(turns)]
        try:
            text: str = self._template.render(messages=messages, add_generation_prompt=True, **self._variables)
        except self._failure as error:
            raise _bad_template(str(error)) from None
        pieces = list(_cut(text, turns))
        if [int(number) for number in _PLACEHOLDER.findall(text)] != list(range(len(turns))):
            raise _bad_template("it leaves out, repeats or reorders messages")
        return [*pieces, *(Piece(part, special=False) for part in begin if part)]

    def _takes(self, turns: Sequence[Turn]) -> bool:
        try:
            self.render(turns)
        except ConfigurationError:
            return False
        return True


def _cut(text: str, turns: Sequence[Turn]) -> Iterator[Piece]:
    for i, stretch in enumerate(_PLACEHOLDER.split(text)):
        if i % 2:
            yield from (Piece(part, special=False) for part in turns[int(stretch)].parts if part)
        elif stretch:
            yield Piece(stretch, special=True)


def _raise(kind: type[Exception]) -> Any:
    def raise_exception(message: str) -> NoReturn:
        raise kind(message)

    return raise_exception


def _bad_template(reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"The chat template of the model cannot carry this conversation: {reason}",
        hint="Use a GGUF file of an instruction-tuned model",
    )
