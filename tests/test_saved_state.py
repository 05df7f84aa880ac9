"""Saved state: opaque, versioned, whole or refused, growing by what is new."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pollux_like.continuation as room
from pollux_like import (
    Config,
    ConfigurationError,
    Continuation,
    ContinuationError,
    Environment,
    Input,
    Message,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    interact,
)
from pollux_like.continuation import turns_of
from pollux_like.testing import Scripted, call, say, think
from pollux_like.testing.conversations import TOOLS
from pollux_like.turns import Turn

pytestmark = pytest.mark.anyio
GOLDEN = Path(__file__).parent / "golden"
ENV = Environment(instructions="Be brief.", tools=TOOLS)


async def talk(*, secret: str = "SECRET") -> Continuation:
    """Three turns, the last with an open call."""
    model = Scripted(
        [think(secret), say("Hello")], [say("Yes")], [think("x"), call("note", {"text": "n"}, id="call_9")]
    )
    output = await interact(ENV, Input("Hi", history=[]), model.config)
    output = await interact(ENV, Input("Sure?", continuation=output.continuation), model.config)
    output = await interact(ENV, Input("Note\u0000", continuation=output.continuation), model.config)
    assert output.continuation is not None
    return output.continuation


async def test_round_trip_through_any_json_store() -> None:
    state = await talk()
    for sort_keys in (False, True):
        text = json.dumps(state.to_jsonable(), sort_keys=sort_keys, allow_nan=False)
        assert "\x00" not in json.loads(text)["turns"][2]
        assert "\\u0000" not in text.replace("\\\\u0000", "")
        again = Continuation.from_jsonable(json.loads(text))
        assert again == state
        assert hash(again) == hash(state)
        assert again.to_jsonable() == state.to_jsonable()
        assert again.pending_tool_calls == state.pending_tool_calls
        assert (again.provider, again.model, again.digest) == ("scripted", "scripted", state.digest)
    assert pickle.loads(pickle.dumps(state)) == state
    assert copy.deepcopy(state) == state


async def test_it_shows_nothing_and_cannot_be_made() -> None:
    state = await talk()
    assert "SECRET" not in repr(state)
    assert "Hello" not in repr(state)
    assert not [name for name in dir(state) if not name.startswith("_")
                and name not in {"digest", "from_jsonable", "model", "paused", "pending_tool_calls", "provider", "to_jsonable"}]  # fmt: skip
    assert not hasattr(state, "__dict__")
    with pytest.raises(TypeError):
        Continuation()


async def test_saved_bytes_grow_by_what_is_new() -> None:
    model = Scripted(*[[say("y" * 100)]] * 40)
    sizes: list[int] = []
    lines: list[list[str]] = []
    continuation = None
    for number in range(40):
        history = [] if number == 0 else None
        output = await interact(ENV, Input("x" * 100, history=history, continuation=continuation), model.config)
        continuation = output.continuation
        assert continuation is not None
        lines.append(continuation.to_jsonable()["turns"])
        sizes.append(len(json.dumps(lines[-1])))
    assert all(now[: len(then)] == then for then, now in itertools.pairwise(lines))
    steps = {later - earlier for earlier, later in itertools.pairwise(sizes)}
    assert len(steps) == 1


def _last_line(change: Callable[[str], str]) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data | {"turns": [*data["turns"][:-1], change(data["turns"][-1])]}


TAMPERED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no dict": lambda _: [],
    "none": lambda _: None,
    "text": lambda data: json.dumps(data),
    "empty": lambda _: {},
    "no version": lambda data: {key: value for key, value in data.items() if key != "version"},
    "version zero": lambda data: data | {"version": 0},
    "version true": lambda data: data | {"version": True},
    "version as text": lambda data: data | {"version": "1"},
    "version as float": lambda data: data | {"version": 1.0},
    "newer version": lambda data: data | {"version": room.VERSION + 1},
    "another format": lambda data: data | {"format": "other"},
    "unknown provider": lambda data: data | {"provider": "nobody"},
    "another provider": lambda data: data | {"provider": "openai"},
    "provider of a wrong type": lambda data: data | {"provider": ["scripted"]},
    "extra field": lambda data: data | {"more": 1},
    "missing field": lambda data: {key: value for key, value in data.items() if key != "digest"},
    "digest changed": lambda data: data | {"digest": "0" * 64},
    "digest of a wrong type": lambda data: data | {"digest": None},
    "no turns": lambda data: data | {"turns": []},
    "turns of a wrong type": lambda data: data | {"turns": "abc"},
    "turn of a wrong type": lambda data: data | {"turns": [*data["turns"], None]},
    "turn dropped": lambda data: data | {"turns": data["turns"][1:]},
    "turn cut off": lambda data: data | {"turns": data["turns"][:-1]},
    "turns swapped": lambda data: data | {"turns": [data["turns"][1], data["turns"][0], data["turns"][2]]},
    "turn repeated": lambda data: data | {"turns": [*data["turns"], data["turns"][-1]]},
    "text changed": _last_line(lambda line: line.replace("Note", "Nota")),
    "line cut": _last_line(lambda line: line[:-5]),
    "surrogate": _last_line(lambda line: line + "\ud800"),
}


@pytest.mark.parametrize("name", list(TAMPERED))
async def test_tampered_state_is_refused_whole(name: str) -> None:
    data = json.loads(json.dumps((await talk()).to_jsonable()))
    with pytest.raises(ContinuationError) as caught:
        Continuation.from_jsonable(TAMPERED[name](data))
    assert caught.value.hint
    assert "SECRET" not in str(caught.value)


def resealed(*lines: str, provider: str = "scripted") -> dict[str, Any]:
    """State with a fitting digest, as a forger without respect would make it."""
    digest = room.canonical.sha256(room.FORMAT)
    for line in lines:
        digest = room.canonical.sha256(f"{digest}\n{line}")
    return {
        "format": room.FORMAT,
        "version": room.VERSION,
        "provider": provider,
        "digest": digest,
        "turns": list(lines),
    }


STAMP = '"stamp":["scripted","script","memory:","scripted","e"]'
USER = '"added":[{"role":"user","content":"a"}]'
CALLS = '"calls":[{"id":"c1","name":"f","arguments_text":"{}"}]'
GOOD = f'{{{STAMP},{USER},{CALLS},"native":[]}}'


@pytest.mark.parametrize(
    "lines",
    [
        ("",), ("[]",), ("3",), ("{",), (f"{{{STAMP}}}",), (f"{{{USER},\"native\":[]}}",),
        (f"{{{STAMP},\"native\":[]}}",), (f"{{{STAMP},{USER},\"native\":[3]}}",), (f"{{{STAMP},{USER},\"native\":{{}}}}",),
        (f"{{{STAMP},{USER},\"native\":[],\"more\":1}}",), (f"{{{STAMP},{USER},\"native\":[],\"status\":\"great\"}}",),
        (f"{{{STAMP},{USER},\"native\":[],\"signed\":1}}",), (f"{{{STAMP},{USER},\"native\":[],\"media\":[1]}}",),
        (f"{{{STAMP},{USER},\"native\":[],\"state\":{{\"a\":1}}}}",), (f"{{{STAMP},{USER},\"native\":[],\"calls\":[3]}}",),
        (f"{{{STAMP},{USER},\"native\":[],\"calls\":[{{\"id\":null,\"name\":\"f\"}}]}}",),
        ("{\"stamp\":[1],\"added\":[],\"native\":[]}",), ("{\"stamp\":[\"a\"],\"added\":[],\"native\":[]}",),
        (f"{{{STAMP},\"added\":[{{\"role\":\"system\",\"content\":\"a\"}}],\"native\":[]}}",),
        (f"{{{STAMP},\"added\":[{{\"role\":\"tool\",\"content\":\"a\",\"tool_call_id\":\"c\"}}],\"native\":[]}}",),
        (f"{{{STAMP},\"added\":[{{\"role\":\"assistant\",\"content\":\"a\"}}],\"native\":[]}}",),
        (GOOD, f"{{{USER},\"native\":[]}}"),
        (GOOD, "{\"added\":[{\"role\":\"tool\",\"content\":\"a\",\"tool_call_id\":\"c2\"}],\"native\":[]}"),
        (GOOD, GOOD.replace("scripted\",\"script", "scripted\",\"other")),
        (GOOD.replace("\"calls\":[", "\"calls\":[{\"id\":\"c1\",\"name\":\"g\",\"arguments_text\":\"{}\"},"),),
        (f"{{{STAMP},{USER},\"native\":[{{\"a\":" + "[" * 200 + "]" * 200 + "}]}",),
        (f"{{{STAMP},{USER},\"native\":[" + "[" * 100_000 + "]" * 100_000 + "]}",),
        ("[" * 100_000,), (f"{{{STAMP},{USER},{USER},\"native\":[NaN]}}",),
    ],
)  # fmt: skip
def test_state_with_a_fitting_digest_is_still_checked(lines: tuple[str, ...]) -> None:
    with pytest.raises(ContinuationError):
        Continuation.from_jsonable(resealed(*lines))


@pytest.mark.parametrize("call", [
    '["c1"]', '["c1","f"]', '["c1","f","{}",{},1]', '["c1","f",7]', '["c1","f",null]', '[7,"f","{}"]', '["c1","f","{}",3]',
    '["c1","f",[]]', '["c1","f",[0,5]]', '["c1","f",[1,0,4]]', '["c1","f",[-1,0,4]]', '["c1","f",[0,true,4]]',
    '["c1","f",[0,1.0,4]]', '["c1","f",[0,5,3]]',
])  # fmt: skip
def test_a_call_of_another_form_is_refused(call: str) -> None:
    line = f'{{{STAMP},{USER},"calls":[{call}],"native":[{{"a":"bcd"}}]}}'
    with pytest.raises(ContinuationError):
        Continuation.from_jsonable(resealed(line))


async def test_long_arguments_are_saved_once_and_read_back_to_the_letter() -> None:
    """In the item they are an object or a string, with each way to spell it; short ones are written out."""
    state = await talk()
    stamp = turns_of(state)[0].stamp
    texts = ['{"q":"Zürich \\"x\\" \\ud83d\\ude00 and more"}', '{"q": 1.50, "r": [1, 2, 3, 4, 5]}', "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
             '"a string of JSON, which is no object"', "{cut: in the middle of the", "", "{}"]  # fmt: skip
    for text in texts:
        for item in (
            json.dumps({"args": text}),
            json.dumps({"args": text}, ensure_ascii=False),
            f'{{"args":{text}}}',
            "{}",
        ):
            whole = item if _is_json(item) else "{}"
            turn = Turn(stamp, (Message("user", "a"),), ("{}", whole), (ToolCall("c1", "f", text),), "tool_calls")
            line = turn.line(None)
            assert Turn.parse(line, None) == turn
            held = whole.startswith('{"args": "') or (whole != "{}" and text.startswith("{"))
            assert ('"f",[1,' in line) == (held and len(text) >= 12)


async def test_a_parameter_may_have_the_name_of_the_items() -> None:
    tool = ToolDeclaration("f", parameters={"type": "object", "properties": {
        "native": {"type": "array", "items": {"type": "string"}}, "more": {"type": "string"}}})  # fmt: skip
    model = Scripted([call("f", {"native": ["a"], "more": None}, id="c1")])
    output = await interact(Environment(tools=[tool]), Input("x", history=[]), model.config)
    assert output.continuation is not None
    again = Continuation.from_jsonable(output.continuation.to_jsonable())
    assert [call.arguments for call in again.pending_tool_calls] == [{"native": ["a"]}]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_the_good_line_of_these_tests_is_good() -> None:
    assert Continuation.from_jsonable(resealed(GOOD)).pending_tool_calls[0].id == "c1"


async def test_limits_have_numbers_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    state = await talk()
    saved = state.to_jsonable()
    monkeypatch.setattr(room, "MAX_CHARS", 100)
    with pytest.raises(ContinuationError, match="100 characters"):
        Continuation.from_jsonable(saved)
    monkeypatch.undo()
    monkeypatch.setattr(room, "MAX_TURNS", 2)
    with pytest.raises(ContinuationError, match="2 turns"):
        Continuation.from_jsonable(saved)
    monkeypatch.undo()
    monkeypatch.setattr("pollux_like.prepare.MAX_CHARS", room.MAX_REPLY_CHARS + 10)
    model = Scripted([say("never")])
    with pytest.raises(ConfigurationError, match="could not be saved"):
        await interact(ENV, Input(continuation=state, tool_results=[ToolResult("call_9", "ok")]), model.config)
    assert model.requests == []


async def test_the_issuer_is_checked_before_any_request() -> None:
    state = await talk()
    with pytest.raises(ContinuationError, match="scripted"):
        Continuation.from_jsonable(state.to_jsonable(), expected_provider="openai")
    result = ToolResult("call_9", "ok")
    for config in (Config("openai", "gpt-5", api_key="k"), Config("anthropic", "claude-opus-4-6", api_key="k")):
        with pytest.raises(ConfigurationError, match="handoff"):
            await interact(ENV, Input(continuation=state, tool_results=[result]), config)
    model = Scripted([say("never")])
    with pytest.raises(ConfigurationError, match="tool round"):
        await interact(ENV, Input(continuation=state, tool_results=[result]), Config("scripted", "other", client=model))
    with pytest.raises(ConfigurationError, match="environment changed"):
        await interact(
            Environment(instructions="Other.", tools=TOOLS),
            Input(continuation=state, tool_results=[result]),
            model.config,
        )
    assert model.requests == []


async def test_change_at_a_completed_boundary_is_a_notice() -> None:
    model = Scripted([say("a")], [say("b")])
    first = await interact(ENV, Input("x", history=[]), model.config)
    second = await interact(
        Environment(tools=TOOLS), Input("y", continuation=first.continuation), Config("scripted", "other", client=model)
    )
    assert {notice.kind for notice in second.notices} == {"model_change", "environment_drift"}


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("continuation-v*.json")), ids=lambda path: path.name)
async def test_every_released_format_still_loads_and_goes_on(file: Path) -> None:
    """The files were written by the release whose version their names carry; they are never rewritten."""
    golden = json.loads(file.read_text("utf-8"))
    state = Continuation.from_jsonable(golden["saved"])
    assert [call.id for call in state.pending_tool_calls] == golden["pending"]
    assert state.to_jsonable() == golden["saved"] or golden["saved"]["version"] < room.VERSION


def test_there_is_a_golden_file_for_every_version() -> None:
    found = {json.loads(path.read_text("utf-8"))["saved"]["version"] for path in GOLDEN.glob("continuation-v*.json")}
    assert found == set(range(1, room.VERSION + 1))


async def test_upcasters_run_at_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    state = await talk()
    saved = state.to_jsonable()
    monkeypatch.setattr(room, "VERSION", room.VERSION + 1)
    monkeypatch.setitem(
        room.UPCASTERS,
        room.VERSION - 1,
        lambda old: {**{key: old[key] for key in old if key != "lines"}, "turns": old["lines"]},
    )
    old = {key: value for key, value in saved.items() if key != "turns"} | {"lines": saved["turns"]}
    assert Continuation.from_jsonable(old) == state
