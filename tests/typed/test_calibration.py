"""Calibration refuses what would fit noise, improves what is off, and serves one model only."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pollux_like.errors import ConfigurationError
from pollux_like.typed import ScriptedEngine, calibration, typed
from pollux_like.typed.calibration import Row

INFO = ScriptedEngine().info
HELLO = [{"role": "user", "content": "Hello"}]


def overconfident(count: int) -> list[Row]:
    """Says 0.5 to 1, and is right half as often above one half as it says."""
    dice = random.Random(7)
    rows = []
    for group in range(count):
        said = dice.uniform(0.5, 0.999)
        rows.append(Row("int", said, 0.9, dice.random() < 2 * (said - 0.5), group))
    return rows


def test_under_300_rows_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="299 labelled values"):
        calibration.fit(overconfident(299), INFO)


def test_a_fit_is_better_on_conversations_it_has_not_seen() -> None:
    _, report = calibration.fit(overconfident(600), INFO)
    assert report.fitted_ece is not None
    assert report.ece > 0.2
    assert report.fitted_ece < 0.08
    assert report.auc == pytest.approx(report.fitted_auc, abs=0.03)


@pytest.mark.parametrize(
    ("pairs", "ece", "auc"),
    [
        ([(0.95, True), (0.95, False)], 0.45, 0.5), ([(0.9, True), (0.1, False)], 0.1, 1.0), ([(1.0, True)], 0.0, None),
        ([(0.2, True), (0.8, False)], 0.8, 0.0),
    ],
)  # fmt: skip
def test_the_figures_are_those_of_their_definitions(pairs: Any, ece: float, auc: float | None) -> None:
    assert calibration.ece(pairs) == pytest.approx(ece)
    assert calibration.auc(pairs) == auc


@pytest.mark.anyio
async def test_a_calibrator_is_saved_and_used(tmp_path: Path) -> None:
    made, _ = calibration.fit(overconfident(600), INFO)
    made.save(tmp_path / "c.json")
    loaded = calibration.load(tmp_path / "c.json")
    assert loaded == made
    loaded.check(INFO)
    engine = ScriptedEngine({"a": "7"}, probability=0.8)
    plain = await typed(HELLO, {"a": {"type": "int"}}, engine=engine)
    fitted = await typed(HELLO, {"a": {"type": "int"}}, engine=engine, calibrator=loaded)
    assert (plain.fields["a"].calibrated, fitted.fields["a"].calibrated) == (False, True)
    assert fitted.fields["a"].confidence != plain.fields["a"].confidence
    with pytest.raises(ConfigurationError, match="another model"):
        calibration.Calibrator("other", made.prompt_hash, made.curves).check(INFO)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model":"m","prompt_hash":"p","curves":{"a":[1]}}'])
def test_what_is_no_calibrator_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(ConfigurationError, match="no calibrator"):
        calibration.load(tmp_path / "c.json")


@pytest.mark.anyio
async def test_labelled_lines_are_measured(tmp_path: Path) -> None:
    line = {"messages": HELLO, "schema": {"a": {"type": "int"}, "b": {"type": "bool"}}, "expected": {"a": 7, "b": 1}}
    file = tmp_path / "labelled.jsonl"
    file.write_text(json.dumps(line) + "\n\n" + json.dumps(line) + "\n")
    rows = await calibration.measure(ScriptedEngine({"a": "7"}), file)
    assert [(row.type, row.right, row.group) for row in rows] == [
        ("int", True, 0), ("bool", False, 0), ("int", True, 2), ("bool", False, 2),
    ]  # fmt: skip
    file.write_text('{"messages": []}\n')
    with pytest.raises(ConfigurationError, match="line 1"):
        await calibration.measure(ScriptedEngine(), file)


GOOD = '{"context": "x", "schema": {"a": {"type": "bool"}}, "expected": {"a": true}}'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "no labelled conversation"), ("[]", "no labelled conversation"), ("7", "no labelled conversation"),
        ("null", "no labelled conversation"), (GOOD.replace('{"a": true}', "[1]"), "no labelled conversation"),
        (GOOD.replace('{"a": true}', "{}"), "no labelled conversation"), (GOOD.replace("true", "NaN"), "no labelled conversation"),
        (GOOD.replace('"expected"', '"context"'), "no labelled conversation"), (GOOD.replace('{"a": true}', '{"b": true}'), "a field"),
        (GOOD.replace("bool", "boole"), "schema.a.type"), (GOOD.replace('"x"', "5"), "context"),
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_a_malformed_line_is_named_before_any_token_is_spent(line: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text(f"{GOOD}\n\n{line}\n", "utf-8")
    engine = ScriptedEngine()
    with pytest.raises(ConfigurationError, match="line 3") as refused:
        await calibration.measure(engine, file)
    assert says in str(refused.value)
    assert engine.opened == 0


@pytest.mark.anyio
async def test_lines_end_where_json_lines_do(tmp_path: Path) -> None:
    """A string may hold U+2028 and U+0085 as they are, and a file may begin with a mark of its encoding."""
    file = tmp_path / "labelled.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.replace('"x"', '"x\u2028\x85y"').encode() + b"\r\n" + GOOD.encode())
    assert len(await calibration.measure(ScriptedEngine(), file)) == 2


@pytest.mark.parametrize(
    "curve", ['["nan", 1, 1]', "[1e999, 1, 1]", "[1, 2]", '"abc"', "[null, 1, 1]", f"[{'9' * 400}, 1, 1]"]
)
def test_a_curve_that_is_none_is_refused(curve: str, tmp_path: Path) -> None:
    file = tmp_path / "calibrator.json"
    file.write_text(f'{{"model": "m", "prompt_hash": "h", "curves": {{"*": {curve}}}}}')
    with pytest.raises(ConfigurationError, match="no calibrator"):
        calibration.load(file)


def test_a_calibrator_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        calibration.Calibrator("m", "h").save(tmp_path)
