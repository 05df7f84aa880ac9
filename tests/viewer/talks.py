"""Conversations to look at: long ones written in one transaction, hostile ones, and one of every kind of turn."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pollux_like import APIError, Config, Environment, Input, ToolDeclaration, ToolResult, Usage, canonical
from pollux_like.messages import Message, ToolCall
from pollux_like.store import Conversation, ConversationStore, rows
from pollux_like.store.database import Transaction
from pollux_like.store.records import Record
from pollux_like.testing import Scripted, call, refuse, say, think

ENV = Environment(instructions="Be brief.", tools=[ToolDeclaration("get_weather", "w"), ToolDeclaration("book", "b")])
WORDS = "The quick brown fox jumps over the lazy dog. "
HOSTILE = (
    "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\"> [x](javascript:alert(1)) "
    "\x00\x1b[31mred\x1b[0m \u202eevil\u202c \u200bzero \u2066iso\u2069 \U000e0041 end"
)
HOSTILE_ID = "..%2f/<script>alert(1)</script>?#&id=other"
HOSTILE_TITLE = "<img src=x onerror=document.title='broken'>javascript:alert(1)"


def _turn(number: int) -> Record:
    """Question and answer, with a call every ninth turn and its result in the next."""
    added = (
        Message("tool", '{"temp_f": 62}', tool_call_id=f"call_{number - 1}")
        if number % 9 == 1 and number > 1
        else Message("user", f"Question {number}? " + WORDS * (number % 3))
    )
    calls = (ToolCall(f"call_{number}", "get_weather", f'{{"city":"City {number}"}}'),) if number % 9 == 0 else ()
    answer = Message("assistant", "" if calls else f"Answer {number}. " + WORDS * (number % 13), calls)
    usage = Usage.of(input=100 + number // 8, output=20 + number % 90, cached=number // 10, reasoning=number % 17)
    finish = "tool_calls" if calls else "stop"
    return Record(canonical.sha256(str(number)), "{}", "0" * 64, finish, (added, answer), usage, {"model": "made-1"})


async def long(
    store: ConversationStore, id: str, turns: int, *, scope: str = "default", title: str | None = None
) -> None:
    """A transcript of so many turns, without states behind it: nothing that is looked at reads one."""
    await written(store, id, [_turn(number) for number in range(1, turns + 1)], scope, title)


async def told(
    store: ConversationStore, id: str, usages: Sequence[Usage | None], *, scope: str, said: Sequence[str] = (),
    model: str = "made-1",
) -> None:  # fmt: skip
    """The same with the usage, the input and the model of each turn as they are given."""
    records = [
        Record(
            canonical.sha256(str(number)), "{}", "0" * 64, "stop", (Message("user", text), Message("assistant", "Yes.")),
            usage, {"model": model},
        )
        for number, (usage, text) in enumerate(zip(usages, said or ["Well?"] * len(usages), strict=True))
    ]  # fmt: skip
    await written(store, id, records, scope, None)


async def written(store: ConversationStore, id: str, records: Sequence[Record], scope: str, title: str | None) -> None:
    """Turns as they are given, in one transaction."""

    def work(tx: Transaction) -> None:
        writer = uuid.uuid4().hex
        head = rows.create(tx, store.policy, scope, id, title, "{}", writer)
        box = rows.keys_of(tx, store.policy, head).box(head.segment)
        digest = rows.append(tx, box, head.segment, 1, records)
        rows.change(tx, head, 0, writer, turns=len(records), digest=digest)

    await store.database.write(work)


async def booking(store: ConversationStore, *, scope: str = "default") -> Conversation:
    """Seven turns: signed thinking, calls, results, a refusal, an open call; and three forks."""
    talk = await store.create(
        "support-4711", scope=scope, title="Booking a seat to Lisbon",
        metadata={"customer": 4711, "big": 12345678901234567890, "tags": ["a", {"b": None}]},
    )  # fmt: skip
    weather = call("get_weather", {"city": "Lisbon", "units": "metric"}, id="call_1")
    model = Scripted(
        [think("a thought that is sealed"), say("I look at the weather first."), weather],
        [say("18 °C and clear. Shall I book the window seat?")],
        [call("book", {"seat": 12, "note": "window"}, id="call_2")],
        [say("Seat 12 is yours.\n\n* Lisbon, 14 March\n* window")],
        [refuse("I cannot do that.")],
        [call("book", {"seat": 13}, id="call_3")],
    )
    await talk.interact(ENV, Input("Book me a seat to Lisbon, please. What is the weather like?"), model.config)
    result = ToolResult.from_value(call_id="call_1", value={"temp_c": 18, "sky": "clear"})
    await talk.interact(ENV, Input(tool_results=[result]), model.config)
    await talk.interact(ENV, Input("Yes."), model.config)
    await talk.interact(ENV, Input(tool_results=[ToolResult("call_2", "seat 12 booked")]), model.config)
    aisle = await talk.fork("support-4711-b", at=2, title="Aisle instead")
    await talk.fork("support-4711-c", at=4)
    await talk.interact(ENV, Input("Now book it on the card of my neighbour."), model.config)
    await talk.interact(ENV, Input("Then one more for my brother."), model.config)
    other = Scripted(*([say(f"Noted {number}")] for number in range(8)))
    for number in range(3):
        await aisle.interact(ENV, Input(f"Aisle {number}"), other.config)
    late = await aisle.fork("support-4711-b-late", at=4)
    for number in range(5):
        await late.interact(ENV, Input(f"later {number}"), other.config)
    return talk


async def hostile(store: ConversationStore, *, scope: str = "default") -> Conversation:
    """Markup, controls and very long texts in every place that takes text."""
    talk = await store.create(
        HOSTILE_ID, scope=scope, title=HOSTILE_TITLE, metadata={"<script>": "</script><img src=x onerror=alert(1)>"}
    )
    model = Scripted(
        [say(HOSTILE), call("<img src=x onerror=alert(1)>", {"<b>": HOSTILE}, id="<b>call</b>")],
        [say("M" * 1_000_000)], [say("x y " * 250_000)],
    )  # fmt: skip
    await talk.interact(ENV, Input(HOSTILE), model.config)
    await talk.interact(ENV, Input(tool_results=[ToolResult("<b>call</b>", HOSTILE, is_error=True)]), model.config)
    await talk.interact(ENV, Input("\u202e" * 5000 + "a\u0001b\u0002" * 20_000), model.config)
    return talk


async def waiting(store: ConversationStore, id: str, said: str, *, scope: str = "default") -> None:
    """A conversation whose only input has no answer."""
    talk = await store.create(id, scope=scope)
    nobody = Config("openai", "gpt-5-nano", api_key="k", base_url="http://127.0.0.1:9", max_attempts=1)
    try:
        await talk.interact(ENV, Input(said), nobody)
    except APIError:
        return
    raise AssertionError("somebody answered")
