"""Bad input of any type is a typed error that names the field or index, before any I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pollux_like
from pollux_like import (
    Config,
    ConfigurationError,
    Environment,
    Input,
    Message,
    PolluxLikeError,
    Source,
    SourceError,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    interact,
    stream,
)
from pollux_like.testing import Scripted, call, say
from pollux_like.testing.conversations import TOOLS

CALL = ToolCall("c1", "f")
ODD: list[Any] = [None, 0, 1.5, True, b"x", "x", [], {}, object(), [[]], {"a": 1}, float("nan"), "\ud800", lambda: None]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Input(123), "Input.content"),
        (lambda: Input(b"x"), "Input.content"),
        (lambda: Input("  \n"), "Input.content"),
        (lambda: Input("x", history="abc"), "Input.history"),
        (lambda: Input("x", history=[{"role": "user", "content": "a"}]), "Input.history[0]"),
        (lambda: Input("x", history=[Message("user", "a"), 3]), "Input.history[1]"),
        (lambda: Input("x", continuation={}), "Input.continuation"),
        (lambda: Input("x", tool_results=["a"]), "Input.tool_results[0]"),
        (lambda: Input("x", tool_results=ToolResult("a", "b")), "Input.tool_results"),
        (lambda: Input(), "nothing that the model could answer"),
        (lambda: Input(history=[]), "nothing that the model could answer"),
        (lambda: Input(history=[Message("user", "a")]), "nothing that the model could answer"),
        (lambda: Input(history=[Message("user", "a"), Message("assistant", "b")]), "nothing that the model could"),
        (lambda: Message("system", "x"), "Environment.instructions"),
        (lambda: Message("developer", "x"), "Environment.instructions"),
        (lambda: Message([], "x"), "Message.role"),
        (lambda: Message("user", " "), "user Message"),
        (lambda: Message("user", None), "Message.content"),
        (lambda: Message("assistant", ""), "assistant Message"),
        (lambda: Message("assistant", "x", None), "Message.tool_calls"),
        (lambda: Message("assistant", "x", [3]), "Message.tool_calls[0]"),
        (lambda: Message("assistant", "x", (CALL, CALL)), "c1"),
        (lambda: Message("assistant", "x", tool_call_id=""), "tool_call_id"),
        (lambda: Message("user", "x", (CALL,)), "tool_calls"),
        (lambda: Message("tool", "x", (CALL,), "c1"), "tool_calls"),
        (lambda: Message("tool", "x"), "Message.tool_call_id"),
        (lambda: Message("tool", "x", tool_call_id=" "), "Message.tool_call_id"),
        (lambda: Message("user", "x", is_error=True), "is_error"),
        (lambda: Message("user", "a\ud83c"), "surrogate"),
        (lambda: ToolCall("", "f"), "ToolCall.id"),
        (lambda: ToolCall("a" * 2000, "f"), "ToolCall.id"),
        (lambda: ToolCall("a", ""), "ToolCall.name"),
        (lambda: ToolCall("a", "f", 3), "ToolCall.arguments_text"),
        (lambda: ToolCall("a", "f", "{}", {"a": 1}), "disagree"),
        (lambda: ToolCall("a", "f", arguments={"a": float("inf")}), "ToolCall.arguments.a"),
        (lambda: ToolResult("", "x"), "ToolResult.call_id"),
        (lambda: ToolResult("a", None), "ToolResult.content"),
        (lambda: ToolResult("a", {"x": 1}), "ToolResult.content"),
        (lambda: ToolResult("a", "x", 1), "ToolResult.is_error"),
        (lambda: ToolResult("a", "x\ud83c"), "surrogate"),
        (lambda: ToolResult.from_value(call_id="a", value={"v": [1, float("nan")]}), "value.v[1]"),
        (lambda: ToolResult.from_value(call_id="a", value={1: 2}), "key of type int"),
        (lambda: ToolResult.from_value(call_id="a", value={"v": b"x"}), "value.v"),
        (lambda: ToolResult.from_value(call_id="a", value={1, 2}), "set"),
        (lambda: Environment(instructions=5), "Environment.instructions"),
        (lambda: Environment(tools=[{"name": "f"}]), "Environment.tools[0]"),
        (lambda: Environment(tools=[ToolDeclaration("f"), ToolDeclaration("f")]), "Environment.tools[1]"),
        (lambda: Environment(sources=["x"]), "Environment.sources[0]"),
        (lambda: Environment(cache="bogus"), "Environment.cache"),
        (lambda: Environment(metadata={"a": {1}}), "Environment.metadata.a"),
        (lambda: ToolDeclaration(""), "ToolDeclaration.name"),
        (lambda: ToolDeclaration("catalog.query"), "catalog.query"),
        (lambda: ToolDeclaration("x" * 65), "tool name"),
        (lambda: ToolDeclaration("f", parameters=3), "parameters of tool f"),
        (lambda: ToolDeclaration("f", parameters={"type": "array"}), "f"),
        (lambda: ToolDeclaration("f", strict="false"), "strict of tool f"),
        (lambda: ToolDeclaration.from_dict({"type": "web_search_20250305", "name": "web_search"}), "provider_options"),
        (lambda: ToolDeclaration.from_function(lambda *args: None, name="f"), "args"),
        (lambda: Config("nobody"), "nobody"),
        (lambda: Config("openai", " "), "Config.model"),
        (lambda: Config("openai", "m", base_url="x"), "Config.base_url"),
        (lambda: Config("openai", "m", base_url="https://user:pw@host"), "Config.base_url"),
        (lambda: Config("openai", "m", timeout_s=float("nan")), "Config.timeout_s"),
        (lambda: Config("openai", "m", max_attempts=0), "Config.max_attempts"),
        (lambda: Config("openai", "m", max_attempts=True), "Config.max_attempts"),
        (lambda: Config("openai", "m", max_concurrency=0), "Config.max_concurrency"),
        (lambda: Config("openai", "m", api_key="k", client=object()), "Config.client"),
        (lambda: pollux_like.handoff(3), "handoff"),
        (lambda: pollux_like.Session(3), "config"),
    ],
)  # fmt: skip
def test_construction_names_the_field(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert named in str(caught.value)
    assert caught.value.hint


def test_input_names_both_when_history_and_continuation_are_given() -> None:
    from pollux_like import Continuation

    with pytest.raises(ConfigurationError, match="both"):
        Input("x", history=[], continuation=object.__new__(Continuation))


@pytest.mark.parametrize("cycle", [True, False])
def test_cycles_and_depth_are_refused_without_recursion(cycle: bool) -> None:
    value: Any = []
    if cycle:
        value.append(value)
    else:
        for _ in range(100_000):
            value = [value]
    for make in (
        lambda: ToolResult.from_value(call_id="a", value=value),
        lambda: ToolDeclaration("f", parameters={"type": "object", "properties": {"a": {"default": value}}}),
        lambda: Environment(metadata={"a": value}),
        lambda: ToolCall("a", "f", arguments={"a": value}),
    ):
        with pytest.raises(ConfigurationError, match="deeper"):
            make()


@pytest.mark.parametrize("make", [
    lambda x: Input(x), lambda x: Input("a", history=x), lambda x: Input("a", continuation=x),
    lambda x: Input("a", tool_results=x), lambda x: Input("a", sources=x), lambda x: Message(x, "a"),
    lambda x: Message("user", x), lambda x: Message("assistant", "a", x), lambda x: Message("tool", "a", (), x),
    lambda x: ToolCall(x, "f"), lambda x: ToolCall("a", x), lambda x: ToolCall("a", "f", x),
    lambda x: ToolCall("a", "f", None, x), lambda x: ToolResult(x, "a"), lambda x: ToolResult("a", x),
    lambda x: ToolResult("a", "b", x), lambda x: ToolResult.from_value(call_id=x, value=1),
    lambda x: ToolResult.from_value(call_id="a", value=x), lambda x: ToolDeclaration(x),
    lambda x: ToolDeclaration("f", x), lambda x: ToolDeclaration("f", "", x), lambda x: ToolDeclaration("f", "", {}, x),
    lambda x: ToolDeclaration.from_dict(x), lambda x: ToolDeclaration.from_function(x),
    lambda x: Environment(x), lambda x: Environment(sources=x), lambda x: Environment(tools=x),
    lambda x: Environment(cache=x), lambda x: Environment(metadata=x), lambda x: Environment().fingerprint(provider=x),
    lambda x: Config(x), lambda x: Config("openai", x), lambda x: Config("openai", api_key=x),
    lambda x: Config("openai", base_url=x), lambda x: Config("openai", timeout_s=x),
    lambda x: Config("openai", max_attempts=x), lambda x: Config("openai", max_concurrency=x),
    lambda x: Message.from_openai(x), lambda x: Message.from_openai({"role": "user", "content": x}),
    lambda x: Message.from_openai({"role": "assistant", "content": "", "tool_calls": x}),
    lambda x: Message.from_openai({"role": "assistant", "content": "", "tool_calls": [x]}),
    lambda x: Message.from_openai({"role": "tool", "content": "", "tool_call_id": x}),
    lambda x: Message.from_jsonable(x), lambda x: ToolCall.from_jsonable(x), lambda x: ToolCall.from_openai(x),
    lambda x: Message.from_jsonable({"role": "assistant", "content": "a", "tool_calls": x}),
    lambda x: pollux_like.Continuation.from_jsonable(x), lambda x: pollux_like.handoff(x),
    lambda x: Source.from_text(x), lambda x: Source.from_file(x), lambda x: Source.from_uri(x),
    lambda x: Source.from_bytes(x, mime_type="image/png"), lambda x: Source.from_bytes(b"x", mime_type=x),
    lambda x: Source.from_json(x),
])  # fmt: skip
def test_no_value_of_any_type_escapes_the_error_tree(make: Callable[[Any], Any]) -> None:
    """Each odd value is either legal there or a PolluxLikeError; never an AttributeError, KeyError or RecursionError."""
    for odd in ODD:
        try:
            make(odd)
        except PolluxLikeError as error:
            assert error.message
            assert error.hint


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tool_choice": {"name": "nobody"}}, "nobody"),
        ({"tool_choice": 3}, "tool_choice"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
        ({"output": 3}, "output"),
        ({"output": {"type": "string"}}, "output"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_p": 9}, "top_p"),
        ({"seed": True}, "seed"),
        ({"stop": [""]}, "stop[0]"),
        ({"stop": 3}, "stop"),
        ({"stop": ["x"] * 17}, "stop sequences"),
        ({"reasoning_effort": "banana"}, "reasoning_effort"),
        ({"reasoning_budget_tokens": -1}, "reasoning_budget_tokens"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"provider_options": []}, "provider_options"),
        ({"provider_options": {"nobody": {}}}, "nobody"),
        ({"provider_options": {"scripted": 3}}, "provider_options['scripted']"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
async def test_arguments_are_refused_before_the_model_is_asked(arguments: dict[str, Any], named: str) -> None:
    model = Scripted([say("never")])
    env = Environment(tools=TOOLS)
    with pytest.raises(ConfigurationError) as caught:
        await interact(env, Input("x"), model.config, **arguments)
    assert named in str(caught.value)
    with pytest.raises(ConfigurationError):
        stream(env, Input("x"), model.config, **arguments)
    assert model.requests == []


@pytest.mark.anyio
async def test_tool_arguments_without_tools_are_refused() -> None:
    model = Scripted([say("never")])
    for arguments in ({"tool_choice": "auto"}, {"tool_choice": "required"}, {"parallel_tool_calls": True}):
        with pytest.raises(ConfigurationError, match="no tools"):
            await interact(Environment(), Input("x"), model.config, **arguments)  # type: ignore[arg-type]
    assert model.requests == []


@pytest.mark.anyio
async def test_positional_arguments_of_wrong_types() -> None:
    model = Scripted([say("never")])
    wrong: list[Any] = [
        (None, Input("x"), model.config),
        (Environment(), "x", model.config),
        (Environment(), Input("x"), {}),
    ]
    for arguments in wrong:
        with pytest.raises(ConfigurationError):
            await interact(*arguments)
    assert model.requests == []


@pytest.mark.anyio
async def test_pairing_is_checked_before_the_model_is_asked() -> None:
    model = Scripted([call("get_time", id="c1"), call("note", id="c2")], [say("never")])
    env = Environment(tools=TOOLS)
    pending = (await interact(env, Input("x"), model.config)).continuation
    ok, other = ToolResult("c1", "1"), ToolResult("c2", "2")
    bad: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"tool_results": [ok]}, ("c2", "given: 'c1'")),
        ({"tool_results": [ok, ok, other]}, ("c1", "second time")),
        ({"tool_results": [ok, other, ToolResult("c3", "x")]}, ("c3", "open: none")),
        ({"tool_results": [ToolResult("zzz", "x"), other]}, ("zzz", "'c1', 'c2'")),
        ({"content": "never mind"}, ("c1", "c2", "cancelled")),
        ({"content": "and", "tool_results": [ok]}, ("c2",)),
        ({}, ("c1", "c2")),
    ]
    for given, words in bad:
        with pytest.raises(ConfigurationError) as caught:
            await interact(env, Input(continuation=pending, **given), model.config)
        assert all(word in str(caught.value) for word in words), str(caught.value)
    assert len(model.requests) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("history", "named"),
    [
        ([Message("tool", "r", tool_call_id="c0"), Message("user", "a")], "history[0]"),
        ([Message("assistant", "", (CALL,)), Message("tool", "r", tool_call_id="c1"), Message("user", "a")], "history[0]"),
        ([Message("user", "a"), Message("assistant", "", (CALL,)), Message("user", "b")], "c1"),
        ([Message("user", "a"), Message("assistant", "", (CALL,))], "c1"),
        ([Message("user", "a"), Message("tool", "r", tool_call_id="c9"), Message("assistant", "b")], "c9"),
        ([Message("user", "a"), Message("assistant", "", (CALL, ToolCall("c2", "f"))), Message("tool", "r", tool_call_id="c1")], "c2"),
        ([Message("user", "a"), Message("assistant", "", (CALL,)), Message("tool", "r", tool_call_id="c1"),
          Message("tool", "r", tool_call_id="c1")], "c1"),
    ],
)  # fmt: skip
async def test_illegal_histories(history: list[Message], named: str) -> None:
    model = Scripted([say("never")])
    with pytest.raises(ConfigurationError, match="^(?s:.*)$") as caught:
        await interact(Environment(), Input("go on", history=history), model.config)
    assert named in str(caught.value)
    assert model.requests == []


def test_a_missing_file_is_a_source_error(tmp_path: Any) -> None:
    with pytest.raises(SourceError, match=r"gone\.pdf"):
        Source.from_file(tmp_path / "gone.pdf")
    with pytest.raises(SourceError):
        Source.from_file(tmp_path)


def test_a_path_is_named_in_the_error_however_it_is_written(tmp_path: Any) -> None:
    for path in (f"{tmp_path}/", f"{tmp_path}/gone/", f"{tmp_path}//", tmp_path):
        with pytest.raises(SourceError, match=r"^(gone|test_a_path\w*) cannot be read"):
            Source.from_file(path)


def test_a_path_of_bytes_is_a_source_error() -> None:
    class Path:
        def __fspath__(self) -> bytes:
            return b"a.txt"

    for path in (b"a.txt", Path(), None, 3):
        with pytest.raises(SourceError, match="the path is"):
            Source.from_file(path)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
