"""JSON policy: what JSON we accept, how we write it, and how its text is cut without changing a byte.

Two forms of text are made here. `dumps` writes what is sent and saved: compact, key order kept, UTF-8. `canonical`
writes what is hashed into identities: RFC 8785. Text that a provider sent is never rewritten: `members` and
`elements` cut it into slices and `minify` removes the white space between tokens, so every token stays as it came.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection
from itertools import accumulate
from typing import Any, cast

MAX_DEPTH = 100
"""Deepest nesting of arrays and objects that is accepted in any JSON value. Far above any real tool schema or call."""

_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'  # possessive: a way back would cost a hundred bytes for each character
_TOKENS = re.compile(_STRING + r'|[^ \t\n\r"]+', re.DOTALL)
_STRINGS = re.compile(_STRING, re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


def _spaced(pattern: str) -> re.Pattern[str]:
    """A pattern in which ~ stands for the white space that JSON allows between tokens."""
    return re.compile(pattern.replace("~", r"[ \t\n\r]*+"))


_ARRAY, _NO_ELEMENT = _spaced(r"~\[~(?!\])"), _spaced(r"~\[~\]")
_COMMA, _COLON = _spaced("~,~"), _spaced("~:~")
_ARRAY_END, _OBJECT_END = _spaced(r"~\]"), _spaced(r"~\}~")
_FIRST, _MORE = (_spaced(rf'~{mark}~"((?:[^"\\\x00-\x1f]|\\.)*+)"~:~') for mark in (r"\{", ","))
_NO_MEMBER = _spaced(r"~\{~\}~")


class JSONPolicyError(ValueError):
    """A value or a text outside the policy; the message says what and where, and quotes no content."""


def check_value(value: object, *, path: str = "value") -> None:
    """Refuse what JSON cannot carry exactly: other types, NaN, infinities, lone surrogates, cycles, over-deep nesting.

    Walks without recursion. Raises JSONPolicyError naming the path.
    """
    stack: list[tuple[object, str, int]] = [(value, path, 0)]
    while stack:
        node, where, depth = stack.pop()
        if node is None or isinstance(node, bool):
            continue
        if isinstance(node, str):
            check_text(node, path=where)
        elif isinstance(node, int):
            if node.bit_length() > 4096:  # int/str conversion beyond 4300 digits raises in CPython
                raise JSONPolicyError(f"{where} is an integer of more than 4,096 bits")
        elif isinstance(node, float):
            if not math.isfinite(node):
                raise JSONPolicyError(f"{where} is {node!r}, which JSON does not have")
        elif isinstance(node, (list, tuple, dict)):
            if depth >= MAX_DEPTH:
                raise JSONPolicyError(f"{path} is nested deeper than {MAX_DEPTH} levels, or contains itself")
            if isinstance(node, dict):
                for key, child in cast("dict[object, object]", node).items():
                    if not isinstance(key, str):
                        raise JSONPolicyError(f"{where} has a key of type {type(key).__name__}, not str")
                    check_text(key, path=f"a key of {where}")
                    stack.append((child, f"{where}.{key}", depth + 1))
            else:
                stack.extend((child, f"{where}[{i}]", depth + 1) for i, child in enumerate(cast("list[object]", node)))
        else:
            raise JSONPolicyError(f"{where} is of type {type(node).__name__}, which JSON does not have")


def check_text(text: str, *, path: str = "text") -> None:
    """Refuse a lone surrogate: it has no UTF-8 form, and one poisons every later request of a conversation."""
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise JSONPolicyError(f"{path} has a lone surrogate at character {error.start}") from None


def repair_text(text: str) -> str:
    """Join surrogate halves that arrived apart; a half without its other half becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def dumps(value: object) -> str:
    """Compact JSON with key order kept and non-ASCII text as it is. The value must have passed `check_value`."""
    return _encoder.encode(value)


def dumps_received(value: object) -> str:
    """JSON text of a value that a provider sent and that had to be changed: a lone surrogate in it stays an escape."""
    text = dumps(value)
    try:
        check_text(text)
    except JSONPolicyError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text


def _refuse_constant(word: str) -> float:
    raise JSONPolicyError(f"the text holds {word}, which JSON does not have")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JSONPolicyError("a number is too large for a float")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise JSONPolicyError("an object names one key twice")
    return result


_strict = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique)
_plain = json.JSONDecoder(parse_constant=_refuse_constant)
_scan = cast("Callable[[str, int], tuple[Any, int]]", _plain.scan_once)  # type: ignore[attr-defined]  # of every CPython
"""The C scanner: (text, where a value begins) to (the value, where it ends). Raises StopIteration for no value."""


def loads(text: str, *, unique_keys: bool = False) -> Any:
    """Parse JSON under the policy. Raises JSONPolicyError for everything that is not it, over-deep nesting included."""
    try:
        value = (_strict if unique_keys else _plain).decode(text)
        check_depth(text)
        if "\\ud" in text or "\\uD" in text:  # the only way for a surrogate into parsed text
            check_value(value)
    except JSONPolicyError:
        raise
    except RecursionError:
        raise JSONPolicyError(f"the text is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise JSONPolicyError(f"the text is not valid JSON{where}") from None
    return value


def check_depth(text: str, most: int = MAX_DEPTH) -> None:
    """Refuse JSON text that nests deeper than `most`. The text must be valid JSON."""
    if text.count("[") + text.count("{") <= most:
        return
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKETS.findall(_STRINGS.sub("", text)))
    if max(accumulate(steps), default=0) > most:
        raise JSONPolicyError(f"the text is nested deeper than {most} levels")


def minify(text: str) -> str:
    """Remove white space between the tokens of JSON text. Strings and numbers keep their exact spelling."""
    return "".join(_TOKENS.findall(text))


