"""Measure everything side by side: `python -m benchmarks [full|quick|report] [--only turn,loop,...] [--json FILE]`.

`full` makes an environment for each peer, writes `benchmarks/results/latest.json`, `docs/performance.md` and its plot.
`quick` measures this library, bare httpx2 and the raw SDKs, and prints. `report` writes the page again from the JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from benchmarks import report
from benchmarks.figures import Results
from benchmarks.lead import CACHE
from benchmarks.plan import FULL, PARTS, QUICK, carry_out
from benchmarks.work import ROOT

LATEST = ROOT / "benchmarks" / "results" / "latest.json"


def main(words: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("full", "quick", "report"))
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, by comma: {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, help="where the results go, or come from")
    given = parser.parse_args(words)
    parts = given.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if given.what == "report":
        report.write(Results.from_jsonable(json.loads((given.json or LATEST).read_text("utf-8"))), ROOT / "docs")
        return
    began = time.monotonic()
    whole = given.what == "full" and parts == list(PARTS)
    file = given.json or (LATEST if whole else CACHE / f"{given.what}.json")
    results = carry_out(FULL if given.what == "full" else QUICK, parts)
    results.made["seconds"] = round(time.monotonic() - began)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results.to_jsonable(), indent=1) + "\n", "utf-8")
    if whole:
        report.write(results, ROOT / "docs")
    print(report.summary(results))
    print(f"\n{results.made['seconds']} s; written to {os.path.relpath(file)}", file=sys.stderr)


if __name__ == "__main__":
    main()
