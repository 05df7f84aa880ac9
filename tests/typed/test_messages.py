"""The page's rules for messages, and the hash over what was sent."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from pollux_like import canonical
from pollux_like.errors import ConfigurationError, ImageInputError
from pollux_like.typed import ScriptedEngine, TypedAnswer, stream, typed
from pollux_like.typed.conversation import read_conversation
from pollux_like.typed.rendering import SYSTEM_LINE, shared

from .cases import MESSAGES, SCHEMA

USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("messages", "more", "names"),
    [
        (None, {}, "neither"),
        ([], {}, "messages"),
        ("hi", {}, "messages"),
        ([USER, {"role": "system", "content": "s"}], {}, "messages[1]"),
        ([{"role": "system", "content": "s"}, USER], {"system": "t"}, "both"),
        ([{"role": "system", "content": "s"}], {}, "system"),
        ([{"role": "tool", "content": "x"}], {}, "messages[0].role"),
        ([{"role": "user"}], {}, "messages[0].content"),
        ([{"role": "user", "content": None}], {}, "messages[0].content"),
        ([{"role": "user", "content": []}], {}, "messages[0].content"),
        ([{"role": "user", "content": [{"type": "text"}]}], {}, "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], {}, "messages[0].content[0].text"),
        ([{"role": "user", "content": "x", "name": "a"}], {}, "messages[0]"),
        ([{"role": "user", "content": "\ud800"}], {}, "messages[0].content"),
        ([USER] * 2001, {}, "2,001"),
        ([{"role": "user", "content": "x" * 1_000_001}], {}, "1,000,001"),
        (None, {"context": " "}, "context"),
        ([USER], {"system": ""}, "system"),
        ([1], {}, "messages[0]"),
    ],
)
def test_a_bad_conversation_is_refused_by_place(messages: Any, more: dict[str, Any], names: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_conversation(messages, more.get("context"), more.get("system"))
    assert names in str(refused.value)


@pytest.mark.parametrize("kind", ["image", "image_url", "input_image"])
def test_an_image_part_is_refused_with_the_pages_advice(kind: str) -> None:
    part = {"type": kind, "image_url": {"url": "data:"}}
    with pytest.raises(ImageInputError, match="use the field image"):
        read_conversation([{"role": "user", "content": [{"type": "text", "text": "a"}, part]}])


def test_text_parts_are_joined_by_a_newline() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert read_conversation([{"role": "user", "content": parts}]).messages == ((0, "user", "a\nb"),)


def test_the_turns_stand_as_the_page_shows_them() -> None:
    conversation = read_conversation([{"role": "system", "content": "S"}, *MESSAGES], context="POLICY")
    assert [(turn.role, turn.text) for turn in shared(conversation)] == [
        ("system", "S"), ("user", "POLICY"), *((m["role"], m["content"]) for m in MESSAGES),
    ]  # fmt: skip
    assert shared(read_conversation(MESSAGES))[0].text == SYSTEM_LINE


# The text of RFC 8785 for these messages, written out by hand.
CANONICAL = '[{"content":"é \\"x\\"","role":"user"},{"content":[{"text":"b","type":"text"}],"role":"assistant"}]'


@pytest.mark.anyio
async def test_the_hash_is_over_the_canonical_json_of_what_was_sent() -> None:
    sent = [{"role": "user", "content": 'é "x"'}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]
    answer = await typed(sent, {"a": {"type": "int"}}, engine=ScriptedEngine())
    assert answer.provenance["messages_hash"] == hashlib.sha256(CANONICAL.encode()).hexdigest()
    only_context = await typed(context="x", schema={"a": {"type": "int"}}, engine=ScriptedEngine())
    assert only_context.provenance["messages_hash"] is None


@pytest.mark.anyio
async def test_an_earlier_answer_labels_what_changed() -> None:
    number = {
        "n": {"type": "string", "extract": True, "pattern": "[0-9]{4}"},
        "k": {"type": "enum", "options": ["a", "b"]},
    }
    first = await typed([{"role": "user", "content": "It is 1111"}], number, engine=ScriptedEngine({"n": "1111"}))
    grown = [
        {"role": "user", "content": "It is 1111"}, {"role": "assistant", "content": "Thanks"},
        {"role": "user", "content": "Sorry, 2222"},
    ]  # fmt: skip
    second = await typed(grown, number, engine=ScriptedEngine({"n": "2222"}), previous=first.to_jsonable())
    assert second.provenance["previous"] == {"known": True, "unchanged": ["k"], "corrected": ["n"]}
    assert second.fields["n"].status == "corrected"
    assert [span.text for span in second.fields["n"].evidence] == ["1111", "2222"]
    foreign = await typed(MESSAGES, SCHEMA, engine=ScriptedEngine(), previous=first)
    assert foreign.provenance["previous"]["known"] is False
    with pytest.raises(ConfigurationError, match="previous"):
        await typed(MESSAGES, SCHEMA, engine=ScriptedEngine(), previous={"values": 1})


@pytest.mark.anyio
async def test_a_streamed_field_has_the_label_that_the_answer_gives_it() -> None:
    schema = {"n": {"type": "string", "extract": True}}
    first = await typed([{"role": "user", "content": "It is 1111"}], schema, engine=ScriptedEngine({"n": "1111"}))
    grown = [{"role": "user", "content": "It is 1111"}, {"role": "user", "content": "Sorry, 2222"}]
    items = [item async for item in stream(grown, schema, engine=ScriptedEngine({"n": "2222"}), previous=first)]
    (name, field), answer = items
    assert isinstance(answer, TypedAnswer)
    assert field == answer.fields[name]
    assert field.status == "corrected"
    assert [(span.message, span.text) for span in field.evidence] == [(0, "1111"), (1, "2222")]


@pytest.mark.anyio
async def test_an_earlier_answer_beside_another_context_proves_nothing() -> None:
    messages = [{"role": "user", "content": "Is it covered?"}]
    schema = {"a": {"type": "int"}}
    first = await typed(messages, schema, context="Policy one", engine=ScriptedEngine())
    for context, known in (("Policy one", True), ("Policy two", False), (None, False)):
        second = await typed(messages, schema, context=context, engine=ScriptedEngine(), previous=first)
        assert second.provenance["previous"]["known"] is known


@pytest.mark.anyio
@pytest.mark.parametrize("provenance", [
    {}, {"messages_hash": None}, {"messages_hash": []}, {"messages_hash": {"a": 1}}, {"messages_hash": "0" * 64},
    {"messages_hash": "HASH", "field_hashes": []}, {"messages_hash": "HASH", "field_hashes": {"a": 1}},
])  # fmt: skip
async def test_a_forged_earlier_answer_labels_nothing(provenance: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "x"}]
    text = canonical.sha256(canonical.canonical(messages))
    told = {key: text if value == "HASH" else value for key, value in provenance.items()}
    previous = {"values": {"a": True}, "provenance": told}
    answer = await typed(messages, {"a": {"type": "int"}}, engine=ScriptedEngine(), previous=previous)
    assert answer.provenance["previous"]["unchanged"] == answer.provenance["previous"]["corrected"] == []
    assert answer.fields["a"].status == "present"
