"""The environments that contenders run in, and the machine, versions and commands that a report names."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.figures import Results
from benchmarks.lead import CACHE
from benchmarks.work import ROOT

INSTALL_S = 420
"""Longest time to install a peer."""

_VERSIONS = """
import importlib.metadata as m, json, sys
found = {}
for name in sys.argv[1:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: found[name] = "not installed"
print(json.dumps(found))
"""


def pythons(names: Iterable[str], results: Results) -> dict[str, str]:
    """The interpreter of each contender, its environment made where it is not there. A failed one is an error of the run."""
    found: dict[str, str] = {}
    for name in names:
        contender = CONTENDERS[name]
        try:
            found[name] = str(environment(contender)) if contender.needs else sys.executable
        except (subprocess.SubprocessError, OSError) as error:
            results.errors.append((name, "install", said(error)))
    return found


def environment(contender: Contender) -> Path:
    """Its interpreter. Raises CalledProcessError or TimeoutExpired where it cannot be installed."""
    folder = CACHE / contender.name
    python, stamp = folder / "bin" / "python", folder / ".needs"
    needs = "\n".join(contender.needs)
    if stamp.exists() and stamp.read_text("utf-8") == needs:
        return python
    print(f"  installing {contender.name}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *contender.needs]
    subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSTALL_S, cwd=ROOT)
    stamp.write_text(needs, "utf-8")
    return python


def said(error: Exception) -> str:
    """The last line of what a failed command said."""
    words = getattr(error, "stderr", None) or str(error)
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return text.strip().splitlines()[-1][:300]


def versions(python: str, names: Iterable[str]) -> dict[str, str]:
    """Of distributions in an environment."""
    done = subprocess.run([python, "-c", _VERSIONS, *names], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def processor() -> str:
    """The processor's name."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def described(interpreters: dict[str, str]) -> dict[str, Any]:
    """What the report says of the run."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": "python -m benchmarks " + " ".join(sys.argv[1:]),
        "machine": {
            "processor": processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(), "load": [round(part, 2) for part in os.getloadavg()],
        },
        "versions": {name: versions(python, CONTENDERS[name].distributions) for name, python in interpreters.items()},
    }  # fmt: skip
