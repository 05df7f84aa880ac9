"""The schema of a request: fields, checked at the door and in the order in which they are asked.

Whatever cannot be meant is refused with its path (`schema.total.minimum`): unknown keys, keys that do not go together,
names that no field has, cycles, bounds that nothing lies between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from unicodedata import category

from pollux_like import canonical
from pollux_like.typed import patterns, reading
from pollux_like.typed.rules import Rule, Values, check, read_match, read_rules

TYPES = ("string", "int", "float", "bool", "enum", "date", "list", "call")
MAX_FIELDS = 64
MAX_OPTIONS = 256
MAX_ITEMS = 32
DEFAULT_ITEMS = 8
MAX_FIELD_TOKENS = 1024
DEFAULT_FREE_TOKENS = 160

_EXPRESSIBLE = {
    "int": (-(10**18) + 1, 10**18 - 1),
    "float": (-999_999_999_999_999.9, 999_999_999_999_999.9),
    "date": ("1000-01-01", "2999-12-31"),
}
"""What a model can write for a value that is not copied; see the shapes in `decoding`."""

_FORMS = {"int": ("number", "id", "phone"), "float": ("number", "id"), "date": ("date",)}
"""Formats whose texts can stand for a value of the type."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_COMMON = frozenset({"type", "description", "nullable", "depends_on", "on", "authority", "claims"})
_EXTRACT = frozenset({"extract", "pattern", "format"})
_KEYS = {
    "string": _COMMON | _EXTRACT | {"free_form", "match", "max_tokens"},
    "int": _COMMON | _EXTRACT | {"minimum", "maximum"},
    "float": _COMMON | _EXTRACT | {"minimum", "maximum"},
    "bool": _COMMON,
    "enum": _COMMON | {"options"},
    "date": _COMMON | _EXTRACT | {"minimum", "maximum"},
    "list": _COMMON | {"items", "max_items"},
    "call": (_COMMON | {"call"}) - {"authority"},
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field as it was declared. `minimum` and `maximum` are numbers, or dates in ISO form."""

    name: str
    type: str
    description: str = ""
    nullable: bool = False
    extract: bool = False
    free_form: bool = False
    pattern: str | None = None
    format: str | None = None
    options: tuple[str, ...] = ()
    minimum: Any = None
    maximum: Any = None
    items: Field | None = None
    max_items: int = DEFAULT_ITEMS
    max_tokens: int = DEFAULT_FREE_TOKENS
    depends_on: tuple[str, ...] = ()
    call: str | None = None
    fact: bool = False
    claims: str | None = None
    rules: tuple[Rule, ...] = ()
    declared: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the declaration."""
        return canonical.sha256(canonical.canonical([self.name, dict(self.declared)]))


def read_schema(schema: object) -> tuple[Field, ...]:
    """Fields in the order in which they are asked: declared order, each after those it depends on.

    Raises SchemaError.
    """
    given = reading.mapping(schema, "schema")
    if not 1 <= len(given) <= MAX_FIELDS:
        raise reading.bad("schema", f"has {len(given)} fields", f"Give 1 to {MAX_FIELDS}")
    fields = {name: _field(name, spec, f"schema.{name}") for name, spec in given.items()}
    for one in fields.values():
        for other in (*one.depends_on, *((one.claims,) if one.claims is not None else ())):
            if other not in fields:
                raise reading.bad(
                    f"schema.{one.name}", f"names {other!r}, which is no field", "Name a field of the schema"
                )
        if one.claims is not None and not (fields[one.claims].fact or fields[one.claims].type == "call"):
            raise reading.bad(
                f"schema.{one.name}.claims",
                f"names {one.claims!r}, which is no fact",
                'Declare that field with "authority": "fact" or as type call',
            )
        for other in one.depends_on if one.fact else ():
            if not (fields[other].fact or fields[other].type == "call"):
                raise reading.bad(
                    f"schema.{one.name}.depends_on",
                    f"leads the chat to a fact, by {other!r}",
                    "Let it depend on facts and calls, or ask the system of record by a call",
                )
    return _ordered(fields)


def _ordered(fields: dict[str, Field]) -> tuple[Field, ...]:
    done: dict[str, Field] = {}
    left = dict(fields)
    while left:
        ready = [one for one in left.values() if all(name in done for name in _before(one))]
        if not ready:
            names = ", ".join(sorted(left))
            raise reading.bad("schema", f"has a cycle in depends_on ({names})", "Break it: a value needs an order")
        first = ready[0]
        done[first.name] = left.pop(first.name)
    return tuple(done.values())


def _before(one: Field) -> tuple[str, ...]:
    return (*one.depends_on, *((one.claims,) if one.claims is not None else ()))


def _field(name: str, spec: object, path: str, *, item: bool = False) -> Field:
    if not _NAME.fullmatch(name):
        raise reading.bad("schema", "has a field whose name is no identifier", "Use letters, digits and _, at most 64")
    given = reading.mapping(spec, path)
    kind = given.get("type")
    if kind not in TYPES:
        raise reading.bad(f"{path}.type", "is missing or unknown", f"Use one of: {', '.join(TYPES)}")
    allowed = _KEYS[kind] - {"depends_on", "on", "authority", "claims"} if item else _KEYS[kind]
    for key in given:
        if key not in allowed:
            raise reading.bad(
                f"{path}.{key}", f"is no key of a field of type {kind}", f"Use {', '.join(sorted(allowed))}"
            )
    minimum, maximum = _bounds(given, kind, path)
    made = Field(
        name=name,
        type=kind,
        description=reading.text(given, "description", path),
        nullable=reading.flag(given, "nullable", path),
        extract=reading.flag(given, "extract", path),
        free_form=reading.flag(given, "free_form", path),
        pattern=reading.pattern(given.get("pattern"), f"{path}.pattern"),
        format=reading.one_of(given.get("format"), f"{path}.format", patterns.FORMATS),
        options=_options(given.get("options"), f"{path}.options") if kind == "enum" else (),
        minimum=minimum,
        maximum=maximum,
        items=_items(given, name, path) if kind == "list" else None,
        max_items=reading.whole(given, "max_items", path, DEFAULT_ITEMS, MAX_ITEMS),
        max_tokens=reading.whole(given, "max_tokens", path, DEFAULT_FREE_TOKENS, MAX_FIELD_TOKENS),
        depends_on=_names(given.get("depends_on"), f"{path}.depends_on"),
        call=reading.call_name(given.get("call"), f"{path}.call") if kind == "call" else None,
        fact=reading.one_of(given.get("authority"), f"{path}.authority", ("claim", "fact")) == "fact",
        claims=_maybe_name(given.get("claims"), f"{path}.claims"),
        rules=(*read_rules(given.get("on"), f"{path}.on"), *read_match(given.get("match"), f"{path}.match")),
        declared=given,
    )
    _agrees(made, path)
    return made


def _agrees(made: Field, path: str) -> None:
    if made.extract and made.free_form:
        raise reading.bad(path, "is both extract and free_form", "A value is copied or written, not both")
    if not made.extract and (made.pattern is not None or made.format is not None):
        raise reading.bad(path, "has a pattern or format but not extract", 'Set "extract": true, or use a match rule')
    if made.format is not None and made.format not in _FORMS.get(made.type, patterns.FORMATS):
        raise reading.bad(f"{path}.format", f"fits no {made.type}", f"Use {', '.join(_FORMS[made.type])}")
    least, most = _EXPRESSIBLE.get(made.type, (None, None))
    beyond = (made.minimum is not None and made.minimum > most) or (made.maximum is not None and made.maximum < least)
    if beyond and not made.extract:
        raise reading.bad(path, "has bounds that the model can write no value in", f"Use {least} to {most}, or extract")
    if made.pattern is not None and made.format is not None:
        raise reading.bad(path, "has a pattern and a format", "Keep one of them")
    if made.type == "call" and made.nullable:
        raise reading.bad(f"{path}.nullable", "says nothing for a call", "The system of record may answer null")
    if made.fact and made.free_form:
        raise reading.bad(f"{path}.authority", "makes a fact of free text", "Facts are copied from system, or called")
    free = made.type == "string" and not made.extract
    on = tuple(rule for rule in made.rules if rule.name.startswith("on"))
    check(on, Values(made.type, made.items.type if made.items else None, made.options, not free), path)


def _items(given: Mapping[str, Any], name: str, path: str) -> Field:
    items = _field(name, given.get("items"), f"{path}.items", item=True)
    if items.type in ("list", "call", "bool") or items.free_form or (items.type == "string" and not items.extract):
        raise reading.bad(f"{path}.items", "cannot be listed", "Use items of type enum, int, float or date, or extract")
    if "none" in items.options:
        raise reading.bad(f"{path}.items.options", "holds none, the word that ends a list", "Use another word")
    if items.nullable:
        raise reading.bad(f"{path}.items.nullable", "says nothing in a list", "An absent item is left out")
    return items


def _options(value: object, path: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not 1 <= len(cast("list[Any]", value)) <= MAX_OPTIONS:
        raise reading.bad(path, "is no list of options", f"Give 1 to {MAX_OPTIONS} strings")
    options = tuple(cast("list[Any]", value))
    for index, option in enumerate(options):
        if not isinstance(option, str) or not option.strip() or option != option.strip() or not _one_line(option):
            raise reading.bad(f"{path}[{index}]", "is no option", "Give one line of text, without blanks around it")
        if len(option) > reading.MAX_TEXT_CHARS or option == "null":
            raise reading.bad(f"{path}[{index}]", "is too long, or the word null", 'Shorten it; "nullable" adds null')
    if len(set(options)) != len(options):
        raise reading.bad(path, "names an option twice", "Name each once")
    return options


def _one_line(text: str) -> bool:
    return all(category(c) not in ("Cc", "Zl", "Zp") for c in text)


def _bounds(given: Mapping[str, Any], kind: str, path: str) -> tuple[Any, Any]:
    found: list[Any] = []
    for key in ("minimum", "maximum"):
        value = given.get(key)
        if value is None:
            found.append(None)
        elif kind == "date":
            found.append(_date(value, f"{path}.{key}"))
        elif isinstance(value, bool) or not isinstance(value, int if kind == "int" else (int, float)):
            raise reading.bad(f"{path}.{key}", f"is no {kind}", f"Give a number of type {kind}")
        else:
            found.append(value)
    least, most = found
    if least is not None and most is not None and least > most:
        raise reading.bad(path, "has a minimum above its maximum", "No value fits: correct the bounds")
    return least, most


def _date(value: object, path: str) -> str:
    if not isinstance(value, str) or not reading.is_day(value):
        raise reading.bad(path, "is no date", "Write it as YYYY-MM-DD")
    return value


def _names(value: object, path: str) -> tuple[str, ...]:
    names = reading.items(value, path)
    if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise reading.bad(path, "is no list of names", "Name each field once")
    return tuple(names)


def _maybe_name(value: object, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise reading.bad(path, "is no name", "Name a field")
