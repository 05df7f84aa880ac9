"""Declaring tools: from functions, from other shapes; deep-frozen; and what a fingerprint depends on."""

from __future__ import annotations

import enum
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from pollux_like import ConfigurationError, Environment, Source, SourceError, ToolCall, ToolDeclaration


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Place(BaseModel):
    city: str
    country: str | None = None


@dataclass
class Window:
    start: int
    end: int = 24


def forecast(
    place: Place,
    days: Annotated[int, Field(ge=1, le=14)],
    unit: Unit = Unit.CELSIUS,
    mode: Literal["short", "long"] = "short",
    window: Window | None = None,
    schema: str = "s",
) -> str:
    """Forecast the weather.

    Longer text.

    Args:
        place: Where.
        days: How many days ahead.
        unit: Degrees.
    """
    return f"{place}{days}{unit}{mode}{window}{schema}"


def test_a_function_becomes_a_schema_with_its_words() -> None:
    tool = ToolDeclaration.from_function(forecast)
    properties = tool.parameters["properties"]
    assert tool.name == "forecast"
    assert tool.description.startswith("Forecast the weather.")
    assert list(properties) == ["place", "days", "unit", "mode", "window", "schema"]
    assert tool.parameters["required"] == ["place", "days"]
    assert properties["days"]["description"] == "How many days ahead."
    assert (properties["days"]["minimum"], properties["days"]["maximum"]) == (1, 14)
    assert properties["mode"]["enum"] == ["short", "long"]
    assert "title" not in properties["days"]
    assert "title" not in tool.parameters


def test_callables_of_other_kinds() -> None:
    async def later(a: int, *, b: str = "x") -> None:
        """Do it later.

        :param a: number
        """

    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a

        def method(self, self_: int) -> int:
            return self_

    assert ToolDeclaration.from_function(later).parameters["properties"]["a"]["description"] == "number"
    assert list(ToolDeclaration.from_function(Adder().method).parameters["properties"]) == ["self_"]
    assert ToolDeclaration.from_function(Adder(), name="add").parameters["required"] == ["a"]
    assert ToolDeclaration.from_function(lambda: 1, name="nothing").parameters.get("properties", {}) == {}


