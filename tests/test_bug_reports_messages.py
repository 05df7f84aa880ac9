"""Reported failures of others, messages and saved state: emptiness, roles, instructions, encodings, versions, races."""

from __future__ import annotations

import copy
import json
from typing import Any

import anyio
import pytest
from wires import (
    CHAT,
    ENV,
    STORE,
    THINK,
    WIRES,
    Body,
    Fake,
    ask,
    calls,
    chat_sse,
    completion,
    message,
    options,
    reasoning,
    reloaded,
    response,
    spoken,
    texts,
    thinking,
    tool_use,
    watched,
)

import pollux_like.continuation
from pollux_like import (
    ConfigurationError,
    Continuation,
    ContinuationError,
    Environment,
    Input,
    Message,
    ToolCall,
    ToolResult,
    handoff,
)
from pollux_like.testing import Scripted, answer, call, redacted, refuse, say, server_tool, think

pytestmark = pytest.mark.anyio
ROUND = [Message("user", "a"), Message("assistant", "", (ToolCall("c1", "f"),)), Message("tool", "", tool_call_id="c1")]


def blocks(said: list[Body]) -> list[Body]:
    """All content blocks of a Messages request."""
    return [block for one in said if isinstance(one["content"], list) for block in one["content"]]


@pytest.mark.parametrize("wire", WIRES)
async def test_emp_01_02_06_09_a_round_without_words(wire: str) -> None:
    """EMP-01, 02, 06, 09: no empty text, null where chat wants it, an empty result that still answers, and no filler."""
    fake = Fake(texts(wire, "x"), calls(wire, "c2"), calls(wire, "c3"), texts(wire, "y"))
    await ask(fake.at(wire), Input(history=ROUND), **options(wire))
    output = await ask(fake.at(wire), "b", **options(wire))
    for call_id in ("c2", "c3"):
        given = Input(continuation=output.continuation, tool_results=[ToolResult(call_id, "")])
        output = await ask(fake.at(wire), given, **options(wire))
    for said in (fake.said[0], fake.said[3]):
        if wire == "anthropic":
            assert {block["type"] for block in blocks(said)} == {"tool_use", "tool_result"}
            assert not [block for block in blocks(said) if "content" in block]
        elif wire == "chat":
            spoke = [one for one in said if one["role"] == "assistant"]
            assert [(one["content"], len(one["tool_calls"])) for one in spoke] == [(None, 1)] * len(spoke)
            assert {one["content"] for one in said if one["role"] == "tool"} == {""}
        else:
            assert not [one for one in said if one.get("role") == "assistant"]
            assert {one["output"] for one in said if one.get("type") == "function_call_output"} == {""}


async def test_emp_01_an_empty_text_that_the_api_returned_does_not_go_back() -> None:
    """EMP-01: the API gives blank blocks that it does not take; they stay in the state and out of the request."""
    fake = Fake(message({"type": "text", "text": ""}, tool_use("c1")), texts("anthropic", "x"))
    output = await ask(fake.anthropic(), "go")
    await ask(fake.anthropic(), Input(continuation=output.continuation, tool_results=[ToolResult("c1", "ok")]))
    assert fake.said[1][1]["content"] == [tool_use("c1")]


@pytest.mark.parametrize("wire", WIRES)
async def test_emp_03_an_answer_that_ends_in_blanks(wire: str) -> None:
    """EMP-03: trailing white space of an assistant message refuses nothing, for a user turn follows it."""
    history = [Message("user", "a"), Message("assistant", "answer \n")]
    fake = Fake(texts(wire, "b \n"), texts(wire, "c"))
    output = await ask(fake.at(wire), Input("next", history=history), **options(wire))
    await ask(fake.at(wire), Input("more", continuation=output.continuation), **options(wire))
    assert history[1].content == "answer \n"
    sent = json.dumps(fake.said[0])
    assert ('"answer"' in sent) if wire == "anthropic" else (r'"answer \n"' in sent)
    assert r'"b \n"' in json.dumps(fake.said[1])


@pytest.mark.parametrize("history", [[Message("user", "a"), Message("assistant", "b")], [Message("user", "a")], []])
def test_emp_04_nothing_to_answer(history: list[Message]) -> None:
    """EMP-04: a history that ends with the assistant is not continued by words that nobody said."""
    with pytest.raises(ConfigurationError, match="nothing that the model could answer"):
        Input(history=history)


