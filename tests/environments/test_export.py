"""Export: the same task for harnesses that take items, and for those that take text."""

from __future__ import annotations

from typing import Any

import pytest
from environment_support import CONVERSATION, PIXEL

from pollux_like.environments import (
    ImageBlock,
    Message,
    TextBlock,
    ToolSpec,
    export_responses,
    export_text,
    templates,
)
from pollux_like.errors import FormatError

TALK = [Message.model_validate(message) for message in CONVERSATION]
BOARD = ToolSpec(
    name="board", description="Read", input_schema={"type": "object", "properties": {"pier": {"type": "integer"}}}
)
PLAIN = """
{%- if tools %}<tools>{{ tools | tojson }}</tools>
{% endif %}
{%- for message in messages %}<|{{ message.role }}|>
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}[{{ call.function.name }} {{ call.function.arguments | tojson }}]{% endfor %}<|end|>
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
FORGETFUL = PLAIN.replace(
    "message.reasoning_content %}", "message.reasoning_content and loop.index0 > messages | length - 2 %}"
)


def test_the_spans_of_a_template_that_keeps_everything() -> None:
    made = export_text(TALK, PLAIN, tools=[BOARD])
    assert (made.prefix_kept, made.losses) == (True, ())
    assert [span.role for span in made.spans] == ["system", "user", "assistant", "tool", "user"]
    assert made.spans[0].start == 0
    assert made.text[: made.spans[0].end].startswith("<tools>")
    said = [made.text[span.start : span.end] for span in made.spans]
    assert said[2] == '<|assistant|><think>The board knows.</think>[board {"pier": 4}]<|end|>\n'
    assert "".join(said) + "<|assistant|>" == made.text


def test_a_template_that_rewrites_earlier_turns_is_found_out() -> None:
    made = export_text(TALK, FORGETFUL)
    assert made.prefix_kept is False
    assert any("rendered otherwise" in loss for loss in made.losses)
    assert "reasoning_content of chat message 2 (assistant) is not in the text" in made.losses
    assert "assistant" not in [span.role for span in made.spans]


def test_a_template_that_refuses_short_conversations_still_gives_spans() -> None:
    strict = "{% if messages | length < 3 %}{{ raise_exception('too short') }}{% endif %}" + PLAIN
    made = export_text(TALK, strict)
    assert made.prefix_kept is True
    assert [span.message for span in made.spans] == [3, 4]
    assert len(made.losses) == 2


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.__class__.__mro__ }}",
        "{% for m in messages %}",
        "{{ 1 / 0 }}",
        "{{ messages.append(1) }}",
        "{{ raise_exception('private') }}",
    ],
)
def test_a_template_that_fails_or_reaches_out_is_an_error_without_the_conversation(template: str) -> None:
    with pytest.raises(FormatError) as raised:
        export_text(TALK, template)
    assert "private" not in str(raised.value)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "steps"),
        ("{% macro a(n) %}{% if n %}{{ a(n - 1) }}{{ a(n - 1) }}{% endif %}{% endmacro %}{{ a(60) }}", "steps"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "RecursionError"),
        ("{{ 'x' * 10 ** 10 }}", "characters"),
        ("{{ [1] * 10 ** 10 }}", "items"),
        ("{% for a in range(9999) %}{{ 'x' * 9999 }}{% endfor %}", "characters"),
        ("{% set n = namespace(x='xx') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "characters"),
        ("{% set n = namespace(x='xx') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", "characters"),
        ("{{ 9 ** 9999 }}", "exponent"),
        ("{{ '\\ud800' }}", "JSONPolicyError"),
    ],
)
def test_a_template_stays_within_bounds(monkeypatch: pytest.MonkeyPatch, template: str, said: str) -> None:
    monkeypatch.setattr(templates, "MAX_STEPS", 20_000)
    with pytest.raises(FormatError, match=said):
        export_text(TALK, template)


def test_templates_have_what_hugging_face_gives_them() -> None:
    template = """{% for message in messages %}{% generation %}{{ message.content ~ 1 }}{% endgeneration %}
    {{- message | tojson(separators=(",", ":"), sort_keys=true) }}{% endfor %}"""
    made = export_text([Message(role="user", blocks=[TextBlock(text="hi")])], template, add_generation_prompt=False)
    assert made.text == 'hi1{"content":"hi","role":"user"}'


def test_what_is_left_out_is_found_where_the_same_words_stand_elsewhere() -> None:
    def say(role: Any, text: str) -> Message:
        return Message(role=role, blocks=[TextBlock(text=text)])

    talk = [say("user", "a"), say("assistant", "a"), say("user", "a")]
    skipping = "{% for message in messages if message.role == 'user' %}<{{ message.content }}>{% endfor %}"
    assert export_text(talk, skipping).losses == ("content of chat message 1 (assistant) is not in the text",)
    nameless = PLAIN.replace("{{ call.function.arguments | tojson }}", "")
    assert export_text(TALK, nameless, tools=[BOARD]).losses == (
        "the arguments of a tool call of chat message 2 are not in the text",
    )
    assert export_text(TALK, PLAIN.replace("{{ tools | tojson }}", "board"), tools=[BOARD]).losses == (
        "the tools are not in the text",
    )


def test_images_are_refused_in_text_and_kept_in_items() -> None:
    talk = [Message(role="user", blocks=[TextBlock(text="What?"), ImageBlock(data=PIXEL, mimeType="image/png")])]
    with pytest.raises(FormatError, match=r"messages\[0\]\.blocks\[1\]"):
        export_text(talk, PLAIN)
    made = export_responses(talk, [BOARD])
    assert made["input"][0]["content"][1]["type"] == "input_image"
    assert made["tools"][0]["name"] == "board"
