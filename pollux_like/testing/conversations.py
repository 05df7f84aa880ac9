"""The table of conversations: the shapes that a conversation takes, once for every provider.

Each entry is played on every provider, streamed and not, in memory and through saved state; the next request must be
the same down all roads. A provider of one's own joins by playing `CONVERSATIONS` against its own stand-in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pollux_like.messages import Message, ToolCall, ToolResult
from pollux_like.testing.script import Answer, answer, call, compaction, redacted, refuse, say, server_tool, think
from pollux_like.tools import ToolDeclaration

WEATHER = ToolDeclaration(
    "get_weather",
    "Get the weather of a city",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["C", "F"]}},
        "required": ["city"],
    },
)
CLOCK = ToolDeclaration("get_time", "Get the time")
NOTE = ToolDeclaration("note", "Write a note", {"type": "object", "properties": {"text": {"type": "string"}}})
TOOLS = (WEATHER, CLOCK, NOTE)
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
    "required": ["city", "population"],
}


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what the application brings and what the model answers. `status` is the finish that must come out."""

    content: str | None
    answer: Answer
    results: tuple[ToolResult, ...] = ()
    status: str = "stop"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of several steps.

    `needs` names what a provider must have: thinking, pause, server_tool, compaction, refusal, raw_arguments (calls
    whose arguments are no JSON), cut_call (calls cut by the limit), output_beside_tools. `arguments` go to every turn. `history` is the portable history that the first step brings.
    """

    name: str
    steps: tuple[Step, ...]
    tools: tuple[ToolDeclaration, ...] = ()
    instructions: str | None = "Be brief."
    history: tuple[Message, ...] = ()
    needs: frozenset[str] = frozenset()
    arguments: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)


def _result(call_id: str, content: str = "ok", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id, content, is_error)


_AGAIN = Step("And then?", answer(say("That is all.")))
_THINKING: dict[str, Any] = {"reasoning_effort": "low"}
_ROUND = (
    Message("user", "What is the weather in Oslo?"),
    Message("assistant", tool_calls=(ToolCall("call_old", "get_weather", '{"city":"Oslo"}'),)),
    Message("tool", "-3 C", tool_call_id="call_old"),
)


def _loop(length: int, *, thoughts: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    for number in range(length):
        parts = (think(f"Step {number}"),) if thoughts else ()
        made = answer(*parts, call("note", {"text": f"step {number}"}, id=f"call_{number}"))
        results = (_result(f"call_{number - 1}", f"noted {number - 1}"),) if number else ()
        steps.append(Step(None if number else "Take five notes.", made, results, "tool_calls"))
    return (*steps, Step(None, answer(say("Five notes taken.")), (_result(f"call_{length - 1}"),)), _AGAIN)


CONVERSATIONS: tuple[Conversation, ...] = (
    Conversation("plain chat", (Step("Hello", answer(say("Hi."))), Step("Who are you?", answer(say("A model."))), _AGAIN)),
    Conversation("without instructions", (Step("Hello", answer(say("Hi."))), _AGAIN), instructions=None),
    Conversation(
        "unicode", (Step("Grüße 👩‍🚀 مرحبا e\u0301", answer(say("日本語 🎉 \u2028 ok"))), Step("🤔\U0001f680?", answer(say("ø"))))
    ),
    Conversation("control characters", (Step("a\tb\r\nc\u0000d\u001f", answer(say("e\u0000f"))), _AGAIN)),
    Conversation("quotes and slashes", (Step('"\\"/</script>\\u0041', answer(say('\\"}]\\n'))), _AGAIN)),
    Conversation("long texts", (Step("x" * 10_000, answer(say("y" * 20_000))), _AGAIN)),
    Conversation("empty reply", (Step("Say nothing.", answer()), _AGAIN, _AGAIN)),
    Conversation("two texts in one reply", (Step("Hello", answer(say("Hi"), say(" there."))), _AGAIN)),
    Conversation(
        "one tool call",
        (
            Step("Weather in Paris?", answer(call("get_weather", {"city": "Paris"}, id="call_1")), status="tool_calls"),
            Step(None, answer(say("Sunny.")), (_result("call_1", '{"sky":"clear"}'),)),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "text beside a tool call",
        (
            Step("Time?", answer(say("I look."), call("get_time", id="call_1")), status="tool_calls"),
            Step(None, answer(say("Noon.")), (_result("call_1", "12:00"),)),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "no arguments",
        (
            Step("Time?", answer(call("get_time", "", id="call_1")), status="tool_calls"),
            Step(None, answer(say("Noon.")), (_result("call_1", "12:00"),)),
        ),
        TOOLS,
    ),
    Conversation(
        "parallel calls, results out of order",
        (
            Step(
                "Weather in three cities?",
                answer(
                    call("get_weather", {"city": "Rome"}, id="call_a"),
                    call("get_weather", {"city": "Bern"}, id="call_b"),
                    call("get_time", id="call_c"),
                ),
                status="tool_calls",
            ),
            Step(None, answer(say("Here.")), (_result("call_c", "3"), _result("call_a", "1"), _result("call_b", "2"))),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "error result",
        (
            Step("Note it.", answer(call("note", {"text": "x"}, id="call_1")), status="tool_calls"),
            Step(None, answer(say("It failed.")), (_result("call_1", "disk full", is_error=True),)),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "empty results",
        (
            Step("Note it.", answer(call("note", {}, id="call_1"), call("note", {}, id="call_2")), status="tool_calls"),
            Step(None, answer(say("Done.")), (_result("call_1", ""), _result("call_2", "", is_error=True))),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "results with new text",
        (
            Step("Time?", answer(call("get_time", id="call_1")), status="tool_calls"),
            Step("Add the date.", answer(say("Noon, Monday.")), (_result("call_1", "12:00"),)),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "odd results",
        (
            Step("Note.", answer(call("note", id="call_1"), call("note", id="call_2")), status="tool_calls"),
            Step(None, answer(say("Ok.")), (_result("call_1", '{"$ref":"#/a","b":[1,2.50]}'), _result("call_2", "\u0000🎈"))),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "unicode arguments",
        (
            Step("Schreibe.", answer(call("note", {"text": "größer 👍 \u0000"}, id="call_1")), status="tool_calls"),
            Step(None, answer(say("Ja.")), (_result("call_1"),)),
        ),
        TOOLS,
    ),
    Conversation(
        "invalid arguments",
        (
            Step("Note.", answer(call("note", '{"text": "ls', id="call_1")), status="tool_calls"),
            Step(None, answer(call("note", '{"text": "ls"}', id="call_2")), (_result("call_1", "bad JSON", is_error=True),),
                 "tool_calls"),
            Step(None, answer(say("Done.")), (_result("call_2"),)),
            _AGAIN,
        ),
        TOOLS,
        needs=frozenset({"raw_arguments"}),
    ),
    Conversation("length", (Step("Tell me all.", answer(say("It beg"), finish="length"), status="length"), _AGAIN)),
    Conversation(
        "length inside a call",
        (
            Step("Note.", answer(say("I note."), call("note", '{"text": "abc', id="call_1", cut=True)), status="length"),
            Step("Shorter.", answer(say("Ok.")), (_result("call_1", "was cut", is_error=True),)),
            _AGAIN,
        ),
        TOOLS,
        needs=frozenset({"cut_call"}),
    ),
    Conversation(
        "refusal",
        (Step("Do harm.", answer(refuse("I will not.")), status="refusal"), Step("Sorry.", answer(say("Fine."))), _AGAIN),
        needs=frozenset({"refusal"}),
    ),
    Conversation(
        "two rounds in two turns",
        (
            Step("Time?", answer(call("get_time", id="call_1")), status="tool_calls"),
            Step(None, answer(say("Noon.")), (_result("call_1", "12:00"),)),
            Step("Weather?", answer(call("get_weather", {"city": "Rome"}, id="call_2")), status="tool_calls"),
            Step(None, answer(say("Sun.")), (_result("call_2", "sun"),)),
        ),
        TOOLS,
    ),
    Conversation("five-step loop", _loop(5, thoughts=False), TOOLS),
    Conversation("five-step loop with thinking", _loop(5, thoughts=True), TOOLS, needs=frozenset({"thinking"}), arguments=_THINKING),
    Conversation(
        "thinking",
        (Step("Why?", answer(think("Because…"), say("So."))), Step("Really?", answer(think("Yes"), say("Yes."))), _AGAIN),
        needs=frozenset({"thinking"}),
        arguments=_THINKING,
    ),
    Conversation(
        "thinking and a tool",
        (
            Step("Weather?", answer(think("Which city?\nParis."), call("get_weather", {"city": "Paris"}, id="call_1")),
                 status="tool_calls"),
            Step(None, answer(think("Clear"), say("Sunny.")), (_result("call_1", "clear"),)),
            _AGAIN,
        ),
        TOOLS,
        needs=frozenset({"thinking"}),
        arguments=_THINKING,
    ),
    Conversation(
        "interleaved thinking",
        (
            Step(
                "Both?",
                answer(think("One"), say("First."), call("get_time", id="call_1"), think("Two"), call("note", id="call_2")),
                status="tool_calls",
            ),
            Step(None, answer(think("Three"), say("Both done.")), (_result("call_2", "2"), _result("call_1", "1"))),
            _AGAIN,
        ),
        TOOLS,
        needs=frozenset({"thinking"}),
        arguments=_THINKING,
    ),
    Conversation(
        "redacted thinking",
        (
            Step("Time?", answer(redacted("r1"), think("t"), call("get_time", id="call_1")), status="tool_calls"),
            Step(None, answer(redacted("r2"), say("Noon.")), (_result("call_1", "12:00"),)),
            _AGAIN,
        ),
        TOOLS,
        needs=frozenset({"thinking"}),
        arguments=_THINKING,
    ),
    Conversation(
        "thinking without display",
        (
            Step("Time?", answer(think(""), call("get_time", id="call_1")), status="tool_calls"),
            Step(None, answer(think(""), say("Noon.")), (_result("call_1", "12:00"),)),
            _AGAIN,
        ),
        TOOLS,
        needs=frozenset({"thinking"}),
        arguments=_THINKING,
    ),
    Conversation(
        "only thinking, cut",
        (Step("Think long.", answer(think("Hm"), finish="length"), status="length"), _AGAIN, _AGAIN),
        needs=frozenset({"thinking"}),
        arguments=_THINKING,
    ),
    Conversation(
        "structured output",
        (Step("Where?", answer(say('{"city":"Rome","population":2800000}'))), Step("And?", answer(say('{"city":"Bern","population":1}')))),
        arguments={"output": PLACE},
    ),
    Conversation(
        "structured output after tools",
        (
            Step("Where?", answer(call("get_weather", {"city": "Rome"}, id="call_1")), status="tool_calls"),
            Step(None, answer(say('{"city":"Rome","population":2}')), (_result("call_1", "sun"),)),
        ),
        TOOLS,
        needs=frozenset({"output_beside_tools"}),
        arguments={"output": PLACE},
    ),
    Conversation("history", (Step("And now?", answer(say("Colder."))), _AGAIN), TOOLS,
                 history=(*_ROUND, Message("assistant", "Minus three."))),
    Conversation("history that ends in results", (Step(None, answer(say("Minus three."))), _AGAIN), TOOLS, history=_ROUND),
    Conversation(
        "history with foreign ids",
        (Step("Go on.", answer(say("On."))), _AGAIN),
        TOOLS,
        history=(
            Message("user", "a"), Message("user", "b"),
            Message("assistant", "c", (ToolCall("call_a|fc:1", "get_time"), ToolCall("call_a|fc:2", "get_time"))),
            Message("tool", "2", tool_call_id="call_a|fc:2"), Message("tool", "1", tool_call_id="call_a|fc:1"),
            Message("assistant", "d", (ToolCall("x" * 90, "get_time"),)), Message("tool", "3", tool_call_id="x" * 90),
            Message("assistant", "e", (ToolCall("x" * 90, "catalog.query"),)), Message("tool", "", tool_call_id="x" * 90),
            Message("assistant", "f "),
        ),
    ),
    Conversation(
        "pause",
        (
            Step("Search.", answer(say("I search."), server_tool("web_search", {"query": "q"}), finish="pause"), status="pause"),
            Step(None, answer(say("Found it."))),
            _AGAIN,
        ),
        needs=frozenset({"pause"}),
        arguments={
            "provider_options": {
                "anthropic": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
                "gemini": {"tools": [{"googleSearch": {}}]},
            }
        },
    ),
    Conversation(
        "server tool",
        (
            Step("Search.", answer(say("I search."), server_tool("web_search", {"query": "q"}, result=[]), say("Found."))),
            _AGAIN,
        ),
        needs=frozenset({"server_tool"}),
        arguments={
            "provider_options": {
                "anthropic": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
                "openai": {"tools": [{"type": "web_search"}]},
                "gemini": {"tools": [{"googleSearch": {}}]},
            }
        },
    ),
    Conversation(
        "phases",
        (
            Step("Time?", answer(say("I look.", phase="commentary"), call("get_time", id="call_1")), status="tool_calls"),
            Step(None, answer(say("Noon.", phase="final_answer")), (_result("call_1", "12:00"),)),
            _AGAIN,
        ),
        TOOLS,
    ),
    Conversation(
        "compaction",
        (Step("Hello", answer(say("Hi."))), Step("Long talk.", answer(compaction("They greeted."), say("Go on."))), _AGAIN, _AGAIN),
        needs=frozenset({"compaction"}),
    ),
)  # fmt: skip
