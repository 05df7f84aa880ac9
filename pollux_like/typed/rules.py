"""Rules of a field, `on` and `match`: read from the schema, and applied in code to the value, never by the model.

Numbers are compared as numbers, dates and other text as text (ISO dates sort so). A test that does not fit the value,
such as `lt` on null, does not hold. `matches` has to match the whole text, and runs with a bound on time; one that
does not finish counts as met, so that a value is reviewed rather than let through. So does a bound above a confidence
that nobody knows. A test that can hold for no value of its field is refused: it would guard nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pollux_like.typed import patterns, reading

ACTIONS = ("review", "reject", "null", "call")
TESTS = ("eq", "ne", "lt", "gt", "in", "matches", "confidence")
MAX_RULES = 16
"""Of one field, `on` and `match` apart."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One `on` rule: `tests` are (word, operand) and all must hold. `call` names what `do: call` asks."""

    tests: tuple[tuple[str, Any], ...]
    do: str
    call: str | None = None
    name: str = ""


def read_rules(value: object, path: str) -> tuple[Rule, ...]:
    return tuple(_rule(rule, f"{path}[{index}]") for index, rule in enumerate(_few(value, path)))


def _few(value: object, path: str) -> list[Any]:
    found = reading.items(value, path)
    if len(found) > MAX_RULES:
        raise reading.bad(path, f"has {len(found)} rules", f"Give at most {MAX_RULES}")
    return found


def _rule(value: object, path: str) -> Rule:
    given = reading.mapping(value, path)
    when = reading.mapping(given.get("when"), f"{path}.when")
    if set(given) - {"when", "do", "call"} or not when or set(when) - set(TESTS):
        raise reading.bad(path, "is no rule", f'Write {{"when": {{…}}, "do": …}}; tests are {", ".join(TESTS)}')
    for word, operand in when.items():
        _operand(word, operand, f"{path}.when.{word}")
    do = reading.one_of(given.get("do"), f"{path}.do", ACTIONS)
    if do is None or (do == "call") != ("call" in given):
        raise reading.bad(f"{path}.do", "is missing, or stands without its call", f"Use one of: {', '.join(ACTIONS)}")
    call = reading.call_name(given["call"], f"{path}.call") if do == "call" else None
    return Rule(tuple(when.items()), do, call, path.rsplit(".", 1)[-1])


def _operand(word: str, operand: object, path: str) -> None:
    if word == "matches":
        reading.pattern(operand, path)
    elif word == "in":
        if not reading.items(operand, path):
            raise reading.bad(path, "names no values", "Give a list of the values that are meant")
    elif word == "confidence":
        bounds = reading.mapping(operand, path)
        if not bounds or set(bounds) - {"lt", "gt"}:
            raise reading.bad(path, "is no bound of confidence", 'Write {"lt": 0.8} or {"gt": 0.2}')
        for key, bound in bounds.items():
            if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not 0 <= bound <= 1:
                raise reading.bad(f"{path}.{key}", "is no probability", "Use a number between 0 and 1")
    elif word in ("lt", "gt") and (isinstance(operand, bool) or not isinstance(operand, (int, float, str))):
        raise reading.bad(path, "cannot be compared with", "Give a number, or a date as text")


def read_match(value: object, path: str) -> tuple[Rule, ...]:
    given: object = [cast("object", value)] if isinstance(value, Mapping) else value
    found: list[Rule] = []
    for index, rule in enumerate(_few(given, path)):
        one = reading.mapping(rule, f"{path}[{index}]")
        pattern = reading.pattern(one.get("pattern"), f"{path}[{index}].pattern")
        do = reading.one_of(one.get("do"), f"{path}[{index}].do", ("review", "reject", "null"))
        if set(one) != {"pattern", "do"} or pattern is None or do is None:
            raise reading.bad(f"{path}[{index}]", "is no match rule", 'Write {"pattern": …, "do": "review"}')
        found.append(Rule((("matches", pattern),), do, None, f"match[{index}]"))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Values:
    """What a field's values can be, for its rules: the type, that of a list's items, options, and whether the model's
    probabilities are known (those of free text are not)."""

    type: str
    items: str | None = None
    options: tuple[str, ...] = ()
    scored: bool = True


def check(rules: tuple[Rule, ...], values: Values, path: str) -> None:
    """Refuse a test that no value of the field meets. After `do: call` the value is the record's, of any type."""
    for rule in rules:
        for word, operand in rule.tests:
            if not _meant(word, operand, values):
                raise reading.bad(
                    f"{path}.{rule.name}.when.{word}",
                    f"can hold for no {values.type} of this field",
                    "Test for what the field can be: its options, its type",
                )
        if rule.do == "call":
            return


def _meant(word: str, operand: Any, values: Values) -> bool:
    match word:
        case "confidence":
            return values.scored and values.type != "call"
        case "eq" | "ne":
            return operand is None or _can_be(operand, values)
        case "in":
            return all(one is None or _can_be(one, values) for one in operand)
        case "lt" | "gt":
            return values.type not in ("bool", "list") and _can_be(operand, replace(values, options=()))
        case _:
            return (values.items or values.type) in ("string", "enum", "date", "call")


def _can_be(operand: Any, values: Values) -> bool:
    match values.type:
        case "call":
            return True
        case "bool":
            return isinstance(operand, bool)
        case "int" | "float":
            return isinstance(operand, (int, float)) and not isinstance(operand, bool)
        case "list":
            return isinstance(operand, list)
        case "date":
            return isinstance(operand, str) and reading.is_day(operand)
        case _:
            return isinstance(operand, str) and (not values.options or operand in values.options)


def holds(rule: Rule, value: Any, confidence: float | None) -> bool:
    """Whether every test of the rule holds for the value."""
    return all(_holds(word, operand, value, confidence) for word, operand in rule.tests)


def _holds(word: str, operand: Any, value: Any, confidence: float | None) -> bool:
    match word:
        case "eq":
            return same(value, operand)
        case "ne":
            return not same(value, operand)
        case "in":
            return any(same(value, one) for one in operand)
        case "lt" | "gt":
            return _compares(word, value, operand)
        case "matches":
            return _matches(operand, value)
        case _ if confidence is None:
            return value is not None and "lt" in operand
        case _:
            return all(_compares(key, confidence, bound) for key, bound in operand.items())


def same(value: Any, operand: Any) -> bool:
    """Whether both are equal as JSON: true is not 1."""
    if isinstance(value, list) and isinstance(operand, list):
        pairs = zip(cast("list[Any]", value), cast("list[Any]", operand), strict=False)
        return len(value) == len(operand) and all(same(one, other) for one, other in pairs)  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, bool) == isinstance(operand, bool) and bool(value == operand)


def _compares(word: str, value: Any, operand: Any) -> bool:
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (value, operand))
    if not numbers and not (isinstance(value, str) and isinstance(operand, str)):
        return False
    return bool(value < operand if word == "lt" else value > operand)


def _matches(pattern: str, value: Any) -> bool:
    texts = cast("list[Any]", value) if isinstance(value, list) else [value]
    until = patterns.deadline()
    try:
        return any(isinstance(text, str) and patterns.matches(pattern, text, until) for text in texts)
    except patterns.PatternTimeout:
        return True
