"""What is released: the sdist and the wheel are whole, and the wheel works where nothing else is installed."""

from __future__ import annotations

import email
import email.message
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("build", reason="the builder is not installed; run: make test")

ROOT = Path(__file__).parent.parent
PACKAGES = ("pollux_like", *sorted(path.name for path in (ROOT / "providers").iterdir() if path.is_dir()))
NEWEST = ("3.15", "3.14", "3.13", "3.12")


@dataclass(frozen=True, slots=True)
class Built:
    """The tree, the sdist, the wheel that was made of it, and the wheel that was made of the tree."""

    tree: Path
    sdist: Path
    wheel: Path
    direct: Path


def done(*command: str | Path, cwd: Path | None = None) -> str:
    """Run to the end with success; what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def copied(to: Path) -> Path:
    """A copy of the files that git knows or would add; of all, where this is an unpacked sdist."""
    if not (ROOT / ".git").exists():
        return shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns("__pycache__", ".venv", "build", ".*_cache"))
    names = done("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():  # what is deleted and not yet committed is known still
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built as a release is: the wheel out of the sdist, not out of the tree. The tree is a copy, which nobody edits."""
    folder = tmp_path_factory.mktemp("dist")
    tree = copied(folder / "tree")
    done(sys.executable, "-m", "build", "--outdir", folder, tree)
    done(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", tree)
    (sdist,), (wheel,), (direct,) = (list(folder.glob(pattern)) for pattern in ("*.tar.gz", "*.whl", "direct/*.whl"))
    return Built(tree, sdist, wheel, direct)


def contents(wheel: Path) -> dict[str, bytes]:
    """Names and bytes of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> email.message.Message:
    """The wheel's METADATA."""
    (text,) = (data for name, data in contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(text)


def test_the_wheel_holds_the_packages_whole_and_nothing_else(built: Built) -> None:
    names = set(contents(built.wheel))
    source = {
        path.relative_to(base).as_posix()
        for base in (built.tree, built.tree / "providers")
        for package in PACKAGES
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    info = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - info == source
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert "pollux_like/typed/playground.html" in names
    assert {"index.html", "main.js", "style.css"} <= {
        name.removeprefix("pollux_like/viewer/page/") for name in names if "/page/" in name
    }
    assert {name.partition("/")[2] for name in info} >= {"METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_the_sdist_gives_the_same_wheel_as_the_tree(built: Built) -> None:
    assert contents(built.wheel) == contents(built.direct)


def test_the_sdist_holds_what_tests_and_documents_need_and_no_leavings(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml",
        "tests/test_release.py", "tests/golden", "docs/index.md", "docs/generate/__main__.py", "cookbook/__main__.py",
        "providers/README.md", "PKG-INFO",
    } <= names | {name.rpartition("/")[0] for name in names}  # fmt: skip
    leavings = ("__pycache__", ".pyc", ".cache", ".venv", ".git/", ".hypothesis", "build/", "_cache/")
    assert [name for name in names if any(word in f"{name}/" for word in leavings)] == []


def test_the_metadata_is_valid_and_the_description_renders(built: Built) -> None:
    said = done(sys.executable, "-m", "twine", "--no-color", "check", "--strict", built.sdist, built.wheel)
    assert said.count("PASSED") == 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = metadata(built.wheel)
    assert found["Version"] == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert found.get_all("License-File") == ["LICENSE"]
    needed = {line.split(">")[0].split("<")[0] for line in found.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert needed == {"anyio", "docstring-parser", "jsonschema", "pydantic"}
    assert set(found.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])


def newer() -> str | None:
    """A Python that is newer than this one."""
    for version in NEWEST:
        if tuple(map(int, version.split("."))) <= sys.version_info[:2]:
            return None
        places = [
            shutil.which(f"python{version}"),
            *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
        ]
        for place in filter(None, places):
            ran = subprocess.run([place, "-c", "import venv, ensurepip"], capture_output=True, check=False)
            if ran.returncode == 0:  # a shim may stand for a version that is not there
                return place
    return None


PROGRAM = """
import json, sys

import pollux_like

assert not {"pytest", "typer", "starlette", "openai", "anthropic", "httpx2"} & set(sys.modules)

from pollux_like import Config, Continuation, Environment, Input
from pollux_like.errors import ConfigurationError
from pollux_like.store.sync import open_store
from pollux_like.sync import interact
from pollux_like.testing import Scripted, say

model = Scripted([say("Hello Sean.")], [say("Sean.")], [say("Kept.")], [say("Still.")])
first = interact(Environment(), Input("I am Sean.", history=[]), model.config)
saved = json.dumps(first.continuation.to_jsonable())
second = interact(
    Environment(), Input("Who am I?", continuation=Continuation.from_jsonable(json.loads(saved))), model.config
)
assert len(model.requests[1].messages) == 3
with open_store("sqlite:///talks.db") as store:
    store.create("a", scope="s").interact(Environment(), Input("Keep this."), model.config)
with open_store("sqlite:///talks.db") as store:
    third = store.load("a", scope="s").interact(Environment(), Input("And?"), model.config)
missing = []
for provider in ("openai", "anthropic", "gemini", "openrouter"):
    try:
        interact(Environment(), Input("Hi"), Config(provider, "m", api_key="sim-key"))
    except ConfigurationError as error:
        missing.append(error.hint)
print(json.dumps({"texts": [first.text, second.text, third.text], "missing": missing, "version": sys.version_info[:2],
                  "modules": sorted({name.split(".")[0] for name in sys.modules})}))
"""


@pytest.mark.parametrize("which", ["this Python", "a newer Python"])
def test_the_wheel_alone_talks_saves_and_keeps(built: Built, tmp_path: Path, which: str) -> None:
    python = sys.executable if which == "this Python" else newer()
    if python is None:
        pytest.skip("no newer Python is installed here")
    done(python, "-m", "venv", tmp_path / "venv")
    clean = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    done(clean, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", built.wheel)
    said = json.loads(done(clean, "-W", "error", "-c", PROGRAM, cwd=tmp_path))
    assert said["texts"] == ["Hello Sean.", "Sean.", "Still."]
    assert [hint.partition("[")[2] for hint in said["missing"]] == [
        'openai]"', 'anthropic]"', 'gemini]"', 'openrouter]"',
    ]  # fmt: skip
    assert (tuple(said["version"]) > sys.version_info[:2]) is (which == "a newer Python")
    development = {"pytest", "hypothesis", "typer", "rich", "openai", "starlette", "build", "twine", "setuptools"}
    assert not development & set(said["modules"])
    bare = subprocess.run(
        [str(clean.with_name("pollux-like")), "doctor"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (bare.returncode, bare.stdout) == (1, "")
    assert bare.stderr == 'the package typer is not installed.\nRun: pip install "pollux-like[cli]".\n'
