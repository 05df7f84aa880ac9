"""The documents: every Python block runs offline, and every command, option, path and link that they name exists.

Blocks of one file run in order and share a namespace; `await` may stand at the top level. Requests go to the simulator.
A comment directly before a block directs it:

    <!-- answers: say("Paris."); call("get_weather", {"city": "NYC"}, id="call_1") -->

gives one reply per statement; a tuple is one reply of several parts, and `fail(...)` and `fault(...)` are the
simulator's own. All of them must be used, and nothing else may be asked.

    <!-- needs: xllamacpp -->           the block runs only where the module is installed
    <!-- skip: why it cannot run -->    the block is compiled only
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from test_seed_page import PDF

from pollux_like import testing
from pollux_like.simulator import Simulator

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("cookbook/*.md"), ROOT / "providers/README.md"])
RECIPES = sorted(ROOT.glob("cookbook/*.py"))
WORDS = ("answer", "call", "compaction", "redacted", "refuse", "say", "server_tool", "think")
PASSED_ON = frozenset({"cd", "cp", "export", "git"})
"""Commands of a shell that are nothing of this project's."""

_FENCE = re.compile(r"^(?:<!-- (answers|needs|skip): (.*?) -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_COMMAND = re.compile(r"`((?:make|pollux-like) [^`]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, the line before its first, the word and text of the comment before it."""

    language: str
    line: int
    code: str
    word: str | None
    text: str


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page in one language."""
    text = page.read_text("utf-8")
    return [
        Block(found[3], text.count("\n", 0, found.start(4)), found[4], found[1], found[2] or "")
        for found in _FENCE.finditer(text)
        if found[3] == language
    ]


def pages(language: str) -> list[Any]:
    """The pages that have blocks in a language."""
    return [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES if blocks(page, language)]


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    """One simulator for all pages."""
    with Simulator() as running:
        yield running


def queue(sim: Simulator, script: str) -> None:
    """Queue the replies of an `answers` comment."""
    words = {name: getattr(testing, name) for name in WORDS} | {"fail": sim.fail, "fault": sim.fault}
    for statement in ast.parse(script).body:
        assert isinstance(statement, ast.Expr), "an answers comment holds calls only"
        said: Any = eval(compile(ast.Expression(statement.value), "<answers>", "eval"), dict(words))
        if said is not None:
            sim.reply(*(said if isinstance(said, tuple) else (said,)))


def run(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Execute one block; a traceback shows the line of the page."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * block.line + block.code, str(page), "exec", flags=flags, dont_inherit=True)
    if block.word == "skip" or (block.word == "needs" and importlib.util.find_spec(block.text) is None):
        return
    running = eval(code, names)
    if running is not None:
        asyncio.run(running)


@pytest.mark.parametrize("page", pages("python"))
def test_every_python_block_runs(
    page: Path, sim: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sim.reset()
    for name, value in sim.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for name in ("current-report.pdf", "report.pdf"):
        Path(name).write_bytes(PDF)
    names: dict[str, Any] = {"__name__": page.stem.replace("-", "_")}
    for block in blocks(page, "python"):
        sim.clear()
        queue(sim, block.text if block.word == "answers" else "")
        expected = sim.left
        run(block, page, names)
        assert sim.left == 0, f"{page.name}:{block.line}: {sim.left} answers were not asked for"
        asked = len(sim.requests)
        assert asked == expected, f"{page.name}:{block.line}: {asked} requests, {expected} answers"


def test_a_block_is_skipped_for_a_reason_only() -> None:
    skipped = [block for page in PAGES for block in blocks(page, "python") if block.word == "skip"]
    assert all(len(block.text.split()) > 2 for block in skipped)


def targets() -> set[str]:
    """What `make` can make."""
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def extras() -> set[str]:
    """What stands in brackets of `pip install`."""
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])


def check_command(line: str) -> None:
    """Every name in a command line of this project exists."""
    words = shlex.split(line, comments=True)
    match words:
        case [] | ["pytest", *_] | ["python" | ".venv/bin/python", "-m", "pytest", *_]:
            return
        case ["make", *rest]:
            assert {word for word in rest if "=" not in word} <= targets(), line
        case ["pip", "install", *rest]:
            (named,) = (word for word in rest if not word.startswith("-"))
            inner = re.fullmatch(r"(?:pollux-like|\.)(?:\[([a-z,]+)\])?", named)
            assert inner is not None, line
            assert set((inner[1] or "all").split(",")) <= extras(), line
        case ["pollux-like", *rest]:
            check_options(rest, line)
        case ["python", file, *_]:
            assert (ROOT / file).is_file(), line
        case [first, *_]:
            assert first.split("=")[0] in PASSED_ON or re.fullmatch(r"[A-Z_]+=\S+", first), line


def check_options(words: list[str], line: str) -> None:
    """The command and its options are the ones that typer knows."""
    import typer

    from pollux_like.cli.app import app

    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    assert not getattr(command, "commands", {}), line
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("-")} <= known, line


@pytest.mark.parametrize("page", pages("bash"))
def test_every_shell_line_names_what_exists(page: Path) -> None:
    for block in blocks(page, "bash"):
        for line in block.code.replace("\\\n", " ").splitlines():
            check_command(line)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_every_link_and_command_in_the_text_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text("utf-8"))
    for link in _LINK.findall(text):
        if "://" not in link:
            assert (page.parent / link).exists(), f"{page.name}: {link}"
    for command in _COMMAND.findall(text):
        if "…" not in command:
            check_command(command)


def test_the_table_of_capabilities_says_what_the_code_does() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_table_of_capabilities_is_made_where_no_sdk_is_installed() -> None:
    code = (
        "import sys, runpy\nfor name in ('openai', 'anthropic', 'httpx2', 'xllamacpp'): sys.modules[name] = None\n"
        f"sys.argv = ['generate.py', '--check']\nrunpy.run_path({str(ROOT / 'docs/generate.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def recipe(name: str, folder: Path, *arguments: str, status: int = 0, **variables: str) -> str:
    """Run a recipe in a folder of its own; returns what it printed."""
    command = [sys.executable, str(ROOT / "cookbook" / name), *arguments]
    env = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_every_recipe_says_what_it_is_for() -> None:
    assert len(RECIPES) >= 2
    for file in RECIPES:
        said = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        for heading in ("Problem", "When", "Run", "What you see"):
            assert f"{heading}:" in said, f"{file.name}: {heading}"


def test_the_chat_goes_on_from_its_file(tmp_path: Path) -> None:
    first = recipe("chat_loop_saved_to_a_file.py", tmp_path, "I am Sean.")
    second = recipe("chat_loop_saved_to_a_file.py", tmp_path, "Who am I?")
    assert "1 message" in first
    assert "3 messages" in second
    assert "I am Sean." in second
    assert [file.name for file in tmp_path.iterdir()] == ["chat.json"]


def test_the_tool_loop_survives_its_crash(tmp_path: Path) -> None:
    crashed = recipe("tool_loop_that_survives_a_crash.py", tmp_path, status=1)
    assert crashed.count("running") == 1
    assert "Crash" in crashed
    resumed = recipe("tool_loop_that_survives_a_crash.py", tmp_path)
    assert "Waiting: book" in resumed
    assert resumed.count("running") == 1
    assert "Done" in resumed
    assert [booking["flight"] for booking in json.loads((tmp_path / "bookings.json").read_text())] == ["LX 1"]
