"""The lead: keeps a worker for each contender and drives them in turn, A1 B1 C1 A2 B2 C2, so that all meet one machine."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Results
from benchmarks.work import ROOT

CACHE = ROOT / "benchmarks" / ".cache"
TIMEOUT_S = 120.0
"""Longest time for one order: a contender that needs more is stopped and reported."""
CLOSING_S = 10.0
"""Longest time for a worker to close its clients."""
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
"""Libraries that would reach out of the machine are told not to."""


def environ() -> dict[str, str]:
    """The environment of a child. The safe path: folders of the cache have the names of packages.
    Bytecode is kept: without, an import would be measured with its compilation."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, **QUIET, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured in one order. `name`: in the results. `kind`: of the server's address. `rounds`, after `warm`."""

    name: str
    order: str
    kind: str
    options: dict[str, int]
    rounds: int
    warm: int = 1
    wires: tuple[str, ...] = ("responses", "chat", "anthropic", "gemini")
    without: frozenset[str] = field(default_factory=frozenset[str])


class Worker:
    """A contender's process."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed in close
        command = [python, "-m", "benchmarks.worker", name]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environ(), cwd=ROOT
        )

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Its answer, or {"error": why there is none}."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return {"error": self._last_words()}
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            if not ready.select(TIMEOUT_S):
                process.kill()
                return {"error": f"more than {TIMEOUT_S:.0f} s"}
        line = process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {"error": self._last_words()}
        return found

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"ended with {self._process.returncode}: {lines[-1][:300] if lines else 'no word'}"

    def close(self) -> None:
        """End the process; one that does not end by itself is killed."""
        try:
            self._process.communicate(timeout=CLOSING_S)
        except BrokenPipeError:
            self._process.wait()
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


@contextlib.contextmanager
def workers(pythons: dict[str, str]) -> Iterator[list[Worker]]:
    """A worker for each contender, closed on leaving."""
    started: list[Worker] = []
    try:
        for name, python in pythons.items():
            started.append(Worker(name, python))
        yield started
    finally:
        for worker in started:
            worker.close()


def play(case: Case, started: Sequence[Worker], url: str, results: Results) -> None:
    """Measure a case on every wire. Who fails once is reported and left out for the rest of it."""
    for wire in case.wires:
        order = {"case": case.order, "wire": wire, "url": f"{url}/{case.kind}", "options": case.options}
        taking = [
            worker
            for worker in started
            if wire in CONTENDERS[worker.name].wires
            and case.order in CONTENDERS[worker.name].cases
            and worker.name not in case.without
        ]
        for number in range(case.warm + case.rounds):
            for worker in tuple(taking):
                measured = worker.ask(order)
                if "error" in measured:
                    taking.remove(worker)
                    results.errors.append((worker.name, f"{case.name}, {wire}", measured["error"]))
                elif number >= case.warm:
                    results.add(case.name, wire, worker.name, measured)
        print(f"  {case.name} {wire}: {len(taking)} measured", file=sys.stderr, flush=True)


def child(results: Results, *words: str) -> None:
    """Run `python -m benchmarks.<words>` in a fresh process; it prints samples as JSON, (case, wire, who, measured)."""
    command = [sys.executable, "-m", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environ(), cwd=ROOT, timeout=5 * TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        results.errors.append(("ours", " ".join(words[:2]), f"more than {5 * TIMEOUT_S:.0f} s"))
        return
    if done.returncode != 0:
        results.errors.append(
            ("ours", " ".join(words[:2]), (done.stderr.strip().splitlines() or ["no word"])[-1][:300])
        )
        return
    for case, wire, who, measured in json.loads(done.stdout.splitlines()[-1]):
        results.add(case, wire, who, measured)
