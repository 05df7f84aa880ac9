"""What was measured, and what it comes to: samples by case, wire and who; medians and ratios of medians. Pure.

A sample list holds one number for each round that counts: seconds of CPU or wall, bytes, or a count.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str, str]
"""Case, wire (or what else it was measured on), who."""


@dataclass(slots=True)
class Results:
    """One run. `made`: date, machine, commands, versions. `errors`: (who, where, what), kept beside the samples."""

    made: dict[str, Any] = field(default_factory=dict[str, Any])
    samples: dict[Key, dict[str, list[float]]] = field(default_factory=dict[Key, dict[str, list[float]]])
    errors: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def add(self, case: str, wire: str, who: str, measured: dict[str, float]) -> None:
        """One round's numbers."""
        for measure, value in measured.items():
            self.samples.setdefault((case, wire, who), {}).setdefault(measure, []).append(value)

    def values(self, case: str, wire: str, who: str, measure: str) -> list[float]:
        """The samples; empty where there are none."""
        return self.samples.get((case, wire, who), {}).get(measure, [])

    def median(self, case: str, wire: str, who: str, measure: str) -> float | None:
        """The median of the samples."""
        values = self.values(case, wire, who, measure)
        return statistics.median(values) if values else None

    def ratio(
        self, case: str, wire: str, who: str, against: str, measure: str, below: str | None = None
    ) -> float | None:
        """Median over median; `below` names another measure of the one compared with. None where one is missing."""
        above = self.median(case, wire, who, measure)
        under = self.median(case, wire, against, below or measure)
        return None if above is None or not under else above / under

    def of(self, case: str) -> list[tuple[str, str]]:
        """(wire, who) of a case, in the order in which they were measured."""
        return [(wire, who) for found, wire, who in self.samples if found == case]

    def to_jsonable(self) -> dict[str, Any]:
        """Samples to six significant digits."""
        rows = [
            {
                "case": case,
                "wire": wire,
                "who": who,
                "samples": {m: [_short(v) for v in found] for m, found in all_.items()},
            }
            for (case, wire, who), all_ in self.samples.items()
        ]
        return {"made": self.made, "errors": [list(error) for error in self.errors], "samples": rows}

    @classmethod
    def from_jsonable(cls, data: dict[str, Any]) -> Results:
        """Back from `to_jsonable`."""
        samples = {(row["case"], row["wire"], row["who"]): row["samples"] for row in data["samples"]}
        return cls(data["made"], samples, [tuple(error) for error in data["errors"]])


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def wires_of(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The wires in (wire, who), each once."""
    return list(dict.fromkeys(wire for wire, _ in pairs))
