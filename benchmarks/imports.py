"""What an import costs: fresh processes, in turn; CPU as the system counts it for the child, and its peak memory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Results
from benchmarks.lead import environ
from benchmarks.work import ROOT

BASELINE = "asyncio, json, ssl"
PEER_ROUNDS = 3
"""Of peers and SDKs, whose imports take seconds."""


_PEAK = "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
"""Since exec: what the system counts for the child would hold the memory of the parent that it was forked from."""


def once(python: str, modules: str) -> dict[str, float]:
    """Seconds of CPU and bytes at the peak. Raises CalledProcessError where the import fails."""
    command = [python, "-c", f"import {modules}\n{_PEAK}"]
    process = subprocess.Popen(command, env=environ(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout as printed:
        said = printed.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # it is waited for: Popen must not do so again
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"cpu": usage.ru_utime + usage.ru_stime, "rss": int(said[-1]) * 1024.0}


def measure(pythons: Mapping[str, str], rounds: int, results: Results) -> None:
    """Every contender that is imported, against the baseline and an interpreter that imports nothing."""
    own = pythons["ours"]
    asked = [("python", own, "sys", rounds), ("baseline", own, BASELINE, rounds)]
    for name, python in pythons.items():
        one = CONTENDERS[name]
        if one.imports:
            asked.append((name, python, one.imports, rounds if name in ("ours", "pollux_ai") else PEER_ROUNDS))
    for number in range(rounds + 1):
        for ask in tuple(asked):
            who, python, modules, most = ask
            if number > most:
                continue
            try:
                found = once(python, modules)
            except subprocess.CalledProcessError as error:
                asked.remove(ask)
                results.errors.append((who, "import", f"ended with {error.returncode}"))
            else:
                if number:  # the first one writes byte code
                    results.add("import", "", who, found)
