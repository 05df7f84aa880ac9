"""The other ways in: code that is not async, streams that are left early, and the command line."""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pollux_like.cli import console
from pollux_like.cli import typed as room
from pollux_like.cli.app import app
from pollux_like.errors import ConfigurationError
from pollux_like.simulator import Simulator
from pollux_like.testing import say
from pollux_like.typed import ScriptedEngine, TypedAnswer, open_engine, stream, sync

from .cases import MESSAGES, SCHEMA


def test_the_same_without_async() -> None:
    answer = sync.typed(MESSAGES, SCHEMA, engine=ScriptedEngine({"policy_number": "3201456789012345"}))
    assert answer.values["policy_number"] == "3201456789012345"


@pytest.mark.anyio
async def test_a_stream_gives_fields_and_last_the_answer() -> None:
    items = [item async for item in stream(MESSAGES, SCHEMA, engine=ScriptedEngine())]
    assert [item[0] for item in items if isinstance(item, tuple)] == ["policy_number", "reply"]
    assert isinstance(items[-1], TypedAnswer)


@pytest.mark.anyio
async def test_a_stream_that_is_left_frees_the_engine() -> None:
    engine = ScriptedEngine()
    running = stream(MESSAGES, SCHEMA, engine=engine)
    async for _ in running:
        break
    await running.aclose()
    assert engine.running == 0
    assert len(engine.prompts) == 1


@pytest.mark.anyio
async def test_a_system_message_can_be_copied_from_and_the_parameter_not() -> None:
    schema = {"n": {"type": "string", "extract": True, "pattern": "[0-9]{4}", "nullable": True}}
    hello = {"role": "user", "content": "Hello"}
    told = [
        item
        async for item in stream([{"role": "system", "content": "It is 4021"}, hello], schema, engine=ScriptedEngine())
    ]
    assert told[-1].values == {"n": "4021"}  # type: ignore[union-attr]
    apart = [item async for item in stream([hello], schema, system="It is 4021", engine=ScriptedEngine())]
    assert apart[-1].values == {"n": None}  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_an_unknown_engine_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="llama, openai"):
        await open_engine("none")


@pytest.mark.parametrize(
    ("missing", "options", "says"),
    [
        ("jinja2", {"base_url": "http://127.0.0.1:9"}, 'pip install "pollux-like[typed]"'),
        ("httpx2", {"base_url": "http://127.0.0.1:9"}, 'pip install "pollux-like[typed]"'),
        ("xllamacpp", {}, "pollux-like local setup"),
    ],
)
@pytest.mark.anyio
async def test_what_is_missing_is_named_with_its_command(
    missing: str, options: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError) as refused:
        await open_engine(n_ctx=300, **options)  # a window that no other test has loaded
    assert says in str(refused.value)


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def options(sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sim.reset()
    monkeypatch.setenv("SIM_KEY", "sim-key")
    return ["--engine", "openai", "--base-url", sim.base_url("vllm"), "--key-variable", "SIM_KEY"]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command in this process; its exit status, and all that it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        status = console.run(app, arguments)
        return status, "".join(capfd.readouterr())

    return run


def labelled(folder: Path, lines: int) -> str:
    schema = {f"f{n}": {"type": "enum", "options": ["a", "b"]} for n in range(10)}
    body = {"messages": [{"role": "user", "content": "a"}], "schema": schema}
    expected = {name: "a" if index % 3 else "b" for index, name in enumerate(schema)}
    file = folder / "labelled.jsonl"
    file.write_text((json.dumps({**body, "expected": expected}) + "\n") * lines)
    return str(file)


def test_calibrate_writes_what_serve_takes(
    command: Callable[..., tuple[int, str]],
    tmp_path: Path,
    options: list[str],
    sim: Simulator,
    served: Callable[[Any], str],
) -> None:
    out = tmp_path / "calibrator.json"
    status, said = command("typed", "calibrate", labelled(tmp_path, 30), "--out", str(out), *options)
    assert status == 0, said
    assert "300 values" in said
    engine = room.engine_options(sim.base_url("vllm"), None, "SIM_KEY")
    address = served(room.application("openai", engine, out, []))
    assert httpx2.get(f"{address}/v1/models").json()["data"][0]["calibrated"] is True
    body = {"messages": [{"role": "user", "content": "a"}], "schema": {"k": {"type": "enum", "options": ["a", "b"]}}}
    sim.reply(say("x"))
    sim.reply(say("a"))
    field = httpx2.post(f"{address}/v1/typed", json=body).json()["fields"]["k"]
    assert field["calibrated"] is True
    assert field["confidence"] == pytest.approx(0.6, abs=0.02), "six in ten of the labelled values were right"


def test_too_few_labels_are_refused(
    command: Callable[..., tuple[int, str]], tmp_path: Path, options: list[str]
) -> None:
    status, said = command("typed", "calibrate", labelled(tmp_path, 2), *options)
    assert status == 1
    assert "20 labelled values" in said


def test_a_key_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigurationError, match="NO_SUCH_KEY"):
        room.engine_options("http://127.0.0.1:1", None, "NO_SUCH_KEY")


def test_a_place_that_cannot_be_written_is_found_before_the_work(
    command: Callable[..., tuple[int, str]], tmp_path: Path, options: list[str], sim: Simulator
) -> None:
    out = tmp_path / "none" / "calibrator.json"
    status, said = command("typed", "calibrate", labelled(tmp_path, 30), "--out", str(out), *options)
    assert status == 1
    assert "cannot be written" in said
    assert sim.requests == []


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "openai", "--port", "TAKEN"], "cannot be listened on"),
        (["--engine", "openai", "--port", "70000"], "cannot be listened on"),
        (["--engine", "openai", "--host", "256.1.1.1"], "cannot be listened on"),
        (["--engine", "none", "--port", "0"], "engine 'none' is unknown"),
        (["--engine", "openai", "--port", "0"], "no base_url"),
        (["--base-url", "ftp://a.example", "--port", "0"], "no http(s) address"),
        (["--base-url", "http://127.0.0.1:TAKEN/", "--model", "x.gguf", "--port", "0"], "both given"),
        (["--model", "/no/such.gguf", "--port", "0"], "cannot be read"),
        (["--calibrator", "/no/such.json", "--port", "0"], "no calibrator"),
        (["--call-url", "http://user:secret@a.example/", "--port", "0"], "holds credentials"),
        (["--key-variable", "NO_SUCH_KEY", "--port", "0"], "NO_SUCH_KEY is not set"),
    ],
)  # fmt: skip
def test_what_keeps_the_service_from_starting_is_two_sentences(
    command: Callable[..., tuple[int, str]], options: list[str], says: str, taken: int
) -> None:
    if "--model" in options:
        pytest.importorskip("jinja2")
    given = [option.replace("TAKEN", str(taken)) for option in options]
    status, said = command("serve", "typed", *given)
    assert status == 1, said
    assert says in said.replace("\n", " ")
    assert "Traceback" not in said
    assert "secret" not in said
    assert "Typed conversations at" not in said, "it is said when the engine is open"


def test_without_the_extra_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pollux_like.typed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .pollux-like\[typed\]"):
        importlib.import_module("pollux_like.typed")
