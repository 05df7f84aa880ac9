"""The goals, as ratios within one run, and what a run says of each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.figures import Results

WIRE_NAMES = {"responses": "OpenAI Responses", "chat": "OpenAI chat", "anthropic": "Anthropic", "gemini": "Gemini"}


@dataclass(frozen=True, slots=True)
class Goal:
    """`who` over `against` in one measure of one case. `must` is the bound and `aim` what is hoped for; None: a figure
    without a bound. `least`: the bound is one from below, and the ratio is turned over. `below`: the measure of `against`,
    where it is another."""

    work: str
    case: str
    wire: str
    measure: str
    must: float | None
    aim: float | None = None
    who: str = "ours"
    against: str = "raw_sdk"
    least: bool = False
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal and its figure; None where it was not measured."""

    goal: Goal
    figure: float | None

    @property
    def word(self) -> str:
        """What the figure says of the goal."""
        goal, figure = self.goal, self.figure
        if figure is None:
            return "not measured"
        if goal.must is None:
            return "no goal"
        if self._within(goal.aim):
            return "reached, and the aim"
        return "reached" if self._within(goal.must) else "missed"

    def _within(self, bound: float | None) -> bool:
        if bound is None or self.figure is None:
            return False
        return self.figure >= bound if self.goal.least else self.figure <= bound


TURN = {"responses": (0.75, 0.6), "chat": (0.75, 0.6), "anthropic": (1.0, 0.85), "gemini": (0.75, 0.6)}
LOOP = {"chat": (0.25, 0.12), "responses": (0.10, 0.03), "anthropic": (0.90, 0.60), "gemini": (0.35, 0.15)}
STREAM: dict[str, tuple[float | None, float | None]] = {
    "responses": (0.6, 0.4), "chat": (0.6, 0.4), "anthropic": (0.9, 0.7), "gemini": (None, None),
}  # fmt: skip
CROWDS = (100, 500)
CROWD_WIRES = ("responses", "anthropic", "gemini")
AIOHTTP_CROWD_WIRES = ("responses", "anthropic")


def goals() -> Iterator[Goal]:
    """All of them, in the order of the report."""
    for case, work, bounds in (("turn", "one short turn", TURN), ("loop", "50-turn tool loop", LOOP)):
        for wire, (must, aim) in bounds.items():
            for measure in ("cpu", "wall"):
                yield Goal(work, case, wire, measure, must, aim)
    for wire in LOOP:
        yield Goal("turns 46-50 against turns 2-6", "loop", wire, "late", 1.5, 1.2, against="ours", below="early")
    for wire, (least, hoped) in STREAM.items():
        for measure in ("cpu", "wall"):
            yield Goal("a streamed delta, the final Output included", "stream", wire, measure, least, hoped)
        yield Goal("first delta", "stream", wire, "first", 1.1)
    for count in CROWDS:
        work = f"{count} conversations at once"
        for wire in CROWD_WIRES:
            yield Goal(f"{work}, turns per second", f"crowd-{count}", wire, "wall", 1.4, least=True)
            yield Goal(f"{work}, p99", f"crowd-{count}", wire, "p99", 1.0)
        for wire in AIOHTTP_CROWD_WIRES:
            more = f"{work} over aiohttp, turns per second"
            yield Goal(more, f"crowd-{count}", wire, "wall", 3.0, who="ours_aiohttp", least=True)
    yield Goal("import pollux_like / asyncio, json, ssl", "import", "", "cpu", 1.5, who="ours", against="baseline")
    yield Goal("import pollux_like / import pollux", "import", "", "cpu", 0.7, who="ours", against="pollux_ai")
    for wire in WIRE_NAMES:
        work = "interact() without a Session against one with"
        yield Goal(work, "turn", wire, "cpu", 1.05, against="ours_session")
    for wire in WIRE_NAMES:
        yield Goal("saved bytes of 1,000 turns / their wire JSON", "save", wire, "bytes", 1.3, against="json")
        yield Goal("save 1,000 turns / json.dumps of their wire JSON", "save", wire, "save", 3.0, against="json")
        yield Goal("restore 1,000 turns / json.loads of their wire JSON", "save", wire, "restore", 3.0, against="json")
        yield Goal(
            "first turn after a restore / the same without",
            "first turn",
            wire,
            "cpu",
            None,
            who="restored",
            against="live",
        )
    work = "bytes written by 1,000 saves through the store / by 500"
    yield Goal(work, "store bytes", "SQLite", "written", 2.2, who="1,000 turns", against="500 turns")
    work = "store append at turn 1,000 / in a new conversation"
    yield Goal(work, "store append", "SQLite", "wall", None, who="turn 1,000", against="new")
    yield Goal(
        "store load of 1,000 turns / json.loads of its JSON", "store load", "SQLite", "wall", None, against="json"
    )
    for measure, unit in (("rss", "resident"), ("traced", "allocated")):
        work = f"500 conversations of 100 turns held, bytes {unit} / wire JSON"
        yield Goal(work, "hold", "500 x 100", measure, None, against="json")
    work = "one more continuation of 100 turns, bytes / the history's JSON"
    yield Goal(work, "share", "100 turns", "traced", 0.5, against="json")
    work = "10 typed fields over 4,000 tokens, evaluated tokens: field by field / together"
    yield Goal(work, "typed", "embedded model", "tokens", 5.0, against="alone", least=True)
    yield Goal("the same, wall: together / field by field", "typed", "embedded model", "wall", 0.35, against="alone")


def verdicts(results: Results) -> list[Verdict]:
    """What a run says of each goal."""
    found: list[Verdict] = []
    for goal in goals():
        ratio = results.ratio(goal.case, goal.wire, goal.who, goal.against, goal.measure, goal.below)
        found.append(Verdict(goal, 1 / ratio if ratio and goal.least else ratio))
    return found