async def test_emp_05_a_turn_that_was_only_thought() -> None:
    """EMP-05: cut inside its reasoning, a turn has no portable message, and leaves no empty one in the next request."""
    fake = Fake(message(thinking("t", "S"), stop="max_tokens"), texts("anthropic", "x"), texts("anthropic", "y"))
    output = await ask(fake.anthropic(), "go", **THINK)
    assert output.continuation is not None
    assert (output.text, output.finish.status, [one.role for one in output.messages]) == ("", "length", ["user"])
    bridge = handoff(output.continuation)
    assert [one.role for one in bridge.history] == ["user"]
    assert bridge.losses
    await ask(fake.anthropic(), Input("more", continuation=output.continuation), **THINK)
    await ask(fake.anthropic(), Input("more", history=bridge.history), **THINK)
    for said in fake.said[1:]:
        assert {one["role"] for one in said} == {"user"}
        assert all(word in json.dumps(said) for word in ("go", "more"))


@pytest.mark.parametrize("wire", WIRES)
async def test_rol_01_two_user_messages_in_a_row(wire: str) -> None:
    """ROL-01: they are taken, in order, none lost."""
    fake = Fake(texts(wire, "x"))
    await ask(fake.at(wire), Input("ccc", history=[Message("user", "aaa"), Message("user", "bbb")]), **options(wire))
    sent = json.dumps(fake.said[0])
    assert sent.index("aaa") < sent.index("bbb") < sent.index("ccc")
    assert {one["role"] for one in fake.said[0]} <= {"user", "developer"}


@pytest.mark.parametrize("role", ["system", "developer"])
def test_sys_01_system_text_is_no_part_of_history(role: Any) -> None:
    """SYS-01: on every way in, the error points to where such text belongs."""
    for make in (lambda: Message(role, "s"), lambda: Message.from_openai({"role": role, "content": "s"})):
        with pytest.raises(ConfigurationError, match=r"Environment\.instructions"):
            make()


@pytest.mark.parametrize("wire", [*WIRES, "stored"])
async def test_sys_03_instructions_are_in_every_request(wire: str) -> None:
    """SYS-03: also with tool results, also where the server keeps the conversation."""
    own = "openai" if wire == "stored" else wire
    arguments = STORE if wire == "stored" else options(wire)
    fake = Fake(calls(own, "c1"), texts(own, "x"))
    output = await ask(fake.at(own), "go", **arguments)
    given = Input(continuation=output.continuation, tool_results=[ToolResult("c1", "ok")])
    await ask(fake.at(own), given, **arguments)
    assert [body.count(b"Be brief.") for body in fake.raw] == [1, 1]


@pytest.mark.parametrize("wire", WIRES)
async def test_mut_01_nothing_of_the_callers_changes(wire: str) -> None:
    """MUT-01: the same lists, dicts and environment give the same request a second time."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    from pollux_like import ToolDeclaration

    history, metadata, given = list(ROUND), {"k": [1]}, {name: dict(value) for name, value in options(wire).items()}
    env = Environment("Be brief.", tools=[ToolDeclaration("f", "F", schema)], metadata=metadata)
    before = copy.deepcopy((schema, metadata, given, [one.to_jsonable() for one in history]))
    fake = Fake(texts(wire, "x"), texts(wire, "x"))
    for _ in range(2):
        await ask(fake.at(wire), Input("go", history=history), env, **given)
    assert (schema, metadata, given, [one.to_jsonable() for one in history]) == before
    assert fake.raw[0] == fake.raw[1]


@pytest.mark.parametrize("wire", WIRES)
async def test_con_01_two_workers_make_two_branches(wire: str) -> None:
    """CON-01: neither sees the other's turn, and what both came from is untouched."""
    fake = Fake(texts(wire, "hi"), texts(wire, "one"), texts(wire, "two"), texts(wire, "x"), texts(wire, "x"))
    first = (await ask(fake.at(wire), "go", **options(wire))).continuation
    assert first is not None
    digest, config, found = first.digest, fake.at(wire), {}

    async def work(name: str) -> None:
        found[name] = (await ask(config, Input(f"I am {name}", continuation=first), **options(wire))).continuation

    async with anyio.create_task_group() as group:
        group.start_soon(work, "left")
        group.start_soon(work, "right")
    assert first.digest == digest
    for mine, other in (("left", b"right"), ("right", b"left")):
        await ask(config, Input("more", continuation=found[mine]), **options(wire))
        assert mine.encode() in fake.raw[-1]
        assert other not in fake.raw[-1]


