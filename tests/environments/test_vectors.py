"""The answers of the OpenReward SDK 0.1.167 to our own conversations, format by format.

What it emits is the target where the provider's types take it and no rule is broken; elsewhere we raise. Where we differ
on purpose, `differences.json` says why, and each of its entries must really differ.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pollux_like.conversation import FORMATS, Message, convert, decode_messages, flatten
from pollux_like.errors import FormatError

HERE = Path(__file__).parent
MESSAGES = TypeAdapter(list[Message])
DIFFERENCES = {
    (entry["name"], form, entry.get("via", "session.get_messages")): entry
    for entry in json.loads((HERE / "differences.json").read_text("utf-8"))
    for form in entry["formats"]
}


@pytest.fixture(scope="module")
def vectors() -> list[dict[str, Any]]:
    """The recorded answers."""
    file = Path(os.environ.get("POLLUX_LIKE_VECTORS", "../shared/vectors")) / "openreward-messages.json"
    if not file.is_file():
        pytest.skip("no vectors here; set POLLUX_LIKE_VECTORS to their folder")
    return json.loads(file.read_text("utf-8"))


def built(value: Any) -> list[Message]:
    """As an environment builds it."""
    return MESSAGES.validate_python(value)


def outcome(vector: dict[str, Any]) -> Any:
    """What we make of the input: the output, or the error."""
    form, value = vector["format"], vector["input"]
    try:
        if form == "validate":
            return Message.model_validate(value).model_dump()
        decoded = vector["via"].startswith("client decode")
        messages = decode_messages(value).messages if decoded else built(value)
        if form in ("wire", "none"):
            return [message.model_dump() for message in messages]
        if form == "prompt":
            return [block.model_dump() for block in flatten(messages)]
        return convert(messages, form)
    except (ValidationError, FormatError) as error:
        return error


def expected_to_raise(vector: dict[str, Any]) -> bool:
    """The SDK refused, or emitted what the provider refuses."""
    if not vector["ok"]:
        return True
    return vector["format"] in FORMATS and not (vector["provider_schema"]["ok"] and vector["provider_rules"] == [])


def test_every_vector_is_met_or_differs_for_a_reason(vectors: list[dict[str, Any]]) -> None:
    wrong: list[str] = []
    differing: set[tuple[str, str, str]] = set()
    for vector in vectors:
        key = vector["name"], vector["format"], vector["via"]
        ours = outcome(vector)
        same = isinstance(ours, ValueError) if expected_to_raise(vector) else ours == vector["output"]
        if key in DIFFERENCES:
            entry = DIFFERENCES[key]
            assert not same, f"{key} differs no more; take it out of differences.json"
            assert isinstance(ours, ValueError) == (entry["ours"] == "raises"), key
            differing.add(key)
        elif not same:
            wrong.append(f"{key}: {ours!r:.200}")
    assert wrong == []
    assert differing == set(DIFFERENCES)
    assert len(vectors) >= 475


def test_the_flat_prompt_is_byte_identical(vectors: list[dict[str, Any]]) -> None:
    for vector in (vector for vector in vectors if vector["format"] == "prompt" and vector["ok"]):
        ours = [block.model_dump() for block in flatten(built(vector["input"]))]
        assert json.dumps(ours, sort_keys=True) == json.dumps(vector["output"], sort_keys=True), vector["name"]


def test_key_order_of_calls_survives_every_format(vectors: list[dict[str, Any]]) -> None:
    for vector in vectors:
        if vector["name"] == "args_key_order" and vector["format"] in FORMATS:
            assert json.dumps(convert(built(vector["input"]), vector["format"])) == json.dumps(vector["output"])


def test_differences_have_reasons() -> None:
    assert all(len(entry["reason"].split()) > 5 for entry in DIFFERENCES.values())


def test_what_is_emitted_for_openai_fits_its_own_types(vectors: list[dict[str, Any]]) -> None:
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputParam

    checkers = {
        "openai": TypeAdapter(list[ChatCompletionMessageParam]), "openai-responses": TypeAdapter(ResponseInputParam)
    }  # fmt: skip
    count = 0
    for vector in (vector for vector in vectors if vector["format"] == "openai" and vector["ok"]):
        for form, checker in checkers.items():
            ours = outcome({**vector, "format": form})
            if not isinstance(ours, ValueError):
                checker.validate_python(ours)
                count += 1
    assert count > 50
