"""The benchmark's harness: what it asks is answered, what it counts is right, what fails is said. No time is judged here."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import figures, goals, lead, machine, plan, plot, report, server, state, worker
from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Results
from benchmarks.goals import Goal, Verdict
from benchmarks.work import ANSWER, WIRES, streamed

MADE = {
    "date": "2026-01-01 00:00 UTC",
    "command": "python -m benchmarks full",
    "machine": {"processor": "one", "cores": 2, "system": "Linux", "python": "3.11.0", "load": [0.0, 0.0, 0.0]},
    "versions": {"ours": {"pollux-like": "0.1.0"}},
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The loopback server's address."""
    with server.running() as address:
        yield address


def made_up() -> Results:
    """A turn that costs a half, and a loop whose late turns cost twice as much as its early ones."""
    results = Results(dict(MADE))
    for cpu in (3.0, 1.0, 2.0):
        results.add("turn", "chat", "ours", {"cpu": cpu / 1000, "wall": cpu / 1000})
        results.add("turn", "chat", "raw_sdk", {"cpu": 2 * cpu / 1000, "wall": cpu / 500})
    results.add("loop", "chat", "ours", {"cpu": 0.1, "wall": 0.1, "early": 0.001, "late": 0.002})
    return results


async def obeyed(name: str, *orders: dict[str, Any]) -> list[dict[str, float]]:
    one = worker.Worker(name)
    try:
        return [await one.obey(order) for order in orders]
    finally:
        await one.aclose()


def orders(url: str, wire: str) -> list[dict[str, Any]]:
    cases = [("turn", "text", {"repeat": 2}), ("loop", "loop-50", {"turns": 50}), ("stream", "stream-9", {"deltas": 9}),
             ("crowd", "text", {"conversations": 4, "turns": 2})]  # fmt: skip
    return [{"case": case, "wire": wire, "url": f"{url}/{kind}", "options": options} for case, kind, options in cases]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["ours", "bare_httpx2"])
