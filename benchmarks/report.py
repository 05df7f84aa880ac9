"""A run as Markdown: `docs/performance.md` and its plot are made from the JSON of a run, and no figure by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks import plot
from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Results, wires_of
from benchmarks.goals import WIRE_NAMES, Verdict, verdicts

MEASURES = {"cpu": "CPU", "wall": "wall"}
MIB = 1 / 1024**2

PAGE = """\
# Performance

What a turn costs in the process that takes it: this library beside bare httpx2, the vendors' SDKs by their typed calls,
and other libraries, in one run on one machine. Trust the ratios: milliseconds are of this machine.
This page is made by `python -m benchmarks`; no figure in it was written by hand.

{run}

```sh
make bench          # all of it, with an environment for each library; writes this page
make bench-quick    # this library, bare httpx2 and the SDKs, in less than two minutes
make bench-report   # this page again from {file}
```

## How it is measured

* A server in a process of its own answers over loopback with canned bytes (`benchmarks/server.py`). What it and the
  socket cost shows in the rows of the bare socket.
* Each library runs in a process of its own. The lead drives them in turn, A B C A B C, so that all meet the same
  machine; rounds of warming up are dropped. Figures are medians, in brackets the least and the most; ratios are ratios
  of medians. CPU is that of the process with all of its threads. The garbage collector is left as Python has it.
* Bare httpx2: the same JSON, encoded anew for every turn, posted with one pooled client, the answer decoded with `json`.
* Raw SDK: the typed `create` or `generate_content`, answers put back into the history as they came, streams read event
  by event and their text joined. Other libraries: their usual face, tracing off.
* This library has its default limit of 100 turns under way (`Config(max_concurrency=...)`), also with 500 conversations.
* Every answer is checked. Who has no row in a table does not speak that wire, has no such face, or failed; what could
  not be installed or failed stands under [what failed](#what-failed).

## Goals

Against the raw SDK's typed call, unless the line names something else. ≤: at most this many times as much. ≥: at least
this many times as good. The goal must be reached; the aim is hoped for.

{reached}

{goals}

![Cost against the raw SDK](performance.svg)

{tables}

## What failed

{errors}
"""


def write(results: Results, folder: Path) -> None:
    """The page and its plot."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "performance.md").write_text(page(results), "utf-8")
    (folder / "performance.svg").write_text(plot.svg(results), "utf-8")


def page(results: Results) -> str:
    """The whole page."""
    tables = "\n\n".join(filter(None, (
        contenders_table(results, "turn", "One short turn", "cpu", "wall"),
        contenders_table(results, "loop", "A tool loop of 50 turns", "cpu", "wall", early=True),
        contenders_table(results, "stream", "A streamed delta", "cpu", "first", scale=1e6, unit="µs"),
        contenders_table(results, "crowd-100", "100 conversations at once, for each turn", "wall", "p99"),
        contenders_table(results, "crowd-500", "500 conversations at once, for each turn", "wall", "p99"),
        imports_table(results), state_table(results),
    )))  # fmt: skip
    found = [verdict for verdict in verdicts(results) if verdict.goal.must is not None and verdict.figure is not None]
    reached = sum(verdict.word.startswith("reached") for verdict in found)
    counted = f"{reached} of {len(found)} goals that were measured are reached, {sum(v.word == 'reached, and the aim' for v in found)} of them with the aim."
    errors = [[title(who), where, what.replace("|", "\\|")] for who, where, what in results.errors]
    return PAGE.format(
        run=run_table(results), file="benchmarks/results/latest.json", reached=counted, goals=goals_table(results),
        tables=tables, errors=table(("Who", "Where", "Last line of the error"), errors) if errors else "Nothing.",
    )  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def title(who: str) -> str:
    """A contender's name for readers."""
    return CONTENDERS[who].title if who in CONTENDERS else who


def number(value: float | None) -> str:
    """At least two significant digits."""
    if value is None:
        return "-"
    size = abs(value)
    return (
        f"{value:,.0f}"
        if size >= 100
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 0.1
        else f"{value:.3f}"
    )


def spread(results: Results, case: str, wire: str, who: str, measure: str, scale: float) -> str:
    """Median, and the least and the most."""
    values = results.values(case, wire, who, measure)
    middle = results.median(case, wire, who, measure)
    if middle is None:
        return "-"
    around = f" ({number(min(values) * scale)} - {number(max(values) * scale)})" if len(values) > 1 else ""
    return number(middle * scale) + around


def bound(verdict: Verdict, value: float | None) -> str:
    """A goal's bound."""
    return "-" if value is None else f"{'≥' if verdict.goal.least else '≤'} {value:g}×"


def goals_table(results: Results, *, measured_only: bool = False) -> str:
    """Every goal with its figure and verdict."""
    rows: list[list[str]] = []
    for verdict in verdicts(results):
        goal = verdict.goal
        if measured_only and verdict.figure is None:
            continue
        on = " ".join(filter(None, (WIRE_NAMES.get(goal.wire, goal.wire), MEASURES.get(goal.measure, ""))))
        figure = "-" if verdict.figure is None else f"{number(verdict.figure)}×"
        rows.append([goal.work, on, bound(verdict, goal.must), bound(verdict, goal.aim), figure, verdict.word])
    return table(("Work", "On", "Goal", "Aim", "Figure", "Verdict"), rows)


def run_table(results: Results) -> str:
    """When, on what, with what."""
    made = results.made
    machine = made["machine"]
    load = ", ".join(f"{part:.2f}" for part in machine["load"])
    rows = [
        ["Date", f"{made['date']}, {made.get('seconds', 0):,} s, load before it {load}"],
        [
            "Machine",
            f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}",
        ],
        ["Command", f"`{made['command']}`"],
    ]
    for who, found in made["versions"].items():
        if found:
            rows.append([title(who), ", ".join(f"{name} {version}" for name, version in found.items())])
    return table(("Run", ""), rows)


