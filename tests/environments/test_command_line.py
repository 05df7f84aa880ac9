"""`pollux-like serve environment`: a class of the current folder, on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pollux_like.environments import EnvironmentClient

CODE = """
from pollux_like.environments import Environment, TextBlock


class River(Environment):
    def get_prompt(self):
        return [TextBlock(text="Name a river.")]

    @classmethod
    def list_tasks(cls, split):
        return [{"id": "river"}]
"""
COMMAND = [sys.executable, "-c", "from pollux_like.cli import main; main()", "serve", "environment"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_a_class_is_served_by_name_with_a_token(tmp_path: Path) -> None:
    (tmp_path / "river.py").write_text(CODE)
    command = [*COMMAND, "river:River", "--port", "0", "--token-variable", "RIVER_TOKEN"]
    environ = {**os.environ, "RIVER_TOKEN": "t0ken"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        with (
            EnvironmentClient(address, token="t0ken") as environment,
            environment.session(split="train", index=0) as session,
        ):
            assert session.get_messages("openai") == [{"role": "user", "content": "Name a river."}]
    finally:
        process.terminate()
        process.communicate()


def test_what_cannot_be_served_is_two_sentences(tmp_path: Path) -> None:
    (tmp_path / "river.py").write_text(CODE)
    for target, said in (
        ("river", "names no class"),
        ("sea:River", "no module sea"),
        ("river:Sea", "has no Sea"),
        ("river:TextBlock", "no environment class"),
    ):
        done = run(tmp_path, target)
        assert (done.returncode, said in " ".join(done.stderr.split())) == (1, True), done.stderr
    assert run(tmp_path, "river:River", "--token-variable", "NOT_SET").returncode == 1