def test_what_cannot_be_a_schema_is_refused() -> None:
    class Opaque:
        pass

    def bad(x: Opaque) -> None: ...
    def positional(x: int, /) -> None: ...
    def keywords(**x: int) -> None: ...
    def unknown(x: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    for function in (bad, positional, keywords, unknown):
        with pytest.raises(ConfigurationError):
            ToolDeclaration.from_function(function)


SHAPES: list[dict[str, Any]] = [
    {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"type": "function", "name": "f", "description": "d", "strict": True, "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}},
    {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"type": "custom", "name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"name": "f", "description": "d", "title": "F", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_makes_the_same_declaration(shape: dict[str, Any]) -> None:
    made = ToolDeclaration.from_dict(shape)
    assert made == ToolDeclaration("f", "d", {"type": "object", "properties": {"a": {"type": "string"}}})


def test_declarations_and_environments_are_deep_frozen() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    metadata = {"a": [1]}
    tools = [ToolDeclaration("f", "d", schema)]
    env = Environment(tools=tools, metadata=metadata)
    before = env.fingerprint(provider="openai")
    schema["properties"]["b"] = {"type": "integer"}
    tools.append(ToolDeclaration("g"))
    metadata["a"].append(2)
    env.tools[0].parameters["properties"]["c"] = {}
    assert list(env.tools[0].parameters["properties"]) == ["a"]
    assert len(env.tools) == 1
    assert env.metadata == {"a": [1]}
    assert Environment(tools=env.tools).fingerprint(provider="openai") == before
    assert env == Environment(tools=[ToolDeclaration("f", "d", env.tools[0].parameters)], metadata={"a": [1]})
    call = ToolCall("c", "f", arguments={"a": [1]})
    arguments = call.arguments
    assert arguments is not None
    arguments["a"].append(2)
    assert call.arguments == {"a": [1]}


BASE = Environment(
    instructions="i",
    tools=[
        ToolDeclaration("f", "d", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}})
    ],
    sources=[Source.from_text("t"), Source.from_bytes(b"\x89PNG", mime_type="image/png")],
)


def test_the_fingerprint_follows_what_the_model_sees() -> None:
    base = BASE.fingerprint(provider="openai")
    (tool,) = BASE.tools
    text, picture = BASE.sources
    changed = [
        Environment("j", BASE.sources, BASE.tools),
        Environment(None, BASE.sources, BASE.tools),
        Environment("i", [picture, text], BASE.tools),
        Environment("i", [text], BASE.tools),
        Environment("i", [Source.from_text("u"), picture], BASE.tools),
        Environment("i", [Source.from_text("t", name="n"), picture], BASE.tools),
        Environment("i", [text, Source.from_bytes(b"\x89PNH", mime_type="image/png")], BASE.tools),
        Environment("i", BASE.sources, [ToolDeclaration("g", "d", tool.parameters)]),
        Environment("i", BASE.sources, [ToolDeclaration("f", "e", tool.parameters)]),
        Environment("i", BASE.sources, [ToolDeclaration("f", "d", tool.parameters, strict=False)]),
        Environment("i", BASE.sources, [ToolDeclaration("f", "d", {**tool.parameters, "required": ["a"]})]),
        Environment("i", BASE.sources, [tool, ToolDeclaration("g")]),
    ]
    prints = [one.fingerprint(provider="openai") for one in changed] + [BASE.fingerprint(provider="anthropic"), base]
    assert len(set(prints)) == len(prints)
    two = [ToolDeclaration("a"), ToolDeclaration("b")]
    assert Environment(tools=two).fingerprint(provider="x") != Environment(tools=two[::-1]).fingerprint(provider="x")


def test_the_fingerprint_ignores_the_rest() -> None:
    (tool,) = BASE.tools
    reordered = {"properties": {"b": {"type": "number"}, "a": {"type": "string"}}, "type": "object"}
    same = [
        Environment("i", BASE.sources, BASE.tools, cache="none", metadata={"a": 1}),
        Environment("i", BASE.sources, [ToolDeclaration("f", "d", reordered)]),
        Environment("i", tuple(BASE.sources), [tool]),
    ]
    assert {one.fingerprint(provider="openai") for one in same} == {BASE.fingerprint(provider="openai")}


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    code = (
        "from pollux_like import *\n"
        "print(Environment('Grüße', [Source.from_text('t', name='n')], [ToolDeclaration('f', 'd', {'type': 'object', 'properties': "
        "{'a': {'type': 'number', 'default': 1e21}}})]).fingerprint(provider='openai'))"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(prints) == 1
    assert len(prints.pop().strip()) == 64


def test_sources_are_read_once_and_by_type(tmp_path: Path) -> None:
    for name, content, kind in (
        ("a.txt", b"text", "text"), ("b.md", b"# h", "text"), ("c.json", b"{}", "text"), ("d.pdf", b"%PDF", "pdf"),
        ("e.png", b"\x89PNG", "image"), ("f.jpg", b"\xff\xd8", "image"), ("g.webp", b"RIFF", "image"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        source = Source.from_file(tmp_path / name)
        (tmp_path / name).unlink()
        assert (source.kind, source.name) == (kind, name)
        assert len(source.digest) == 64
    for name, content in (("x.mp3", b"ID3"), ("x.bin", b"\x00"), ("x.txt", b"\xff\xfe"), ("x.png", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError):
            Source.from_file(tmp_path / name)
    assert Source.from_uri("https://host/a.png").kind == "image"
    assert Source.from_uri("data:image/png;base64,iVBORw==").data == b"\x89PNG"
    assert Source.from_uri("data:text/plain,a%20b").text == "a b"
    for uri in (
        "ftp://x/a.png",
        "/etc/passwd.png",
        "https://host/a.txt",
        "data:image/png;base64,###",
        "https:///a.png",
    ):
        with pytest.raises(SourceError):
            Source.from_uri(uri)