def contenders_table(
    results: Results, case: str, heading: str, first: str, second: str, *, early: bool = False, scale: float = 1e3,
    unit: str = "ms",
) -> str:  # fmt: skip
    """One table for each wire: two measures with their spread, each in times of the raw SDK's."""
    names = {"cpu": f"CPU, {unit}", "wall": f"wall, {unit}", "first": "first delta, ms", "p99": "p99, ms"}
    made: list[str] = []
    for wire in wires_of(results.of(case)):
        rows: list[list[str]] = []
        for who in [who for found, who in results.of(case) if found == wire]:
            row = [title(who)]
            for measure in (first, second):
                times = results.ratio(case, wire, who, "raw_sdk", measure)
                row.append(spread(results, case, wire, who, measure, 1e3 if measure in ("first", "p99") else scale))
                row.append("-" if times is None else f"{number(times)}×")
            if early:
                pair = [results.median(case, wire, who, measure) for measure in ("early", "late")]
                row.append(" → ".join(number(one and one * 1e3) for one in pair))
            rows.append(row)
        head = ["", names[first], "× raw SDK", names[second], "× raw SDK"]
        head += ["turns 2-6 → 46-50, CPU ms each"] if early else []
        made.append(f"### {WIRE_NAMES[wire]}: {heading[0].lower()}{heading[1:]}\n\n{table(head, rows)}")
    return f"## {heading}\n\n" + "\n\n".join(made) if made else ""


def imports_table(results: Results) -> str:
    """Import time and memory."""
    rows = [
        [
            f"`import {CONTENDERS[who].imports}`" if who in CONTENDERS else {"baseline": "`import asyncio, json, ssl`"}.get(who, who),
            spread(results, "import", wire, who, "cpu", 1e3),
            spread(results, "import", wire, who, "rss", MIB),
        ]
        for wire, who in results.of("import")
    ]  # fmt: skip
    return f"## Import\n\nIn a fresh process.\n\n{table(('', 'CPU, ms', 'peak MiB'), rows)}" if rows else ""


def state_table(results: Results) -> str:
    """State: what is saved, restored, held and stored, in its own units."""
    units = {"bytes": (MIB, "MiB"), "written": (MIB, "MiB"), "rss": (MIB, "MiB resident"), "traced": (MIB, "MiB allocated"),
             "save": (1e3, "ms to save"), "restore": (1e3, "ms to restore"), "cpu": (1e3, "ms CPU"), "wall": (1e3, "ms wall"),
             "tokens": (1.0, "tokens evaluated"), "prefix": (1.0, "tokens of the conversation")}  # fmt: skip
    rows: list[list[str]] = []
    for case in ("save", "first turn", "store bytes", "store append", "store load", "hold", "share", "typed"):
        for wire, who in results.of(case):
            rows += [
                [case, WIRE_NAMES.get(wire, wire), title(who), spread(results, case, wire, who, measure, units[measure][0]), units[measure][1]]
                for measure in results.samples[case, wire, who]
            ]  # fmt: skip
    said = "`json`: the same with `json` on the conversation's own wire JSON. Field by field (`alone`): measured on some fields, scaled to all."
    return f"## State and store\n\n{said}\n\n{table(('What', 'On', 'Who', 'Figure', ''), rows)}" if rows else ""


def summary(results: Results) -> str:
    """What the terminal shows: milliseconds, the goals that were measured, and what failed."""
    rows = [
        [case, WIRE_NAMES[wire], title(who), spread(results, case, wire, who, "cpu", 1e3), spread(results, case, wire, who, "wall", 1e3)]
        for case in ("turn", "loop", "stream", "crowd-100", "crowd-500")
        for wire, who in results.of(case)
    ]  # fmt: skip
    errors = [f"{title(who)}: {where}: {what}" for who, where, what in results.errors]
    parts = [table(("Case", "Wire", "Who", "CPU, ms", "wall, ms"), rows)] if rows else []
    parts += [goals_table(results, measured_only=True)]
    return "\n\n".join([*parts, *(["\n".join(["Failed:", *errors])] if errors else [])])