def members(text: str) -> dict[str, str]:
    """Cut the text of one JSON object into `{key: text of the value}`, each value exactly as it stands.

    Values are scanned by the C parser, so the cut is linear. Raises JSONPolicyError where the text is no object.
    """
    return {key: text[start:end] for key, start, end in _places(text)}


def _places(text: str) -> list[tuple[str, int, int]]:
    """Each member of an object: its key, and where its value begins and ends."""
    found: list[tuple[str, int, int]] = []
    end = 0
    try:
        step = _FIRST.match(text)
        while step is not None:
            key: str = step[1]
            end = _scan(text, step.end())[1]
            found.append((json.loads(f'"{key}"') if "\\" in key else key, step.end(), end))
            step = _MORE.match(text, end)
        if not (_OBJECT_END if found else _NO_MEMBER).fullmatch(text, end):
            raise ValueError
    except (ValueError, RecursionError, StopIteration):
        raise JSONPolicyError("the text is not a valid JSON object") from None
    return found


def member(text: str, name: str) -> str:
    """The text of one member of a JSON object, as `members` gives it. Raises KeyError where there is none."""
    key = f'"{name}"'  # inside of a string its quotes were escaped: what is found is a whole key or a whole string
    at = text.find(key)
    colon = _COLON.match(text, at + len(key)) if at > 0 and text.find(key, at + 1) < 0 else None
    if colon is not None:
        try:
            _plain.decode(text[:at].rstrip(", \t\n\r") + "}")  # fails where the key is one of a deeper object
            return text[colon.end() : _scan(text, colon.end())[1]]
        except (ValueError, RecursionError, StopIteration):
            pass
    return members(text)[name]


def elements(text: str) -> tuple[str, ...]:
    """Cut the text of one JSON array into the texts of its elements, each minified but otherwise as it stands.

    Raises JSONPolicyError where the text is no array.
    """
    found, end = _slices(text, 0)
    if text[end:].strip(" \t\n\r"):
        raise JSONPolicyError("the text is not a valid JSON array")
    return tuple(map(minify, found))


def _slices(text: str, at: int) -> tuple[list[str], int]:
    """The texts of the elements of the array that begins there, as they stand, and where it ends."""
    found: list[str] = []
    try:
        step = _ARRAY.match(text, at)
        while step is not None:
            at = step.end()
            end = _scan(text, at)[1]
            found.append(text[at:end])
            at = end
            step = _COMMA.match(text, at)
        closing = (_ARRAY_END if found else _NO_ELEMENT).match(text, at)
        if closing is None:
            raise ValueError
    except (ValueError, RecursionError, StopIteration):
        raise JSONPolicyError("the text is not a valid JSON array") from None
    return found, closing.end()


def canonical(value: object) -> str:
    """RFC 8785 text of a value that passed `check_value`: keys sorted by UTF-16, numbers as ECMAScript writes them.

    Integers beyond 2^53 keep all their digits (RFC 8785 would round them): two identities that differ must not meet.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return _encoder.encode(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        ordered = sorted(cast("dict[str, object]", value).items(), key=lambda pair: pair[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_encoder.encode(key)}:{canonical(child)}" for key, child in ordered) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(canonical(child) for child in cast("list[object]", value)) + "]"
    raise JSONPolicyError(f"a value of type {type(value).__name__} has no JSON form")


def _number(value: float) -> str:
    """ECMAScript Number::toString (RFC 8785 section 3.2.2.3): shortest digits, exponent from 1e21 and below 1e-6."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if 0 < point <= 21:
        body = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        body = "0." + "0" * -point + digits
    else:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        body = f"{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + body


def splice(head: dict[str, Any], key: str, items: list[str], tail: dict[str, Any] | None = None) -> str:
    """JSON object text: the members of `head`, then `key` with an array of ready-made item texts, then `tail`."""
    opening = dumps(head)[:-1] + ("," if head else "")
    closing = "," + dumps(tail)[1:] if tail else "}"
    parts = [opening, '"', key, '":[']
    for index, item in enumerate(items):
        parts.extend((",", item) if index else (item,))
    return "".join((*parts, "]", closing))  # one copy of items that may be megabytes


def unspliced(text: str, key: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Back from `splice` without a tail: the head, and the texts of the items as they stand.

    Raises JSONPolicyError where the text is not what `splice` wrote.
    """
    at = text.find(f'"{key}":[')
    head = _head(text, at)
    if head is None:  # a value of the head has a member of that name
        at = next((start for name, start, _ in _places(text) if name == key), -1) - len(key) - 3
        head = _head(text, at)
    if head is None or key in head:
        raise JSONPolicyError(f"the text has no array {key!r}")
    items, end = _slices(text, at + len(key) + 3)
    if text[end:] != "}":
        raise JSONPolicyError(f"the array {key!r} is not the end of the text")
    return head, tuple(items)


def _head(text: str, at: int) -> dict[str, Any] | None:
    """What stands before a key of the outermost object, as an object; None where it is none."""
    if at < 1 or text[at - 1] != ("{" if at == 1 else ","):
        return None
    try:
        head: dict[str, Any] = loads("{}" if at == 1 else text[: at - 1] + "}", unique_keys=True)
    except JSONPolicyError:
        return None
    return head


def picked(text: str, names: Collection[str]) -> str:
    """The text of a JSON object with only the members of these names, each to the letter."""
    kept = (f"{dumps(name)}:{value}" for name, value in members(text).items() if name in names)
    return f"{{{','.join(kept)}}}"


def sha256(text: str | bytes) -> str:
    """Lower-case hexadecimal SHA-256, 64 characters."""
    return hashlib.sha256(text.encode("utf-8") if isinstance(text, str) else text).hexdigest()
