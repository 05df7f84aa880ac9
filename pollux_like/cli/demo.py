"""`pollux-like demo`: a conversation goes on, over processes and over a crash. Real processes, real HTTP, no key."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from pollux_like.cli.console import console
from pollux_like.errors import PolluxLikeError
from pollux_like.testing.script import call, say, think

if TYPE_CHECKING:
    from pollux_like.simulator import Simulator

TARGETS = (("openai", "gpt-5.2"), ("anthropic", "claude-opus-4-6"))


def run(*, embedded: bool) -> None:
    """Both parts. Raises PolluxLikeError where one did not go as it must."""
    with tempfile.TemporaryDirectory(prefix="pollux-like-") as folder:
        if embedded:
            _embedded(Path(folder))
        _crash(Path(folder))
    console.print("\n[bold green]The conversations went on.[/bold green]")
    console.print("Next: docs/getting-started.md, `pollux-like chat`")


def _worker(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pollux_like.cli.demo_worker", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own module


def _reports(process: subprocess.Popen[str], *, until: str | None = None) -> list[dict[str, Any]]:
    """What a worker reports, to its end or to a line with the member `until`."""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None  # a pipe was asked for
    for line in process.stdout:
        found.append(json.loads(line))
        if until is not None and until in found[-1]:
            return found
    if process.wait() != 0 or until is not None:
        raise PolluxLikeError(f"the process ended with {process.returncode}", hint="Look at its error output above")
    return found


def _embedded(folder: Path) -> None:
    console.rule("1  The embedded model: saved, reloaded in another process, continued")
    file = folder / "talk.json"
    with _worker("talk", str(file), "What is the capital of France?") as first:
        before = _reports(first)
        _show_talk(first.pid, before)
    console.print(
        f"   saved {file.stat().st_size} bytes, digest [cyan]{before[-1]['digest'][:16]}[/cyan]; that process is gone"
    )
    with _worker("talk", str(file), "And of Italy?", "And of Spain?") as second:
        after = _reports(second)
        _show_talk(second.pid, after)
    console.print(
        f"   'And of Italy?' makes sense only with what the first process heard; the last turn found "
        f"{after[-1]['cached']} of {after[-1]['input']} prompt tokens in the model's cache"
    )


def _show_talk(pid: int, reports: Sequence[dict[str, Any]]) -> None:
    for entry in reports:
        console.print(
            f"[dim]process {pid}[/dim]  user › {entry['user']}\n               model › {escape(entry['text'])}"
        )


def _crash(folder: Path) -> None:
    from pollux_like.simulator import Simulator

    console.rule("2  A tool loop with signed thinking, killed in the middle, finished from the saved state")
    with Simulator(seed=1) as sim:
        for provider, model in TARGETS:
            _script(sim)
            whole = _loop(sim, folder / f"{provider}-whole.json", provider, model)
            sim.reset()
            _script(sim)
            _killed(sim, folder / f"{provider}.json", provider, model, whole)
            sim.reset()


def _script(sim: Simulator) -> None:
    sim.reply(
        think("Both piers matter."),
        say("I read the north pier."),
        call("read_station", {"station": "north pier"}, id="call_1"),
    )
    sim.reply(think("Rough there. The south?"), call("read_station", {"station": "south pier"}, id="call_2"))
    sim.reply(think("Calm."), say("Land at the south pier: it is calm there."))


def _loop(sim: Simulator, file: Path, provider: str, model: str) -> list[dict[str, Any]]:
    """The loop without a crash: the requests that it sends."""
    with _worker("work", str(file), provider, model, sim.base_url(provider), "-1") as process:
        _reports(process)
    return [request.body for request in sim.requests]


def _killed(sim: Simulator, file: Path, provider: str, model: str, whole: list[dict[str, Any]]) -> None:
    console.print(f"\n[bold]{provider}[/bold] ({model}, on its own wire)")
    with _worker("work", str(file), provider, model, sim.base_url(provider), "2") as first:
        reports = _reports(first, until="waiting")
        _show_work(first.pid, reports[:-1])
        first.kill()
    console.print(
        f"   [red]killed[/red] process {first.pid} while {', '.join(reports[-1]['waiting'])} waited for its result"
    )
    with _worker("work", str(file), provider, model, sim.base_url(provider), "-1") as second:
        rest = _reports(second)
        _show_work(second.pid, [entry for entry in rest if "done" not in entry])
    sent = [request.body for request in sim.requests]
    if sent != whole or any(request.status != 200 for request in sim.requests):
        raise PolluxLikeError("the requests after the crash differ", hint="Report this with the output above")
    signed = json.dumps(sent[-1]).count('"encrypted_content":' if provider == "openai" else '"signature":')
    console.print(
        f"   {len(sent)} requests, the same as without the crash; the last carried {signed} signed thoughts, "
        f"and the strict server verified each"
    )


def _show_work(pid: int, reports: Sequence[dict[str, Any]]) -> None:
    for entry in reports:
        for station in entry["ran"]:
            console.print(f"[dim]process {pid}[/dim]  tool  › {station}")
        if entry["text"]:
            console.print(f"[dim]process {pid}[/dim]  model › {escape(entry['text'])}")
        for station in entry["asked"]:
            console.print(f"[dim]process {pid}[/dim]  model › calls read_station({station!r})")
