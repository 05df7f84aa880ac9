"""An extra that is not installed: what needs it says exactly how to install it, from Python and from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

TURN = "from pollux_like import Config, Environment, Input\nfrom pollux_like.sync import interact\n"
INTERACT = TURN + "interact(Environment(), Input('Hi'), Config({0!r}, 'm', api_key='sim-key'))"
LOCAL = TURN + "interact(Environment(), Input('Hi'), Config('local', {model!r}))"

CASES: list[tuple[str, tuple[str, ...], str, tuple[str, ...]]] = [
    # extra, packages that are not there, what needs them in Python, what needs them on the command line
    ("openai", ("openai",), INTERACT.format("openai"), ("chat", "--provider", "openai", "--model", "m", "Hi")),
    ("anthropic", ("anthropic",), INTERACT.format("anthropic"), ("chat", "--provider", "anthropic", "--model", "m", "Hi")),
    ("gemini", ("google", "google.genai"), INTERACT.format("gemini"), ("chat", "--provider", "gemini", "--model", "m", "Hi")),
    ("gemini", ("google.genai",), INTERACT.format("gemini"), ("chat", "--provider", "gemini", "Hi")),
    ("openrouter", ("openai",), INTERACT.format("openrouter"), ("chat", "--provider", "openrouter", "--model", "m", "Hi")),
    ("local", ("xllamacpp",), LOCAL, ("chat", "--provider", "local", "--model", "{model}", "Hi")),
    ("local", ("jinja2",), LOCAL, ("chat", "--provider", "local", "--model", "{model}", "Hi")),
    ("postgres", ("psycopg",), "import pollux_like\npollux_like.open_store('postgresql://x')",
     ("talks", "list", "--store", "postgresql://x")),
    ("postgres", ("psycopg_pool",), "import pollux_like\npollux_like.open_store('postgresql://x')",
     ("chat", "--store", "postgresql://x", "--talk", "t", "Hi")),
    ("typed", ("regex",), "import pollux_like.typed", ("serve", "typed")),
    ("typed", ("regex",), "from pollux_like.typed.sync import typed", ("typed", "calibrate", "none.jsonl")),
    ("typed", ("starlette",), "import pollux_like.typed.server", ("serve", "typed")),
    ("typed", ("uvicorn",), "import pollux_like.typed.server", ("serve", "typed")),
    ("typed", ("httpx2",), "import anyio\nfrom pollux_like.typed import open_engine\nanyio.run(open_engine, 'openai')",
     ("typed", "calibrate", "none.jsonl", "--engine", "openai")),
    ("simulator", ("starlette",), "import pollux_like.simulator", ("simulate",)),
    ("simulator", ("uvicorn",), "from pollux_like.simulator import Simulator", ("demo", "--no-embedded")),
    ("viewer", ("starlette",), "import pollux_like.viewer", ("view", "--store", "memory:")),
    ("viewer", ("uvicorn",), "from pollux_like.viewer import make_app", ("view", "--store", "memory:")),
    ("environments", ("starlette",), "import pollux_like.environments", ("serve", "environment", "m:C")),
    ("environments", ("uvicorn",), "from pollux_like.environments import Server", ("serve", "environment", "m:C")),
    ("environments", ("httpx2",), "from pollux_like.environments import EnvironmentClient", ("serve", "environment", "m:C")),
    ("environments", ("jinja2",), "from pollux_like.environments import Message, TextBlock, export_text\n"
     "export_text([Message(role='user', blocks=[TextBlock(text='Hi')])], '{{ messages }}')", ()),
    ("seal", ("cryptography",), "from pollux_like import ContinuationSealer\nContinuationSealer(['A' * 43 + '='])",
     ("talks", "list", "--store", "memory:")),
    ("cli", ("typer",), "", ("doctor",)),
    ("cli", ("rich",), "", ("chat", "Hi")),
]  # fmt: skip


def test_every_extra_is_a_case() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])
    assert {case[0] for case in CASES} == extras - {"all", "dev", "docs", "otel"}


def ended(code: str, blocked: tuple[str, ...], *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter in which some packages are not installed."""
    hidden = f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
    environment = {
        "PATH": os.environ["PATH"], "HOME": "/", "OPENAI_API_KEY": "sim-key", "ANTHROPIC_API_KEY": "sim-key",
        "GEMINI_API_KEY": "sim-key", "OPENROUTER_API_KEY": "sim-key", "POLLUX_LIKE_STORE_KEYS": "A" * 43 + "=",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", hidden + code, *arguments], capture_output=True, text=True, check=False, cwd=folder,
        env=environment, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1][0]}-{'-'.join(case[3][:2])}")
def test_what_needs_an_extra_names_the_command_that_installs_it(
    case: tuple[str, tuple[str, ...], str, tuple[str, ...]], tmp_path: Path
) -> None:
    extra, blocked, code, arguments = case
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    (tmp_path / "none.jsonl").write_text("")
    install = f'pip install "pollux-like[{extra}]"'
    if code:
        caught = (
            "from pollux_like.errors import ConfigurationError\ntry:\n"
            + "".join(f"    {line}\n" for line in code.replace("{model!r}", repr(str(model))).splitlines())
            + "except ConfigurationError as error:\n    print(type(error).__name__, error.extra, error.hint)"
        )
        done = ended(caught, blocked, folder=tmp_path)
        assert done.stderr == ""
        assert done.stdout.startswith(f"MissingPackageError {extra} Run: {install}")
    if arguments:
        words = [str(model) if word == "{model}" else word for word in arguments]
        command = "from pollux_like.cli import main\nmain()"
        done = ended(command, blocked, *words, folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"Run: {install}" in done.stderr
        assert "Traceback" not in done.stderr
        told = ended(command, blocked, *words, "--json", folder=tmp_path)
        assert (told.returncode, json.loads(told.stderr.splitlines()[-1])["error"]["type"]) == (
            1,
            "MissingPackageError",
        )
        assert install in json.loads(told.stderr.splitlines()[-1])["error"]["hint"]


def test_spans_are_left_out_in_silence(tmp_path: Path) -> None:
    code = (
        "from pollux_like import Environment, Input\nfrom pollux_like.sync import interact\n"
        "from pollux_like.testing import Scripted, say\n"
        "print(interact(Environment(), Input('Hi'), Scripted([say('Hello')]).config).text)"
    )
    done = ended(code, ("opentelemetry", "opentelemetry.trace"), folder=tmp_path)
    assert (done.stdout, done.stderr) == ("Hello\n", "")


def test_a_missing_package_is_an_import_error_too_and_survives_a_pickle() -> None:
    import copy
    import pickle

    from pollux_like.errors import missing_extra

    error = missing_extra("seal", ModuleNotFoundError("no", name="cryptography.hazmat"))
    assert isinstance(error, ImportError)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(again), again.name, again.extra) == (str(error), "cryptography", "seal")
    assert str(error) == 'the package cryptography is not installed. Run: pip install "pollux-like[seal]".'