def test_the_canned_answers_are_accepted_on_every_wire(name: str, wire: str, url: str) -> None:
    turn, loop, stream, crowd = asyncio.run(obeyed(name, *orders(url, wire)))  # each checks the text that it gets
    assert set(turn) == {"cpu", "wall"}
    assert set(loop) == {"cpu", "wall", "early", "late"}
    assert set(stream) == {"cpu", "wall", "first"}
    assert set(crowd) == {"cpu", "wall", "p99"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_loop_has_tool_calls_with_ids_of_their_own_and_ends_in_the_answer(wire: str, url: str) -> None:
    from benchmarks.contenders import ours

    async def run() -> tuple[str, int, int]:
        client = await ours.connect(wire, f"{url}/loop-4")
        turns: list[None] = []
        output = await client.looped(9, lambda: turns.append(None))
        history = json.dumps(state.wire_json(url, wire))
        return (
            output.text,
            len(turns),
            len({part for part in history.split('"') if part.startswith(("call_0", "toolu_0"))}),
        )

    assert asyncio.run(run()) == (ANSWER, 4, 3)


def test_a_loop_of_another_length_is_an_error(url: str) -> None:
    order = {"case": "loop", "wire": "chat", "url": f"{url}/loop-3", "options": {"turns": 5}}
    with pytest.raises(AssertionError, match="the loop took 3 turns"):
        asyncio.run(obeyed("bare_httpx2", order))


def test_another_text_than_the_servers_is_an_error(url: str) -> None:
    order = {"case": "stream", "wire": "chat", "url": f"{url}/stream-3", "options": {"deltas": 4}}
    with pytest.raises(AssertionError, match="27 characters"):
        asyncio.run(obeyed("bare_httpx2", order))
    assert len(streamed(3).strip()) == 26


def test_a_ratio_is_the_ratio_of_the_medians() -> None:
    results = made_up()
    assert results.median("turn", "chat", "ours", "cpu") == 0.002
    assert results.ratio("turn", "chat", "ours", "raw_sdk", "cpu") == 0.5
    assert results.ratio("loop", "chat", "ours", "ours", "late", "early") == 2.0
    assert results.ratio("turn", "gemini", "ours", "raw_sdk", "cpu") is None
    assert results.ratio("loop", "chat", "ours", "raw_sdk", "cpu") is None


@pytest.mark.parametrize(
    ("figure", "least", "word"),
    [
        (0.5, False, "reached, and the aim"), (0.7, False, "reached"), (0.71, False, "missed"),
        (0.4, True, "missed"), (0.6, True, "reached"), (0.71, True, "reached, and the aim"), (None, False, "not measured"),
    ],
)  # fmt: skip
def test_a_verdict_is_by_the_bound_and_its_side(figure: float | None, least: bool, word: str) -> None:
    must, aim = (0.5, 0.7) if least else (0.7, 0.5)
    assert Verdict(Goal("work", "turn", "chat", "cpu", must, aim, least=least), figure).word == word


def test_what_shall_be_larger_is_turned_over() -> None:
    results = Results(dict(MADE))
    results.add("crowd-100", "responses", "ours", {"wall": 0.001, "p99": 1.0})
    results.add("crowd-100", "responses", "raw_sdk", {"wall": 0.002, "p99": 2.0})
    found = {one.goal.measure: one for one in goals.verdicts(results) if one.figure is not None}
    assert (found["wall"].figure, found["wall"].word) == (2.0, "reached")
    assert (found["p99"].figure, found["p99"].word) == (0.5, "reached")


def test_every_goal_names_what_a_plan_measures() -> None:
    cases = {case.name: case for case in plan.cases(plan.FULL)}
    for goal in goals.goals():
        if goal.case in cases:
            for who in (goal.who, goal.against):
                assert goal.wire in cases[goal.case].wires, goal
                assert goal.wire in CONTENDERS[who].wires, goal
                assert cases[goal.case].order in CONTENDERS[who].cases, goal


def test_results_come_back_from_their_json() -> None:
    results = made_up()
    results.errors.append(("litellm", "loop, chat", "it | failed"))
    again = Results.from_jsonable(json.loads(json.dumps(results.to_jsonable())))
    assert again == results


def test_the_page_has_figures_verdicts_and_what_failed(tmp_path: Path) -> None:
    results = made_up()
    results.errors.append(("litellm", "loop, chat", "it | failed"))
    report.write(results, tmp_path)
    page = (tmp_path / "performance.md").read_text("utf-8")
    assert "| one short turn | OpenAI chat CPU | ≤ 0.75× | ≤ 0.6× | 0.50× | reached, and the aim |" in page
    assert "| turns 46-50 against turns 2-6 | OpenAI chat | ≤ 1.5× | ≤ 1.2× | 2.00× | missed |" in page
    assert "| one short turn | Gemini CPU | ≤ 0.75× | ≤ 0.6× | - | not measured |" in page
    assert "| pollux_like | 2.00 (1.00 - 3.00) | 0.50× |" in page
    assert "| litellm | loop, chat | it \\| failed |" in page
    titles = [node.text for node in ET.parse(tmp_path / "performance.svg").iter("{http://www.w3.org/2000/svg}title")]
    assert "pollux_like, OpenAI chat: 0.5×" in titles


def test_a_dot_outside_of_the_axis_stands_at_its_end() -> None:
    assert plot.x(1e-9) == 0
    assert plot.x(1e9) == pytest.approx(plot.PANEL)
    assert 0 < plot.x(0.1) < plot.x(1) < plot.PANEL


def test_a_tiny_run_measures_alternates_and_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    ask = lead.Worker.ask

    def spied(self: lead.Worker, order: dict[str, Any]) -> dict[str, Any]:
        asked.append((self.name, order["wire"]))
        return ask(self, order)

    monkeypatch.setattr(lead.Worker, "ask", spied)
    rounds = {"turn": 2, "loop": 0, "stream": 0, "crowd": 0}
    tiny = plan.Plan(("bare_httpx2", "ours"), rounds, repeat=1, deltas=1, crowd_turns={100: 1, 500: 1})
    results = plan.carry_out(tiny, ["turn", "loop"])
    assert results.errors == []
    assert asked[:4] == [("bare_httpx2", "responses"), ("ours", "responses")] * 2
    assert len(results.values("turn", "gemini", "ours", "cpu")) == 2
    assert all(value > 0 for value in results.values("turn", "gemini", "ours", "wall"))
    report.write(results, tmp_path)
    assert "pollux-like" in (tmp_path / "performance.md").read_text("utf-8")


def test_who_fails_is_reported_once_and_left_out(url: str) -> None:
    results = Results()
    case = lead.Case("turn", "turn", "nowhere-x", {"repeat": 1}, rounds=2, wires=("chat",))
    with lead.workers({"bare_httpx2": sys.executable}) as started:
        lead.play(case, started, url, results)
    assert [(who, where) for who, where, _ in results.errors] == [("bare_httpx2", "turn, chat")]
    assert results.samples == {}


def test_who_does_not_start_is_reported_with_its_last_line(url: str) -> None:
    results = Results()
    case = lead.Case("turn", "turn", "text", {"repeat": 1}, rounds=1, wires=("chat",))
    with lead.workers({"litellm": sys.executable}) as started:  # which this environment does not have
        lead.play(case, started, url, results)
    (error,) = results.errors
    assert "ModuleNotFoundError" in error[2]


def test_who_cannot_be_installed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(contender: object) -> Path:
        raise subprocess.CalledProcessError(1, "pip", stderr="collecting\nERROR: no such distribution")

    monkeypatch.setattr(machine, "environment", failed)
    results = Results()
    assert set(machine.pythons(["ours", "litellm"], results)) == {"ours"}
    assert results.errors == [("litellm", "install", "ERROR: no such distribution")]


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["quick", "--only", "turn,nonsense"])
    assert "unknown parts: nonsense" in capsys.readouterr().err


def test_saving_is_measured_against_the_conversations_own_wire_json(url: str) -> None:
    samples = asyncio.run(state.save(url, "anthropic", 6))
    results = figures.Results()
    for case, wire, who, measured in samples:
        results.add(case, wire, who, measured)
    own = results.median("save", "anthropic", "json", "bytes")
    assert own is not None
    assert own > 5 * len(ANSWER)  # five results and the texts
    assert results.median("save", "anthropic", "ours", "bytes")


def test_the_page_in_the_documents_is_made_from_the_newest_run() -> None:
    results = Results.from_jsonable(json.loads(command.LATEST.read_text("utf-8")))
    docs = Path(__file__).parent.parent / "docs"
    assert (docs / "performance.md").read_text("utf-8") == report.page(results)
    assert (docs / "performance.svg").read_text("utf-8") == plot.svg(results)