@pytest.mark.parametrize("wire", WIRES)
async def test_enc_03_nul_is_kept_and_saved_escaped(wire: str) -> None:
    """ENC-03: U+0000 reaches the model as it was, and no saved string holds the character itself."""
    fake = Fake(calls(wire, "c1"), texts(wire, "o\x00k"), texts(wire, "x"))
    output = await ask(fake.at(wire), "a\x00b", **options(wire))
    result = ToolResult("c1", "r\x00s")
    given = Input(continuation=reloaded(output.continuation), tool_results=[result])
    output = await ask(fake.at(wire), given, **options(wire))
    assert output.continuation is not None
    saved = output.continuation.to_jsonable()
    assert not [line for line in saved["turns"] if "\x00" in line]
    assert b"\\u0000" not in json.dumps(saved).encode().replace(b"\\\\u0000", b"")
    await ask(fake.at(wire), Input("more", continuation=reloaded(output.continuation)), **options(wire))
    sent = json.dumps(fake.said[2])
    assert not [word for word in (r"a\u0000b", r"r\u0000s", r"o\u0000k") if word not in sent]


def test_enc_05_half_a_character_is_refused_at_the_door() -> None:
    """ENC-05: a lone surrogate in the caller's text never enters a conversation."""
    for make in (
        lambda: ToolResult("c", "x\ud83c"), lambda: Input("\udc97"), lambda: Message("user", "x\ud83c"),
        lambda: ToolCall("c", "f", '{"a":"\ud83c"}'), lambda: Environment("x\ud83c"),
        lambda: ToolResult.from_value(call_id="c", value={"a": "\ud83c"}),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match="surrogate"):
            make()


async def test_enc_05_half_a_character_from_a_provider_poisons_nothing() -> None:
    """ENC-05: halves that came in two pieces are joined, a lone one is shown as U+FFFD, and every later body encodes."""
    fake = Fake(chat_sse({"content": "a\ud83c"}, {"content": "\udf89b"}), completion({"content": "x\ud83c"}),
                response(reasoning(sealed=None), {**spoken(""), "content": [{"type": "output_text", "text": "y\ud83c"}]}),
                message({"type": "text", "text": "z\ud83c"}))  # fmt: skip
    assert (await watched(fake.openai(), "go", **CHAT))[0].text == "a🎉b"
    for config, arguments, shown in ((fake.openai(), CHAT, "x"), (fake.openai(), {}, "y"), (fake.anthropic(), {}, "z")):
        output = await ask(config, "go", **arguments)
        assert output.text == output.messages[-1].content == f"{shown}\ufffd"
        fake.answers.insert(0, texts("chat" if arguments else config.provider, "fine"))
        await ask(config, Input("more", continuation=reloaded(output.continuation)), **arguments)
        assert fake.raw[-1].decode("utf-8")


def test_enc_07_no_number_that_json_does_not_have() -> None:
    """ENC-07: NaN and infinities are refused by the path at which they stand."""
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ConfigurationError, match=r"value\.v\[1\]"):
            ToolResult.from_value(call_id="c", value={"v": [1, bad]})
        with pytest.raises(ConfigurationError, match=r"arguments\.a"):
            ToolCall("c", "f", arguments={"a": bad})


