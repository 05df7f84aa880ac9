"""Calibration: from raw probabilities to how often the model is right, fitted on labelled conversations.

One logistic curve per field type over the logit of `confidence` and the logarithm of `mass` (Platt scaling, with a
ridge of one prior example), for one model and one version of the prompt: another model's curve is refused. Fewer than
`MIN_ROWS` labelled values fit nothing; a type with fewer than `MIN_TYPE_ROWS` shares the curve of all types.

A line of a labelled file is the body of a typed request with `expected`: the right value of each field that is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite, log
from pathlib import Path
from typing import Any, cast

import anyio

from pollux_like import canonical
from pollux_like.engine import Engine, EngineInfo
from pollux_like.errors import ConfigurationError
from pollux_like.typed import rendering, run
from pollux_like.typed.answers import FieldAnswer, TypedAnswer
from pollux_like.typed.schema import Field

MIN_ROWS = 300
MIN_TYPE_ROWS = 60
FOLDS = 5
BINS = 10
NEWTON_STEPS = 12
_EPSILON = 1e-6
_RIDGE = 1.0
_ALL = "*"


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled value. `group` is the conversation it comes from."""

    type: str
    confidence: float
    mass: float | None
    right: bool
    group: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Expected calibration error and area under the curve, raw, and after a fit on other conversations."""

    rows: int
    accuracy: float
    ece: float
    auc: float | None
    fitted_ece: float | None = None
    fitted_auc: float | None = None


@dataclass(frozen=True, slots=True)
class Calibrator:
    """Fitted curves by type: weights of (1, logit of confidence, log of mass)."""

    model: str
    prompt_hash: str
    curves: Mapping[str, tuple[float, float, float]] = field(default_factory=dict[str, tuple[float, float, float]])

    def confidence(self, field: Field, answer: FieldAnswer) -> float | None:
        """The calibrated confidence; None where no curve is there."""
        curve = self.curves.get(field.type, self.curves.get(_ALL))
        if curve is None or answer.confidence is None:
            return None
        return _sigmoid(_dot(curve, _features(answer.confidence, answer.mass)))

    def check(self, info: EngineInfo) -> None:
        """Refuse another model, or another version of the prompt. Raises ConfigurationError."""
        if self.model != _identity(info) or self.prompt_hash != rendering.prompt_hash():
            raise ConfigurationError(
                "the calibrator was fitted for another model or prompt", hint="Fit one: pollux-like typed calibrate"
            )

    def save(self, path: Path) -> None:
        """Write as JSON. Raises ConfigurationError where the file cannot be written."""
        curves = {name: list(curve) for name, curve in self.curves.items()}
        saved = {"model": self.model, "prompt_hash": self.prompt_hash, "curves": curves}
        try:
            path.write_text(canonical.dumps(saved) + "\n", "utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"{path.name} cannot be written ({error.strerror})", hint="Name another file"
            ) from None


def load(path: Path) -> Calibrator:
    """A saved calibrator. Raises ConfigurationError for what is none."""
    try:
        saved = canonical.loads(path.read_text("utf-8"))
        curves = {name: (float(a), float(b), float(c)) for name, (a, b, c) in saved["curves"].items()}
        if not all(isfinite(weight) for curve in curves.values() for weight in curve):
            raise ValueError
        return Calibrator(str(saved["model"]), str(saved["prompt_hash"]), curves)
    except (OSError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise ConfigurationError(
            f"{path.name} is no calibrator", hint="Give a file that `pollux-like typed calibrate` wrote"
        ) from None


async def measure(engine: Engine, labelled: Path, *, progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """Ask every labelled conversation. Values without a confidence are left out. Raises ConfigurationError.

    `progress` is called after each with the numbers of those that were asked and of all.
    """
    rows: list[Row] = []
    try:
        lines = (await anyio.Path(labelled).read_text("utf-8-sig")).split("\n")  # JSON may hold other line ends
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{labelled.name} cannot be read", hint="Give a file of JSON lines") from None
    requests = [(number, *_read(line, number)) for number, line in enumerate(lines) if line.strip()]
    for asked, (number, request, expected) in enumerate(requests, 1):
        rows += await _asked(engine, request, expected, number)
        if progress is not None:
            progress(asked, len(requests))
    return rows


def _read(line: str, number: int) -> tuple[run.Request, dict[str, Any]]:
    """A labelled line. All are read before the first token is spent."""
    place = f"line {number + 1}"
    try:
        body = canonical.loads(line, unique_keys=True)
    except canonical.JSONPolicyError:
        body = None
    expected: object = cast("dict[str, Any]", body).get("expected") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(expected, dict) or not expected:
        raise ConfigurationError(f"{place} is no labelled conversation", hint='Write a request with "expected"')
    given = cast("dict[str, Any]", body)
    try:
        request = run.read_request(**{key: given.get(key) for key in ("messages", "context", "system", "schema")})
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error.message}", hint=error.hint) from None
    if set(cast("dict[str, Any]", expected)) - set(request.order):
        raise ConfigurationError(f"{place} expects a field that its schema does not have", hint="Correct the name")
    return request, cast("dict[str, Any]", expected)


async def _asked(engine: Engine, request: run.Request, expected: Mapping[str, Any], number: int) -> list[Row]:
    types = {one.name: one.type for one in request.fields}
    rows: list[Row] = []
    async for item in run.fields(engine, request):
        if isinstance(item, TypedAnswer):
            for name, value in expected.items():
                answer = item.fields.get(name)
                if answer is not None and answer.confidence is not None:
                    right = answer.value == value and isinstance(answer.value, bool) == isinstance(value, bool)
                    rows.append(Row(types[name], answer.confidence, answer.mass, right, number))
    return rows


def fit(rows: Sequence[Row], info: EngineInfo) -> tuple[Calibrator, Report]:
    """Curves, and how good they are on conversations that they were not fitted on. Raises ConfigurationError."""
    if len(rows) < MIN_ROWS:
        raise ConfigurationError(
            f"there are {len(rows)} labelled values", hint=f"Label at least {MIN_ROWS}: fewer fit noise"
        )
    held: list[tuple[float, bool]] = []
    for fold in range(FOLDS):
        curves = _curves([row for row in rows if row.group % FOLDS != fold])
        held += [(_curved(curves, row), row.right) for row in rows if row.group % FOLDS == fold]
    raw = report(rows)
    measured = Report(raw.rows, raw.accuracy, raw.ece, raw.auc, ece(held), auc(held))
    return Calibrator(_identity(info), rendering.prompt_hash(), _curves(rows)), measured


def report(rows: Sequence[Row]) -> Report:
    """The raw confidence as it is."""
    pairs = [(row.confidence, row.right) for row in rows]
    return Report(len(rows), sum(row.right for row in rows) / max(1, len(rows)), ece(pairs), auc(pairs))


def ece(pairs: Sequence[tuple[float, bool]]) -> float:
    """Expected calibration error over ten bins of equal width."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, right in pairs:
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
    gaps = (abs(sum(p for p, _ in one) - sum(right for _, right in one)) for one in bins)
    return sum(gaps) / max(1, len(pairs))


