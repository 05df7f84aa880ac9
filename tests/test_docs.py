"""The documents: every Python block runs offline, and every command, option, path, link and anchor in them exists.

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
import importlib
import importlib.util
import inspect
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from test_cookbook import RECIPES
from test_seed_page import PDF

from pollux_like import testing
from pollux_like.simulator import Simulator

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "providers/README.md"])
WITHOUT_BOX = {"index", "capabilities", "cookbook", "performance", "temporal", "viewer"}
"""Pages that are no concept: lists, tables, recipes and tools."""
WORDS = ("answer", "call", "compaction", "redacted", "refuse", "say", "server_tool", "think")
PASSED_ON = frozenset({"cd", "cp", "export", "git"})
"""Commands of a shell that are nothing of this project's."""

_FENCE = re.compile(r"^(?:<!-- (answers|needs|skip): (.*?) -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_COMMAND = re.compile(r"`((?:make|pollux-like|python -m cookbook) [^`]+)`")
_BOX = re.compile(r"^\| The library owns \| You own \|\n\|---\|---\|\n(?:\| .+ \| .+ \|\n){2,}", re.MULTILINE)


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
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def extras() -> set[str]:
    """What stands in brackets of `pip install`."""
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])


def check_command(line: str) -> None:
    """Every name in a command line of this project exists."""
    words = shlex.split(line, comments=True)
    match words:
        case [] | ["pytest", *_] | ["python" | ".venv/bin/python", "-m", "pytest" | "venv", *_]:
            return
        case ["python", "-m", "cookbook", *rest]:
            match rest:
                case ["run", name, *_] if name != "NAME":
                    assert name in RECIPES, line
                case _:
                    assert rest[:1] in (["list"], ["run"]), line
        case [".venv/bin/python", "-m", "pip", *rest]:
            check_command(shlex.join(["pip", *rest]))
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
    if getattr(command, "commands", {}):  # no command is named: the program's own options, such as --help
        assert words, line
        assert all(word.startswith("-") for word in words), line
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known.add("--help")
    assert {word.split("=")[0] for word in words if word.startswith("-")} <= known, line


@pytest.mark.parametrize("page", pages("bash"))
def test_every_shell_line_names_what_exists(page: Path) -> None:
    for block in blocks(page, "bash"):
        for line in block.code.replace("\\\n", " ").splitlines():
            check_command(line)


def slugs(page: Path) -> set[str]:
    """The anchors of a page: its headings, as code hosts and the site make them; a heading that comes again is numbered."""
    found: list[str] = []
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text("utf-8"))):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        again = sum(one == words or re.fullmatch(rf"{re.escape(words)}-\d+", one) is not None for one in found)
        found.append(f"{words}-{again}" if again else words)
    return set(found)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_every_link_and_command_in_the_text_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text("utf-8"))
    for link, anchor in _LINK.findall(text):
        if "://" in link:
            continue
        target = (page.parent / link).resolve() if link else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in slugs(target), f"{page.name}: {link}#{anchor}"
    for command in _COMMAND.findall(text):
        if "…" not in command:
            check_command(command)


def test_every_page_that_the_code_names_exists() -> None:
    files = [file for folder in ("pollux_like", "tests") for file in (ROOT / folder).rglob("*.py")]
    named = {name for file in files for name in re.findall(r"(?<![\w/])docs/[a-z-]+\.md\b", file.read_text("utf-8"))}
    assert "docs/store.md" in named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_links_to_other_hosts_are_few_and_known() -> None:
    links = {
        link for page in PAGES for link, _ in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))) if "://" in link
    }
    assert links == {"https://semver.org", "https://github.com/open-telemetry/semantic-conventions-genai"}


def test_every_page_of_a_concept_has_its_box() -> None:
    concepts = [page for page in DOCS.glob("*.md") if page.stem not in WITHOUT_BOX]
    assert len(concepts) >= 17
    for page in concepts:
        assert len(_BOX.findall(page.read_text("utf-8"))) == 1, page.name


def generator(part: str) -> Any:
    """A module of docs/generate."""
    spec = importlib.util.spec_from_file_location(part, DOCS / f"generate/{part}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_leads_to_every_page_once() -> None:
    listed = [path for entries in generator("llms").sections().values() for _, path, _ in entries]
    assert sorted(listed) == sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.name != "index.md"
    )


def test_the_pages_made_from_the_code_say_what_it_does() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_named_and_mended(tmp_path: Path) -> None:
    copy = tmp_path / "docs"
    shutil.copytree(DOCS, copy)
    shutil.copytree(ROOT / "cookbook", tmp_path / "cookbook")
    (copy / "tools.md").write_text("# Tools\n\nOther words.\n", "utf-8")
    (copy / "api/sync.md").unlink()
    command = [sys.executable, str(copy / "generate")]
    stale = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert stale.returncode == 1
    assert "api/sync.md" in stale.stderr
    subprocess.run(command, check=True)
    assert "Other words." in (copy / "llms-full.txt").read_text("utf-8")
    assert (copy / "api/sync.md").read_text("utf-8") == (DOCS / "api/sync.md").read_text("utf-8")


def test_the_table_of_capabilities_is_made_where_no_sdk_is_installed() -> None:
    code = (
        "import sys, runpy\nfor name in ('openai', 'anthropic', 'httpx2', 'xllamacpp'): sys.modules[name] = None\n"
        "sys.argv = ['generate', '--check', 'capabilities']\n"
        f"runpy.run_path({str(DOCS / 'generate')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", list(generator("reference").MODULES))
def test_every_public_name_is_in_the_reference_with_its_docstring(name: str) -> None:
    made = generator("reference")
    module = importlib.import_module(name)
    page = (DOCS / f"api/{name.removeprefix('pollux_like.')}.md").read_text("utf-8")
    names = made.public(module)
    assert names
    for one, value in names.items():
        assert f"\n## {one}\n" in page, one
        if inspect.isclass(value) or inspect.isroutine(value):
            first = (inspect.getdoc(value) or "").splitlines()
            assert first, f"{one} has no docstring"
            assert first[0] in page, one
    assert "object at 0x" not in page


def test_the_limits_of_saved_state_are_those_of_the_code() -> None:
    from pollux_like import canonical, continuation, messages, sources, turns

    table = (DOCS / "state.md").read_text("utf-8").partition("\n## Limits\n")[2]
    told = {
        what: int(most.replace(",", "")) for what, most in re.findall(r"^\| (.+?) \| ([\d,]+)", table, re.MULTILINE)
    }
    assert told == {
        "a saved continuation": continuation.MAX_CHARS,
        "a reply of a provider": continuation.MAX_REPLY_CHARS,
        "turns": continuation.MAX_TURNS,
        "nesting of an item of a provider": turns.MAX_ITEM_DEPTH,
        "nesting of any other JSON value: arguments, schemas, options": canonical.MAX_DEPTH,
        "tool calls of one assistant message": messages.MAX_TOOL_CALLS,
        "the id of a tool call": messages.MAX_ID_LENGTH,
        "the name of a tool": 64,
        "a source": sources.MAX_SOURCE_BYTES,
        "an integer in JSON": 4096,
    }


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    from pollux_like import errors

    told = re.findall(r"^[│├└─ ]*(\w+Error)\b", (DOCS / "errors.md").read_text("utf-8").split("```")[1], re.MULTILINE)
    known = [name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)]
    assert sorted(told) == sorted(known)


def test_every_threat_names_a_test_that_exists() -> None:
    named = re.findall(r"`(tests/[^`]+)`", (DOCS / "security.md").read_text("utf-8"))
    assert len(named) >= 20
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_the_site_is_built_without_a_warning_and_reaches_no_other_host(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the site's generator is not installed; run: make docs-site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "llms.txt").read_text("utf-8").startswith("# pollux_like\n\n> ")
    assert (tmp_path / "getting-started.md").is_file()  # where llms.txt leads
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(https?:)?//", page.read_text("utf-8"))
        assert loaded == [], page.name
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", style.read_text("utf-8")), style.name