TURNS: dict[str, Any] = {
    "plain": answer(say("hi")), "empty": answer(), "signed": answer(think("t"), redacted(), say("hi")),
    "calls": answer(call("f", {"a": 1}, id="c1")), "broken call": answer(call("f", "{", id="c1", cut=True)),
    "refusal": answer(refuse("no")), "paused": answer(server_tool("s"), finish="pause"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TURNS)
async def test_enc_10_saved_state_is_json_of_every_kind_of_turn(kind: str) -> None:
    """ENC-10: no datetime, bytes or SDK object anywhere, in the state or in the whole output."""

    def plain(value: Any) -> bool:
        if isinstance(value, dict):
            return all(type(key) is str and plain(child) for key, child in value.items())
        return all(map(plain, value)) if isinstance(value, list) else type(value) in (str, int, float, bool, type(None))

    output = await ask(Scripted(TURNS[kind]).config, Input("go", history=[Message("user", "a")]))
    assert output.continuation is not None
    for saved in (output.to_jsonable(), output.continuation.to_jsonable()):
        assert plain(saved)
        json.dumps(saved, allow_nan=False)
    assert reloaded(output.continuation) == output.continuation


@pytest.mark.parametrize("wire", WIRES)
async def test_can_01_key_order_survives_a_sorting_store(wire: str) -> None:
    """CAN-01: the arguments go back in the order in which the model wrote them."""
    fake = Fake(calls(wire, "c1", arguments='{"b":1,"a":2}'), texts(wire, "x"), texts(wire, "x"))
    output = await ask(fake.at(wire), "go", **options(wire))
    for state in (output.continuation, reloaded(output.continuation)):
        await ask(fake.at(wire), Input(continuation=state, tool_results=[ToolResult("c1", "ok")]), **options(wire))
    assert fake.raw[1] == fake.raw[2]
    assert fake.raw[1].replace(b"\\", b"").index(b'{"b":1,"a":2}')


@pytest.mark.parametrize("wire", WIRES)
async def test_can_03_the_stable_part_stands_first(wire: str) -> None:
    """CAN-03: the bodies of two turns agree up to a place inside the messages."""
    fake = Fake(texts(wire, "hi"), texts(wire, "x"))
    output = await ask(fake.at(wire), "go", **options(wire))
    await ask(fake.at(wire), Input("more", continuation=output.continuation), **options(wire))
    start = fake.raw[0].index(b'"input":[' if wire == "openai" else b'"messages":[')
    assert fake.raw[1].startswith(fake.raw[0].rstrip(b"]}"))
    assert fake.raw[0].index(b'"tools"') < start
    assert b"Be brief." in (fake.raw[0] if wire == "chat" else fake.raw[0][:start])


LINE = (
    '{"stamp":["scripted","script","memory:","scripted","e"],"added":[{"role":"user","content":"go"}],'
    '"calls":[{"id":"c1","name":"f","arguments_text":"{}"}],"status":"tool_calls",'
    '"native":[{"type":"call","name":"f","arguments":"{}","id":"c1"}]}'
)
SAVED = {
    "format": "pollux_like.continuation", "version": 1, "provider": "scripted", "turns": [LINE],
    "digest": "e65c4883d4fefc9fca4b516067bc6fdf1df246efe64e530bb6c32f2250b81761",
}  # fmt: skip


async def test_mig_01_the_first_format_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """MIG-01, MIG-03: version 1 as it was first written; a later version reads it through its upcaster, then strictly."""
    state = Continuation.from_jsonable(SAVED)
    assert [one.id for one in state.pending_tool_calls] == ["c1"]
    assert (
        await ask(Scripted([say("x")]).config, Input(continuation=state, tool_results=[ToolResult("c1", "ok")]))
    ).text
    old = {key: value for key, value in SAVED.items() if key != "provider"}
    with pytest.raises(ContinuationError, match="missing or unknown fields"):
        Continuation.from_jsonable(old)
    monkeypatch.setitem(
        pollux_like.continuation.UPCASTERS, 1, lambda fields: {**fields, "version": 2, "provider": "scripted"}
    )
    assert Continuation.from_jsonable(old) == state
    with pytest.raises(ContinuationError, match="missing or unknown fields"):
        Continuation.from_jsonable({**old, "version": 2})


@pytest.mark.parametrize("wire", WIRES)
async def test_sot_01_structured_output_leaves_no_open_call(wire: str) -> None:
    """SOT-01: the answer is text in the API's own form, so the conversation simply goes on."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    fake = Fake(texts(wire, '{"n":1}'), texts(wire, '{"n":2}'))
    first = await ask(fake.at(wire), "go", output=schema, **options(wire))
    assert (first.structured, first.tool_calls) == ({"n": 1}, ())
    second = await ask(
        fake.at(wire), Input("change x", continuation=first.continuation), ENV, output=schema, **options(wire)
    )
    assert second.structured == {"n": 2}
    form = {
        "openai": ("text", "format"),
        "chat": ("response_format", "json_schema"),
        "anthropic": ("output_config", "format"),
    }
    outer, inner = form[wire]
    assert fake.sent[0][outer][inner]["schema"]["required"] == ["n"]
    assert b"tool_use" not in fake.raw[1]
    assert b"function_call" not in fake.raw[1]
