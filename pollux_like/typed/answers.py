"""Answers: a value with what it rests on, and the JSON in which the service gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pollux_like.errors import StructuredOutputError
from pollux_like.typed.extract import Span

STATUSES = ("present", "missing", "conflicting", "corrected")
DECISIONS = ("accept", "review", "reject")


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule that held: its place in the schema (`on[0]`, `match[1]`), or the name of a guard, and what it did."""

    rule: str
    do: str


@dataclass(frozen=True, slots=True)
class FieldError:
    """Why a field has no value. The code is for programs, the message for people; neither quotes the conversation."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class FieldAnswer:
    """One field. `confidence` and `mass` are probabilities, None where no model chose or the engine tells none.

    `evidence` are spans in reading order: those of the value, and those of earlier or other values of the same slot,
    which their `text` tells apart. `status` is one of STATUSES, `decision` one of DECISIONS.
    """

    value: Any = field(repr=False)
    confidence: float | None = None
    mass: float | None = None
    calibrated: bool = False
    status: str = "present"
    evidence: tuple[Span, ...] = field(default=(), repr=False)
    alternatives: tuple[tuple[Any, float | None], ...] = field(default=(), repr=False)
    decision: str = "accept"
    rules: tuple[Fired, ...] = ()
    error: FieldError | None = None

    def to_jsonable(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "value": self.value,
            "confidence": self.confidence,
            "mass": self.mass,
            "calibrated": self.calibrated,
            "status": self.status,
            "evidence": [_span(one) for one in self.evidence],
            "alternatives": [{"value": value, "confidence": p} for value, p in self.alternatives],
            "decision": self.decision,
            "rules": [{"rule": fired.rule, "do": fired.do} for fired in self.rules],
            "error": None if self.error is None else {"code": self.error.code, "message": self.error.message},
        }


def _span(one: Span) -> dict[str, Any]:
    return {
        "source": one.source, "message": one.message, "role": one.role, "start": one.start, "end": one.end,
        "start_utf16": one.start_utf16, "end_utf16": one.end_utf16, "text": one.text,
    }  # fmt: skip


@dataclass(slots=True)
class Usage:
    """Tokens by the engine's counters. Evaluated ones were encoded for this request, cached ones were not.

    Each is None from the first call on for which the engine had no count.
    """

    prefix_tokens: int | None = 0
    evaluated_tokens: int | None = 0
    cached_tokens: int | None = 0
    generated_tokens: int | None = 0

    def to_jsonable(self) -> dict[str, int | None]:
        """As JSON."""
        return {
            "prefix_tokens": self.prefix_tokens,
            "evaluated_tokens": self.evaluated_tokens,
            "cached_tokens": self.cached_tokens,
            "generated_tokens": self.generated_tokens,
        }


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """All fields of a request. `values` are in the order of the schema."""

    fields: Mapping[str, FieldAnswer]
    provenance: Mapping[str, Any]
    usage: Usage
    model: Any = field(default=None, repr=False, compare=False)
    """The pydantic model that stood in the place of the schema."""

    @property
    def values(self) -> dict[str, Any]:
        """Values by field; None for those without one."""
        return {name: answer.value for name, answer in self.fields.items()}

    def to_jsonable(self) -> dict[str, Any]:
        """The body of the service's answer; also what `previous` takes."""
        return {
            "values": self.values,
            "fields": {name: answer.to_jsonable() for name, answer in self.fields.items()},
            "provenance": dict(self.provenance),
            "usage": self.usage.to_jsonable(),
        }

    def instance(self) -> Any:
        """The values as an instance of the pydantic model that was given.

        Raises StructuredOutputError where a field has an error or the model refuses the values.
        """
        from pydantic import ValidationError

        failed = [name for name, answer in self.fields.items() if answer.error is not None]
        problem = f"without a value: {', '.join(failed)}" if failed else "no model was given"
        if self.model is not None and not failed:
            try:
                return self.model.model_validate(self.values)
            except ValidationError as error:
                problem = f"{error.error_count()} values are refused by {self.model.__name__}"
        raise StructuredOutputError(
            f"the answer makes no instance ({problem})",
            hint="Look at fields, and make what may be absent optional",
            text="",
            output=self,
        )


@dataclass(frozen=True, slots=True)
class Generated:
    """The next assistant turn. `text` is None where a guard rejected it."""

    text: str | None = field(repr=False)
    decision: str
    rules: tuple[Fired, ...]
    finish: str
    provenance: Mapping[str, Any]
    usage: Usage

    def to_jsonable(self) -> dict[str, Any]:
        """The body of the service's answer."""
        return {
            "text": self.text,
            "decision": self.decision,
            "rules": [{"rule": fired.rule, "do": fired.do} for fired in self.rules],
            "finish": self.finish,
            "provenance": dict(self.provenance),
            "usage": self.usage.to_jsonable(),
        }
