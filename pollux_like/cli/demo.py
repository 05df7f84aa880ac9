"""`pollux-like demo`: a conversation goes on, over processes and over a crash. Real processes, real HTTP, no key."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from pollux_like.cli.console import emit, notes, working
from pollux_like.errors import PolluxLikeError
from pollux_like.testing.script import call, say, think

if TYPE_CHECKING:
    from pollux_like.simulator import Simulator

TARGETS = (("openai", "gpt-5.2"), ("anthropic", "claude-opus-4-6"))


def run(*, embedded: bool, as_json: bool) -> None:
    """Both parts. Raises PolluxLikeError where one did not go as it must."""
    to = notes(as_json)
    with tempfile.TemporaryDirectory(prefix="pollux-like-") as folder:
        talked = _embedded(Path(folder), to, as_json) if embedded else None
        loops = _crash(Path(folder), to)
    if as_json:
        emit({"embedded": talked, "loops": loops})
        return
    to.print("\n[bold green]The conversations went on.[/bold green]")
    to.print("Next: docs/getting-started.md, `pollux-like chat`")


@contextmanager
def _worker(*arguments: str) -> Generator[subprocess.Popen[str]]:
    """A process of our own module. It ends with the block, however that ends; Ctrl-C is for this process alone."""
    command = [sys.executable, "-m", "pollux_like.cli.demo_worker", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:  # noqa: S603
        try:
            yield process
        finally:
            process.kill()


def _reports(process: subprocess.Popen[str], *, until: str | None = None) -> list[dict[str, Any]]:
    """What a worker reports, to its end or to a line with the member `until`."""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None  # a pipe was asked for
    for line in process.stdout:
        found.append(json.loads(line))
        if "error" in found[-1]:
            process.wait()
            raise PolluxLikeError(**found[-1]["error"])
        if until is not None and until in found[-1]:
            return found
    if process.wait() != 0 or until is not None:
        raise PolluxLikeError(f"the process ended with {process.returncode}", hint="Look at its error output above")
    return found


def _embedded(folder: Path, to: Console, as_json: bool) -> list[dict[str, Any]]:
    to.rule("1  The embedded model: saved, reloaded in another process, continued")
    file = folder / "talk.json"
    with _worker("talk", str(file), "What is the capital of France?") as first:
        with working("The embedded model loads and answers", as_json=as_json):
            before = _reports(first)
        _show_talk(first.pid, before, to)
    to.print(
        f"   saved {file.stat().st_size} bytes, digest [cyan]{before[-1]['digest'][:16]}[/cyan]; that process is gone"
    )
    with _worker("talk", str(file), "And of Italy?", "And of Spain?") as second:
        with working("The embedded model loads again and answers", as_json=as_json):
            after = _reports(second)
        _show_talk(second.pid, after, to)
    to.print(
        f"   'And of Italy?' makes sense only with what the first process heard; the last turn found "
        f"{after[-1]['cached']} of {after[-1]['input']} prompt tokens in the model's cache"
    )
    return [{"process": pid, **entry} for pid, said in ((first.pid, before), (second.pid, after)) for entry in said]


def _show_talk(pid: int, reports: Sequence[dict[str, Any]], to: Console) -> None:
    for entry in reports:
        to.print(f"[dim]process {pid}[/dim]  user › {entry['user']}\n               model › {escape(entry['text'])}")


def _crash(folder: Path, to: Console) -> list[dict[str, Any]]:
    from pollux_like.simulator import Simulator

    loops: list[dict[str, Any]] = []
    to.rule("2  A tool loop with signed thinking, killed in the middle, finished from the saved state")
    with Simulator(seed=1) as sim:
        for provider, model in TARGETS:
            _script(sim)
            whole = _loop(sim, folder / f"{provider}-whole.json", provider, model)
            sim.reset()
            _script(sim)
            loops.append(_killed(sim, folder / f"{provider}.json", provider, model, whole, to))
            sim.reset()
    return loops


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


def _killed(
    sim: Simulator, file: Path, provider: str, model: str, whole: list[dict[str, Any]], to: Console
) -> dict[str, Any]:
    to.print(f"\n[bold]{provider}[/bold] ({model}, on its own wire)")
    with _worker("work", str(file), provider, model, sim.base_url(provider), "2") as first:
        reports = _reports(first, until="waiting")
        _show_work(first.pid, reports[:-1], to)
        first.kill()
    to.print(
        f"   [red]killed[/red] process {first.pid} while {', '.join(reports[-1]['waiting'])} waited for its result"
    )
    with _worker("work", str(file), provider, model, sim.base_url(provider), "-1") as second:
        rest = _reports(second)
        _show_work(second.pid, [entry for entry in rest if "done" not in entry], to)
    sent = [request.body for request in sim.requests]
    if sent != whole or any(request.status != 200 for request in sim.requests):
        raise PolluxLikeError("the requests after the crash differ", hint="Report this with the output above")
    signed = json.dumps(sent[-1]).count('"encrypted_content":' if provider == "openai" else '"signature":')
    to.print(
        f"   {len(sent)} requests, the same as without the crash; the last carried {signed} signed thoughts, "
        f"and the strict server verified each"
    )
    return {
        "provider": provider, "model": model, "killed": reports[-1]["waiting"], "requests": len(sent), "signed": signed,
    }  # fmt: skip


def _show_work(pid: int, reports: Sequence[dict[str, Any]], to: Console) -> None:
    for entry in reports:
        for station in entry["ran"]:
            to.print(f"[dim]process {pid}[/dim]  tool  › {station}")
        if entry["text"]:
            to.print(f"[dim]process {pid}[/dim]  model › {escape(entry['text'])}")
        for station in entry["asked"]:
            to.print(f"[dim]process {pid}[/dim]  model › calls read_station({station!r})")
