"""Blocks and messages: what may be built, what an error says, and what nobody gets to see."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from environment_support import PIXEL
from pydantic import TypeAdapter, ValidationError

from pollux_like.conversation import (
    FORMATS,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    convert,
    decode_messages,
    flatten,
)
from pollux_like.errors import FormatError

USER = Message(role="user", blocks=[TextBlock(text="Late?")])
CALL = ToolCallBlock(id="f1", name="board", input={})


def result(call: str = "f1", *texts: str, is_error: bool = False) -> ToolResultBlock:
    return ToolResultBlock(tool_call_id=call, blocks=[TextBlock(text=text) for text in texts], is_error=is_error)


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("system", ReasoningBlock(text="x")), ("system", CALL), ("system", result()), ("user", ReasoningBlock(text="x")),
        ("user", CALL), ("assistant", result()),
    ],
)  # fmt: skip
def test_a_block_in_the_wrong_role_is_refused_at_construction(role: Any, block: Any) -> None:
    with pytest.raises(ValidationError) as raised:
        Message(role=role, blocks=[TextBlock(text="a"), block])
    (error,) = raised.value.errors()
    assert f"a {block.type} block stands in" in error["msg"]
    assert f"{role} message, at blocks[1]" in error["msg"]
    assert len(str(raised.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "audio", "data": "aa"}, "a block of no known type, at blocks[0]"),
        ({"type": "tool_use", "id": "1", "name": "n", "input": {}}, "a block of no known type, at blocks[0]"),
        ({"type": "tool_call", "id": "1", "name": "n", "input": []}, "wrong at blocks[0].input"),
        ({"type": "tool_call", "id": "1", "name": "n"}, "wrong at blocks[0].input"),
        ({"type": "text", "text": "private", "content": 1}, "wrong at blocks[0].content"),
        ({"type": "text", "text": None}, "wrong at blocks[0].text"),
        ("private", "a block of no known type, at blocks[0]"),
    ],
)
def test_one_typo_gives_one_line_without_the_content(block: Any, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Message.model_validate({"role": "assistant", "blocks": [block]})
    assert said in str(raised.value)
    assert len(str(raised.value).splitlines()) == 2
    assert "private" not in str(raised.value)
    assert "http" not in str(raised.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1, 2}, b"x"])
def test_what_json_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        ToolCallBlock(id="1", name="n", input={"x": value})
    with pytest.raises(ValidationError):
        TextBlock(text="a", detail={"x": value})


def test_a_signature_and_the_conversation_stay_out_of_repr_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    message = Message(role="assistant", blocks=[ReasoningBlock(text="my thoughts", signature="c2lnbmF0dXJl"), CALL])
    logging.getLogger("test").warning("%s %r %s", message, message.blocks, [message])
    with pytest.raises(FormatError) as raised:
        convert([USER, message, Message(role="user", blocks=[result()])], "openai")
    for shown in (repr(message), str(message.blocks[0]), caplog.text, str(raised.value)):
        assert "c2lnbmF0dXJl" not in shown
        assert "thoughts" not in shown
    assert "***" in repr(message.blocks[0])
    assert message.model_dump()["blocks"][0]["signature"] == "c2lnbmF0dXJl"


def test_a_message_cannot_be_changed_and_a_changed_list_is_found_out() -> None:
    with pytest.raises(ValidationError):
        USER.role = "assistant"  # type: ignore[misc]
    message = Message(role="user", blocks=[TextBlock(text="a")])
    message.blocks.append(CALL)
    with pytest.raises(ValidationError, match="tool_call block stands in a user message"):
        convert([message], "openai")


def test_messages_nest_in_models_of_others() -> None:
    adapter = TypeAdapter(list[Message])
    again = adapter.validate_json(adapter.dump_json([USER]))
    assert again == [USER]
    assert "signature" in str(adapter.json_schema())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([], id="no messages"),
        pytest.param([Message(role="user", blocks=[])], id="empty turn"),
        pytest.param([USER, Message(role="assistant", blocks=[CALL]), USER], id="unanswered call"),
        pytest.param([USER, Message(role="user", blocks=[result()])], id="result without call"),
        pytest.param(
            [USER, Message(role="assistant", blocks=[CALL]), Message(role="user", blocks=[result("zz")])],
            id="unknown id",
        ),
        pytest.param(
            [USER, Message(role="assistant", blocks=[CALL]), Message(role="user", blocks=[result(), result()])],
            id="answered twice",
        ),
        pytest.param(
            [USER, Message(role="assistant", blocks=[CALL, CALL]), Message(role="user", blocks=[result()])],
            id="id twice",
        ),
    ],
)
def test_what_no_provider_takes_raises_in_every_format(form: Any, broken: list[Message]) -> None:
    with pytest.raises(ValueError, match=f'format="{form}"'):
        convert(broken, form)


@pytest.mark.parametrize("form", ["openai", "openrouter", "openai-responses", "google"])
def test_is_error_is_never_dropped(form: Any) -> None:
    talk = [USER, Message(role="assistant", blocks=[CALL]), Message(role="user", blocks=[result(is_error=True)])]
    with pytest.raises(FormatError, match="is_error"):
        convert(talk, form)
    assert convert(talk, "anthropic")["messages"][2]["content"][0]["is_error"] is True


def test_order_is_kept_or_refused() -> None:
    thought, said = ReasoningBlock(text="hm"), TextBlock(text="yes")
    late = [USER, Message(role="assistant", blocks=[said, thought]), USER]
    with pytest.raises(FormatError, match="order"):
        convert(late, "openai")
    assert [part["type"] for part in convert(late, "anthropic")["messages"][1]["content"]] == ["text", "thinking"]
    mixed = [USER, Message(role="assistant", blocks=[CALL, said]), Message(role="user", blocks=[result()])]
    with pytest.raises(FormatError):
        convert(mixed, "openai")
    assert [item.get("type") for item in convert(mixed, "openai-responses")] == [
        "message", "function_call", "message", "function_call_output"
    ]  # fmt: skip


def test_images_go_where_a_format_has_a_place_for_them() -> None:
    image = ImageBlock(data=PIXEL, mimeType="image/png")
    shown = ToolResultBlock(tool_call_id="f1", blocks=[TextBlock(text="frame"), image])
    talk = [USER, Message(role="assistant", blocks=[CALL]), Message(role="user", blocks=[shown])]
    for form in ("openai", "openrouter", "google"):
        with pytest.raises(FormatError, match="image"):
            convert(talk, form)
    assert convert(talk, "openai-responses")[-1]["output"][1]["image_url"].startswith("data:image/png;base64,iVBOR")
    for role in ("assistant", "system"):
        odd = [Message(role=role, blocks=[image]), USER]  # type: ignore[arg-type]
        for form in ("openai", "anthropic", "openai-responses"):
            with pytest.raises(FormatError):
                convert(odd, form)  # type: ignore[call-overload]


def test_a_format_that_is_none_of_ours_is_a_value_error() -> None:
    for name in ("OpenAI", "", "mistral", 3):
        with pytest.raises(ValueError, match="none of ours"):
            convert([USER], name)  # type: ignore[call-overload]


def test_blocks_of_the_future_are_skipped_by_name_and_leave_no_orphan() -> None:
    wire = [
        {"role": "user", "blocks": [{"type": "text", "text": "hi", "new_key": 1}], "also_new": 2},
        {"role": "assistant", "blocks": [{"type": "citation", "ref": 1}]},
        {"role": "assistant", "blocks": [{"type": "tool_call_v2", "id": "a"}, {"type": "text", "text": "so"}]},
        {"role": "user", "blocks": [{"type": "tool_result", "tool_call_id": "a", "blocks": []}]},
        {"role": "assistant", "blocks": [{"type": "tool_call", "id": "b", "name": "n", "input": {}}]},
        {"role": "user", "blocks": [{"type": "tool_result_v2", "tool_call_id": "b"}]},
        {"role": "user", "blocks": [
            {"type": "audio", "data": "aa"},
            {"type": "text", "text": "and?"}]},
    ]  # fmt: skip
    decoded = decode_messages(wire)
    assert [(m.role, [block.type for block in m.blocks]) for m in decoded.messages] == [
        ("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])
    ]  # fmt: skip
    for form in FORMATS:
        convert(decoded.messages, form)
    said = " ".join(decoded.skipped)
    for name in ("citation", "tool_call_v2", "tool_result_v2", "audio", "call 'a'", "call 'b'"):
        assert name in said


@pytest.mark.parametrize("name", ["id", "tool_call_id"])
def test_an_id_that_is_no_text_is_refused_or_skipped_with_its_block(name: str) -> None:
    kind, role = ("tool_call", "assistant") if name == "id" else ("tool_result", "user")
    for value in ([1], {"a": 1}, None):
        with pytest.raises(FormatError):
            decode_messages([{"role": role, "blocks": [{"type": kind, name: value, "name": "n", "input": {}}]}])
        assert decode_messages([{"role": role, "blocks": [{"type": "hologram", name: value}]}]).messages == []


@pytest.mark.parametrize(
    "wire",
    [None, {}, [None], [{"role": "tool", "blocks": []}], [{"role": "user", "blocks": [{"text": "x"}]}], [{"role": "user"}],
     [{"role": "user", "blocks": [{"type": "tool_call", "id": "1", "name": "n", "input": {}}]}]],
)  # fmt: skip
def test_what_is_no_conversation_is_refused(wire: Any) -> None:
    with pytest.raises(FormatError):
        decode_messages(wire)


def test_one_plain_user_message_flattens_to_its_own_blocks() -> None:
    blocks = [TextBlock(text=" a ", detail={"k": 1}), ImageBlock(data=PIXEL, mimeType="image/png")]
    assert flatten([Message(role="user", blocks=blocks)]) == blocks
    assert flatten([]) == []
