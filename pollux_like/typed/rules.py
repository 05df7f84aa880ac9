"""Rules of a field, `on` and `match`: read from the schema, and applied in code to the value, never by the model.

Numbers are compared as numbers, dates and other text as text (ISO dates sort so). A test that does not fit the value,
such as `lt` on null, does not hold. `matches` has to match the whole text, and runs with a bound on time; one that
does not finish counts as met, so that a value is reviewed rather than let through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pollux_like.typed import patterns, reading

ACTIONS = ("review", "reject", "null", "call")
TESTS = ("eq", "ne", "lt", "gt", "in", "matches", "confidence")


@dataclass(frozen=True, slots=True)
class Rule:
    """One `on` rule: `tests` are (word, operand) and all must hold. `call` names what `do: call` asks."""

    tests: tuple[tuple[str, Any], ...]
    do: str
    call: str | None = None
    name: str = ""


def read_rules(value: object, path: str) -> tuple[Rule, ...]:
    return tuple(_rule(rule, f"{path}[{index}]") for index, rule in enumerate(reading.items(value, path)))


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
        reading.items(operand, path)
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
    for index, rule in enumerate(reading.items(given, path)):
        one = reading.mapping(rule, f"{path}[{index}]")
        pattern = reading.pattern(one.get("pattern"), f"{path}[{index}].pattern")
        do = reading.one_of(one.get("do"), f"{path}[{index}].do", ("review", "reject", "null"))
        if set(one) != {"pattern", "do"} or pattern is None or do is None:
            raise reading.bad(f"{path}[{index}]", "is no match rule", 'Write {"pattern": …, "do": "review"}')
        found.append(Rule((("matches", pattern),), do, None, f"match[{index}]"))
    return tuple(found)


def holds(rule: Rule, value: Any, confidence: float | None) -> bool:
    """Whether every test of the rule holds for the value."""
    return all(_holds(word, operand, value, confidence) for word, operand in rule.tests)


def _holds(word: str, operand: Any, value: Any, confidence: float | None) -> bool:
    match word:
        case "eq":
            return _same(value, operand)
        case "ne":
            return not _same(value, operand)
        case "in":
            return any(_same(value, one) for one in operand)
        case "lt" | "gt":
            return _compares(word, value, operand)
        case "matches":
            return _matches(operand, value)
        case _:
            return confidence is not None and all(_compares(key, confidence, bound) for key, bound in operand.items())


def _same(value: Any, operand: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(value, bool) == isinstance(operand, bool) and bool(value == operand)


def _compares(word: str, value: Any, operand: Any) -> bool:
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (value, operand))
    if not numbers and not (isinstance(value, str) and isinstance(operand, str)):
        return False
    return bool(value < operand if word == "lt" else value > operand)


def _matches(pattern: str, value: Any) -> bool:
    texts = cast("list[Any]", value) if isinstance(value, list) else [value]
    try:
        return any(isinstance(text, str) and patterns.matches(pattern, text) for text in texts)
    except patterns.PatternTimeout:
        return True
