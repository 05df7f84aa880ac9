"""A copied value is in the conversation, word-bounded, and its span says where: in code points and in UTF-16."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollux_like import canonical
from pollux_like.engine import Choice, Copy, Free, Shape, Step
from pollux_like.typed import ScriptedEngine, decoding, extract, typed
from pollux_like.typed.conversation import Text
from pollux_like.typed.decoding import DATE, INT, Walk, scored
from pollux_like.typed.schema import read_schema
from pollux_like.typed.values import read_date, value_of

WORDS = st.sampled_from([
    "Andi", "Pratama", "E-4021", "3201456789012345", "a@b.example", "我的保单号是", "保险", "カード", "👩‍👩‍👧", "🇮🇩🇩🇪", "❤️", "é", "naïve",
    "مرحبا", "רחוב", "ข้อมูล", "(x)", "“q”", "1,200.50", "null", "none", "...", "<|im_end|>", "ﬁ", "\u200f", "x\u0301",
])  # fmt: skip
GAPS = st.sampled_from([" ", "  ", "\n", "\r\n", "", ", ", ": ", "\t", "\u2028", " \u00a0"])
TEXTS = st.lists(st.tuples(WORDS, GAPS), min_size=1, max_size=12).map(lambda pairs: "".join(w + g for w, g in pairs))


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(0, 10**6))
def test_whatever_the_constraint_allows_is_in_the_conversation(texts: list[str], pick: int) -> None:
    sources = [Text("messages", index, "user", text) for index, text in enumerate(texts)]
    lines = extract.lines(sources)
    if not lines:
        return
    line = lines[pick % len(lines)]
    words = range(0, len(line), 2)
    start = words[pick % len(words)]
    end = words[start // 2 + (pick // 7) % (len(words) - start // 2)]
    value = "".join(line[start : end + 1])
    walk = Walk(Copy(lines))
    for byte in f" {value}".encode():
        assert walk.allows(bytes([byte]))
        walk.add(bytes([byte]))
    assert walk.complete()
    spans = extract.occurrences(value, sources)
    assert spans
    for span in spans:
        text = texts[span.message or 0]
        assert text[span.start : span.end] == value == span.text
        units = text.encode("utf-16-le")
        assert units[2 * span.start_utf16 : 2 * span.end_utf16].decode("utf-16-le") == value
    assert not {"\n", "\r", "\u2028"} & set(value)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.text(max_size=12))
def test_text_that_is_not_there_is_never_complete(texts: list[str], value: str) -> None:
    sources = [Text("messages", index, "user", text) for index, text in enumerate(texts)]
    walk = Walk(Copy(extract.lines(sources)))
    walk.add(f" {value}".encode())
    if walk.complete():
        assert extract.occurrences(value, sources)


@pytest.mark.anyio
@pytest.mark.parametrize("said", ["9999", "3201", "3201456789012345 under the", "Pratama\n", "not there", "null"])
async def test_an_engine_that_leaves_the_text_is_caught(said: str) -> None:
    schema = {"a": {"type": "string", "extract": True}}
    text = "3201456789012345 under the name Andi Pratama"
    answer = await typed([{"role": "user", "content": text}], schema, engine=ScriptedEngine({"a": said}))
    field = answer.fields["a"]
    if field.error is None:
        assert field.value in text
        assert extract.bounded(text, text.index(field.value), text.index(field.value) + len(field.value))
    else:
        assert field.error.code == "engine_error"
        assert field.value is None


@pytest.mark.anyio
async def test_no_candidate_is_an_error_of_the_field_and_the_others_answer() -> None:
    schema = {
        "a": {"type": "string", "extract": True, "pattern": "[0-9]{16}"},
        "b": {"type": "string", "extract": True, "format": "email", "nullable": True},
        "c": {"type": "string", "extract": True},
        "d": {"type": "int"},
    }
    answer = await typed(
        [{"role": "user", "content": "20 digits: 12345678901234567890"}], schema, engine=ScriptedEngine()
    )
    assert answer.fields["a"].error is not None
    assert answer.fields["a"].error.code == "no_candidate"
    assert (answer.fields["b"].value, answer.fields["b"].status, answer.fields["b"].error) == (None, "missing", None)
    assert answer.values["c"] == "20"
    assert answer.values["d"] == 0


@pytest.mark.anyio
async def test_a_pattern_without_end_is_an_error_of_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollux_like.typed.patterns.TIMEOUT_S", 0.05)
    schema = {"a": {"type": "string", "extract": True, "pattern": "(x+x+)+y|(a|aa)+$z"}, "b": {"type": "int"}}
    answer = await typed([{"role": "user", "content": "x" * 5000 + "a" * 5000}], schema, engine=ScriptedEngine())
    assert answer.fields["a"].error is not None
    assert answer.fields["a"].error.code in ("pattern_timeout", "no_candidate")
    assert answer.fields["b"].error is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"type": "date", "pattern": ".+"}, "99999999999年1月1日"), ({"type": "date", "pattern": ".+"}, "2026年13月1日"),
        ({"type": "float", "pattern": "[a-z]+"}, "nan"), ({"type": "float", "pattern": "[a-z]+"}, "infinity"),
        ({"type": "float", "pattern": "[0-9_.]+"}, "1_0.5"), ({"type": "int", "pattern": "[0-9_]+"}, "1_000"),
        ({"type": "int", "pattern": "[0-9]+"}, "9" * 60), ({"type": "float", "pattern": "[0-9e]+"}, "9e999"),
    ],
)  # fmt: skip
async def test_what_only_python_reads_as_a_value_is_no_candidate(field: dict[str, Any], text: str) -> None:
    schema = {"a": {**field, "extract": True}, "b": {"type": "int"}}
    answer = await typed([{"role": "user", "content": text}], schema, engine=ScriptedEngine())
    assert answer.fields["a"].error is not None
    assert answer.fields["a"].error.code == "no_candidate"
    assert answer.values["b"] == 0
    canonical.dumps(answer.to_jsonable())


@pytest.mark.anyio
async def test_the_last_of_many_matches_is_found() -> None:
    schema = {"a": {"type": "string", "extract": True, "pattern": "[0-9]{4}"}}
    text = "😀 1111 " * 4000 + "no, 2222"
    answer = await typed([{"role": "user", "content": text}], schema, engine=ScriptedEngine({"a": "2222"}))
    field = answer.fields["a"]
    assert (field.value, field.status) == ("2222", "corrected")
    span = field.evidence[-1]
    assert (span.start, span.start_utf16) == (len(text) - 4, len(text) - 4 + 4000), (
        "one unit more for each of the faces"
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "status", "decision"), [("1111", "conflicting", "review"), ("2222", "corrected", "accept")]
)
async def test_an_earlier_value_beside_a_later_one_is_reviewed(said: str, status: str, decision: str) -> None:
    schema = {"a": {"type": "string", "extract": True, "pattern": "[0-9]{4}"}}
    messages = [{"role": "user", "content": "It is 1111."}, {"role": "user", "content": "Sorry, 2222."}]
    field = (await typed(messages, schema, engine=ScriptedEngine({"a": said}))).fields["a"]
    assert (field.value, field.status, field.decision) == (said, status, decision)
    assert [fired.rule for fired in field.rules] == (["conflicting"] if decision == "review" else [])
    assert [span.text for span in field.evidence] == ["1111", "2222"]


@pytest.mark.anyio
async def test_a_copy_without_end_is_an_error_of_its_field() -> None:
    text = " ".join(f"word{n}" for n in range(100))
    schema = {"a": {"type": "string", "extract": True}, "b": {"type": "int"}}
    answer = await typed([{"role": "user", "content": text}], schema, engine=ScriptedEngine({"a": text}))
    assert answer.fields["a"].error is not None
    assert answer.fields["a"].error.code == "too_long"
    assert answer.fields["b"].error is None


def test_no_value_holds_a_nul() -> None:
    text = Text("messages", 0, "user", "code a\x00b \x00 4021")
    assert [one.text for one in extract.candidates("a.b|a|4021", None, [text])] == ["4021"]
    assert extract.candidates("a", None, [text]) != ()
    assert all("\x00" not in piece for line in extract.lines([text]) for piece in line)


def test_the_spans_of_one_text_are_counted_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    counted = extract.utf16

    def counting(text: str) -> int:
        nonlocal seen
        seen += len(text)
        return counted(text)

    monkeypatch.setattr(extract, "utf16", counting)
    text = "é a " * 1000
    found = extract.occurrences("a", [Text("context", None, "user", text)])
    assert len(found) == 1000
    assert seen <= 2 * len(text)


def spans(text: str, format: str) -> list[str]:
    return [one.text for one in extract.candidates(None, format, [Text("context", None, "user", text)])]


@pytest.mark.parametrize(
    ("format", "text", "found"),
    [
        ("email", "Write to andi@mail.example, or x@y.", ["andi@mail.example"]),
        ("phone", "+62 812-3456-7890 or 3201456789012345", ["+62 812-3456-7890"]),
        ("iban", "DE89 3704 0044 0532 0130 00, not DE89 3704 0044 0532 0130 01", ["DE89 3704 0044 0532 0130 00"]),
        ("number", "E-4021 costs 1,200.50 or 7", ["1,200.50", "7"]),
        ("id", "Order E-4021 (A/7-b), 我的保单号是3201", ["E-4021", "A/7-b", "3201"]),
        ("date", "2026-03-14, 14.03.2026 and March 14, 2026", ["2026-03-14", "14.03.2026", "March 14, 2026"]),
        ("url", "See https://a.example/x?y=1.", ["https://a.example/x?y=1"]),
    ],
)
def test_named_formats_find_whole_words(format: str, text: str, found: list[str]) -> None:
    assert spans(text, format) == found


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "1.200", 1200), ("int", "1,234,567", 1234567), ("int", "-5", -5), ("float", "1.200", 1.2),
        ("float", "1,200.50", 1200.5), ("float", "1.200,50", 1200.5), ("float", "12,5", 12.5), ("float", "1,200", 1200.0),
        ("float", "1'200.5", 1200.5), ("date", "14.03.2026", "2026-03-14"), ("date", "31/12/2026", "2026-12-31"),
        ("date", "12/31/2026", "2026-12-31"), ("date", "3 März 2026", "2026-03-03"), ("date", "2026年3月14日", "2026-03-14"),
    ],
)  # fmt: skip
def test_figures_are_read_as_the_page_of_formats_says(kind: str, text: str, value: Any) -> None:
    (field,) = read_schema({"a": {"type": kind}})
    assert value_of(field, text) == value


@pytest.mark.parametrize("text", ["03/04/2026", "30.02.2026", "14 Foo 2026", "2026-13-01", "1.2.26"])
def test_a_date_that_says_two_things_or_none_is_no_date(text: str) -> None:
    with pytest.raises(ValueError, match="[a-z]"):
        read_date(text)


def steps(*tokens: tuple[str, float], others: dict[int, list[tuple[str, float]]] | None = None) -> list[Step]:
    from math import log

    made = []
    for index, (text, p) in enumerate(tokens):
        rest = [(one.encode(), log(q)) for one, q in (others or {}).get(index, [])]
        made.append(Step(text.encode(), log(p), ((text.encode(), log(p)), *rest)))
    return made


def test_confidence_is_the_share_among_what_is_allowed_and_mass_what_that_had() -> None:
    choice = Choice((" yes", " no", " null"))
    found = scored(choice, steps((" yes", 0.3), ("", 1.0), others={0: [(" no", 0.1), (" maybe", 0.5)]}), masked=False)
    assert found.fits
    assert found.confidence == pytest.approx(0.75)
    assert found.mass == pytest.approx(0.4)
    assert dict(found.alternatives)["no"] == pytest.approx(0.25)
    masked = scored(choice, steps((" yes", 0.75), ("", 1.0), others={0: [(" no", 0.25)]}), masked=True)
    assert (masked.confidence, masked.mass) == (pytest.approx(0.75), None)


def test_all_ends_count_together_and_an_end_too_early_does_not_fit() -> None:
    choice = Choice((" no", " none"))
    found = scored(choice, steps((" no", 1.0), ("", 0.3), others={1: [("\n", 0.3), ("ne", 0.2)]}), masked=False)
    assert found.confidence == pytest.approx(0.75)
    assert dict(found.alternatives) == {"none": pytest.approx(0.25)}
    assert not scored(choice, steps((" n", 1.0), ("", 1.0)), masked=False).fits
    assert not scored(INT, steps((" 12", 1.0), ("x", 1.0)), masked=False).fits
    assert not scored(DATE, steps((" 2026-02", 1.0)), masked=False).fits


def test_characters_cut_over_tokens_are_walked_as_bytes() -> None:
    text = "我的 👩‍👩‍👧"
    lines = extract.lines([Text("context", None, "user", text)])
    cut = f" {text}".encode()
    made = [Step(cut[at : at + 2], -0.1, ()) for at in range(0, len(cut), 2)]
    assert scored(Copy(lines), [*made, Step(b"", -0.1, ())], masked=False).text == text


def test_free_text_has_lines_and_no_confidence() -> None:
    found = scored(Free(), [Step(b"a\n"), Step(b"\nb"), Step(b"")], masked=False)
    assert (found.text, found.confidence) == ("a\n\nb", None)
    nullable = decoding.or_words(INT, (" null",))
    assert isinstance(nullable, Shape)
    assert scored(nullable, steps((" null", 0.5), ("", 1.0)), masked=False).text == "null"
