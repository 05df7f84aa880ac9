"""What a value remembers is right also where another thread takes it away at the worst moment."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator

import pytest

from pollux_like import Continuation, Environment, Input, ToolResult, interact
from pollux_like.continuation import turns_of
from pollux_like.memo import Memo
from pollux_like.testing import Scripted, call
from pollux_like.testing.conversations import TOOLS
from pollux_like.turns import folded

pytestmark = pytest.mark.anyio


class Value(Memo):
    """Nothing but its memory."""

    __slots__ = ()


class Taken(dict[str, int]):
    """A memory from which another thread takes every result at once."""

    def __setitem__(self, key: str, value: int) -> None:
        """Kept for no time at all."""


def test_a_result_that_is_taken_at_once_is_still_given() -> None:
    value = Value()
    object.__setattr__(value, "_memo", Taken())
    assert value.remember("key", lambda: 3) == 3
    assert value.take("key") is None


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads change as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
async def test_folds_of_one_conversation_in_many_threads_are_all_right() -> None:
    model = Scripted(*[[call("note", {"text": str(number)}, id="c")] for number in range(12)])
    output = await interact(Environment(tools=TOOLS), Input("Go", history=[]), model.config)
    for _ in range(11):
        state = output.continuation
        given = Input(continuation=state, tool_results=[ToolResult("c", "ok")])
        output = await interact(Environment(tools=TOOLS), given, model.config)
    assert output.continuation is not None
    shared = Continuation.from_jsonable(json.loads(json.dumps(output.continuation.to_jsonable())))
    turns = turns_of(shared)
    wrong: list[object] = []

    def work(first: int) -> None:
        for number in range(first, first + 400):
            size = number % len(turns) + 1
            try:
                found = folded(turns[:size], "test", "", lambda before, at: before + turns[at].calls[0].arguments_text)
            except Exception as error:  # it is shown below
                wrong.append(error)
                continue
            if found != "".join(turn.calls[0].arguments_text for turn in turns[:size]):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
