"""Export: the same task for harnesses that take items, and for those that take text."""

from __future__ import annotations

import pytest
from environment_support import CONVERSATION, PIXEL

from pollux_like.environments import ImageBlock, Message, TextBlock, ToolSpec, export_responses, export_text
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


def test_images_are_refused_in_text_and_kept_in_items() -> None:
    talk = [Message(role="user", blocks=[TextBlock(text="What?"), ImageBlock(data=PIXEL, mimeType="image/png")])]
    with pytest.raises(FormatError, match=r"messages\[0\]\.blocks\[1\]"):
        export_text(talk, PLAIN)
    made = export_responses(talk, [BOARD])
    assert made["input"][0]["content"][1]["type"] == "input_image"
    assert made["tools"][0]["name"] == "board"