def auc(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """The chance that a right value has more confidence than a wrong one; None where all are of one kind."""
    right = [p for p, good in pairs if good]
    wrong = [p for p, good in pairs if not good]
    if not right or not wrong:
        return None
    wins = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
    return wins / (len(right) * len(wrong))


def _identity(info: EngineInfo) -> str:
    return info.fingerprint or info.model


def _features(confidence: float, mass: float | None) -> tuple[float, float, float]:
    p = min(1 - _EPSILON, max(_EPSILON, confidence))
    return 1.0, log(p / (1 - p)), 0.0 if mass is None else log(max(_EPSILON, mass)) / 10


def _curves(rows: Sequence[Row]) -> dict[str, tuple[float, float, float]]:
    found = {_ALL: _logistic(rows)}
    for kind in sorted({row.type for row in rows}):
        own = [row for row in rows if row.type == kind]
        if len(own) >= MIN_TYPE_ROWS:
            found[kind] = _logistic(own)
    return found


def _curved(curves: Mapping[str, tuple[float, float, float]], row: Row) -> float:
    return _sigmoid(_dot(curves.get(row.type, curves[_ALL]), _features(row.confidence, row.mass)))


def _logistic(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Ridge logistic regression by Newton's method; convex, so a few steps from (0, 1, 0) reach the minimum."""
    weights = [0.0, 1.0, 0.0]
    features = [_features(row.confidence, row.mass) for row in rows]
    for _ in range(NEWTON_STEPS):
        slope = [weights[0] * _RIDGE, (weights[1] - 1.0) * _RIDGE, weights[2] * _RIDGE]
        bend = [[_RIDGE * (i == j) for j in range(3)] for i in range(3)]
        for row, f in zip(rows, features, strict=True):
            p = _sigmoid(_dot(weights, f))
            for i in range(3):
                slope[i] += (p - row.right) * f[i]
                for j in range(3):
                    bend[i][j] += p * (1 - p) * f[i] * f[j]
        weights = [w - d for w, d in zip(weights, _solved(bend, slope), strict=True)]
    return weights[0], weights[1], weights[2]


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination; the matrix is positive definite, so no pivot is zero."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for i in range(3):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(3):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [line[3] for line in rows]


def _dot(weights: Sequence[float], features: Sequence[float]) -> float:
    return sum(w * f for w, f in zip(weights, features, strict=True))


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))
