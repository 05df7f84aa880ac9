"""What a run measures, in which order and how often: the full one and the quick one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import imports, lead, machine, server
from benchmarks.contenders import CONTENDERS, REFERENCE
from benchmarks.figures import Results
from benchmarks.goals import CROWD_WIRES, CROWDS
from benchmarks.lead import Case
from benchmarks.work import WIRES

PARTS = ("turn", "loop", "stream", "crowd", "import", "save", "store", "memory", "typed")
TURNS = 50
SAVED_TURNS = 1_000
PEERLESS = frozenset(name for name, one in CONTENDERS.items() if one.peer)


@dataclass(frozen=True, slots=True)
class Plan:
    """Who, and how many rounds of each part count; the rounds of warming up are dropped. 0 leaves a part out."""

    who: tuple[str, ...]
    rounds: dict[str, int]
    repeat: int
    deltas: int
    crowd_turns: dict[int, int]
    crowd_wires: tuple[str, ...] = CROWD_WIRES
    saved_wires: tuple[str, ...] = WIRES


QUICK = Plan(
    REFERENCE,
    {"turn": 5, "loop": 2, "stream": 3, "crowd": 2, "import": 7, "save": 1},
    repeat=20, deltas=2_000, crowd_turns={100: 2, 500: 1}, crowd_wires=("responses", "anthropic"),
    saved_wires=("responses", "anthropic"),
)  # fmt: skip
FULL = Plan(
    tuple(CONTENDERS),
    {"turn": 9, "loop": 4, "stream": 5, "crowd": 3, "import": 11, "save": 1, "store": 1, "memory": 1, "typed": 1},
    repeat=20, deltas=2_000, crowd_turns={100: 4, 500: 2},
)  # fmt: skip


def cases(plan: Plan) -> list[Case]:
    """The cases that the contenders take part in, part by part."""
    rounds = plan.rounds
    made = [
        Case("turn", "turn", "text", {"repeat": plan.repeat}, rounds["turn"], warm=2),
        Case("loop", "loop", f"loop-{TURNS}", {"turns": TURNS}, rounds["loop"]),
        Case("stream", "stream", f"stream-{plan.deltas}", {"deltas": plan.deltas}, rounds["stream"]),
    ]
    for count in CROWDS:
        options = {"conversations": count, "turns": plan.crowd_turns[count]}
        without = PEERLESS if count > CROWDS[0] else frozenset[str]()
        made.append(
            Case(f"crowd-{count}", "crowd", "text", options, rounds["crowd"], wires=plan.crowd_wires, without=without)
        )
    return made


def carry_out(plan: Plan, parts: Sequence[str]) -> Results:
    """Measure the parts that the plan has and the caller wants."""
    results = Results()
    wanted = [part for part in parts if plan.rounds.get(part)]
    pythons = machine.pythons(plan.who, results)
    results.made = machine.described(pythons)
    with server.running() as url:
        chosen = [case for case in cases(plan) if case.order in wanted]
        if chosen:
            with lead.workers(pythons) as started:
                for case in chosen:
                    lead.play(case, started, url, results)
        for part in ("import", "save", "store", "memory", "typed"):
            if part in wanted:
                print(f"  {part}", file=sys.stderr, flush=True)
                alone(part, plan, pythons, url, results)
    return results


def alone(part: str, plan: Plan, pythons: dict[str, str], url: str, results: Results) -> None:
    """The parts that run in fresh processes."""
    match part:
        case "save":
            for wire in plan.saved_wires:
                lead.child(results, "benchmarks.state", "save", url, wire, str(SAVED_TURNS))
        case "memory":
            for how in ("rss", "traced"):
                lead.child(results, "benchmarks.state", "hold", url, "500", "100", how)
            lead.child(results, "benchmarks.state", "share", url, "100", "50")
        case "import":
            imports.measure(pythons, plan.rounds[part], results)
        case "store":
            lead.child(results, "benchmarks.store", "samples")
        case _:
            lead.child(results, "benchmarks.typed_cost")
