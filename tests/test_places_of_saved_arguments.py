"""Long arguments are saved as their place in an item: in order, once each, and never more than the items hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pollux_like import (
    Config,
    ConfigurationError,
    Continuation,
    ContinuationError,
    Environment,
    Input,
    Message,
    ToolCall,
    ToolResult,
    canonical,
    interact,
)
from pollux_like.continuation import FORMAT, VERSION
from pollux_like.turns import Stamp, Turn

pytestmark = pytest.mark.anyio
STAMP = Stamp("scripted", "script", "memory:", "scripted", "e", {})
LONG = '{"text":"long enough to be a place"}'


def turn(*arguments: str, items: tuple[str, ...]) -> Turn:
    calls = tuple(ToolCall(f"c{number}", "f", text) for number, text in enumerate(arguments))
    return Turn(STAMP, (Message("user", "a"),), items, calls, "tool_calls")


def written(line: str) -> list[Any]:
    return [call[2] for call in json.loads(line)["calls"]]


def chain(*lines: str, provider: str = "scripted") -> dict[str, Any]:
    """State with a fitting digest, as a forger makes it."""
    digest = canonical.sha256(FORMAT)
    for line in lines:
        digest = canonical.sha256(f"{digest}\n{line}")
    return {"format": FORMAT, "version": VERSION, "provider": provider, "digest": digest, "turns": list(lines)}


def test_each_call_points_behind_the_one_before() -> None:
    """So each is looked for where the last one ended, and saving many calls stays linear."""
    item = json.dumps({"arguments": LONG})
    whole = json.dumps({"calls": [LONG, LONG]})
    made = turn(LONG, LONG, LONG, LONG, items=(item, whole, item))
    line = made.line(None)
    places = written(line)
    assert [place[0] for place in places] == [0, 1, 1, 2]
    assert places[1][1] + places[1][2] <= places[2][1]
    assert Turn.parse(line, None) == made


def test_calls_in_another_order_than_their_items_are_read_back() -> None:
    other = LONG.replace("text", "more")
    made = turn(other, LONG, items=(json.dumps({"arguments": LONG}), json.dumps({"arguments": other})))
    line = made.line(None)
    assert [type(one) for one in written(line)] == [list, str]
    assert Turn.parse(line, None) == made


def test_after_many_arguments_that_stand_nowhere_none_is_looked_for() -> None:
    nowhere = [json.dumps({"number": number, "text": "in no item at all"}) for number in range(8)]
    item = json.dumps({"arguments": LONG})
    for missed, kind in ((7, list), (8, str)):
        made = turn(*nowhere[:missed], LONG, items=(item,))
        line = made.line(None)
        assert [type(one) for one in written(line)] == [*[str] * missed, kind]
        assert Turn.parse(line, None) == made


@pytest.mark.parametrize("last", ["", ',["z","f",[0,0,-1000000000]]', ',["z","f",[0,0,true]]', ',["z","f",[1]]'])
def test_a_short_line_cannot_stand_for_much_text(last: str) -> None:
    """Hundreds of calls that point at one large item would be hundreds of copies of it."""
    item = json.dumps({"a": "y" * 100_000})
    calls = ",".join(f'["c{number}","f",[0,0,{len(item)}]]' for number in range(500))
    head = turn(items=()).line(None).partition('"native"')[0].replace('"status":"tool_calls",', "")
    with pytest.raises(ContinuationError, match="overlap"):
        Continuation.from_jsonable(chain(f'{head}"calls":[{calls}{last}],"native":[{item}]}}'))


def test_no_turn_holds_more_calls_than_a_reply_may() -> None:
    head = turn(items=()).line(None).partition('"native"')[0].replace('"status":"tool_calls",', "")
    for number, good in ((512, True), (513, False)):
        calls = ",".join(f'["c{index}","f",""]' for index in range(number))
        state = chain(f'{head}"calls":[{calls}],"native":[]}}')
        if good:
            assert len(Continuation.from_jsonable(state).pending_tool_calls) == number
        else:
            with pytest.raises(ContinuationError, match="513 calls"):
                Continuation.from_jsonable(state)


@pytest.mark.parametrize(("old", "new"), [
    ('{"stamp"', '"stamp"'), (',"native":[', ';"native":['), (',"native":[', ' "native":['), (',"native":[', '"native":['),
    ('"native":[', '"native":[],"native":['), (',"native":[', ',"native":{},"native":['),
])  # fmt: skip
def test_a_line_that_is_no_json_is_refused(old: str, new: str) -> None:
    line = turn(items=("{}",)).line(None)
    assert Turn.parse(line, None)
    assert old in line
    with pytest.raises(ContinuationError):
        Continuation.from_jsonable(chain(line.replace(old, new)))


async def test_calls_that_their_items_do_not_hold_are_an_error_of_ours() -> None:
    stamp: list[Any] = ["gemini", "generate_content", "http://127.0.0.1:9", "gemini-3-flash-preview", "e", {}]
    head = {"stamp": stamp, "added": [{"role": "user", "content": "a"}], "calls": [["c1", "f", "{}"]]}
    state = Continuation.from_jsonable(chain(canonical.splice(head, "native", ['{"text":"x"}']), provider="gemini"))
    config = Config("gemini", stamp[3], api_key="sim-key-1", base_url=stamp[2], max_attempts=1)
    with pytest.raises(ConfigurationError, match="other calls than its items"):
        await interact(Environment(), Input(continuation=state, tool_results=[ToolResult("c1", "r")]), config)


async def test_a_seal_of_an_endpoint_that_is_none_is_foreign() -> None:
    stamp = ["openai", "responses", "http://[", "gpt-5.2", "e", {}]
    head = {"stamp": stamp, "added": [{"role": "user", "content": "a"}], "signed": True}
    state = Continuation.from_jsonable(chain(canonical.splice(head, "native", ["{}"]), provider="openai"))
    config = Config("openai", "gpt-5.2", api_key="sim-key-1", base_url="https://api.example.com/v1", max_attempts=1)
    with pytest.raises(ConfigurationError, match="cannot open it"):
        await interact(Environment(), Input("Go on", continuation=state), config)
