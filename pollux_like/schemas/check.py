"""What every dialect needs of a schema, checked once when the tool or the output is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeGuard, cast

from pollux_like.canonical import MAX_DEPTH, JSONPolicyError, check_value
from pollux_like.errors import ConfigurationError
from pollux_like.schemas.values import TYPES
from pollux_like.schemas.walker import MANY, NAMED, ONE, Node, Schema, is_dict, is_list, locate, nodes, step, types_of


def _is_names(value: object) -> bool:
    return is_list(value) and all(isinstance(name, str) for name in value)


def _is_type(value: object) -> bool:
    names: list[Any] = value if is_list(value) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and _is_number(value) and value >= 0 and value == int(value)


def _is_schema(value: object) -> bool:
    return isinstance(value, (dict, bool))


def _is_schemas(value: object) -> bool:
    return is_list(value) and bool(value) and all(map(_is_schema, value))


def _is_map(value: object, of: Callable[[object], bool]) -> bool:
    return is_dict(value) and all(of(child) for child in value.values())


_Rule: TypeAlias = "tuple[Callable[[object], bool], str]"
_TEXT: Final[_Rule] = (lambda value: isinstance(value, str), "a string")
_NUMBER: Final[_Rule] = (_is_number, "a number")
_COUNT: Final[_Rule] = (_is_count, "a whole number of 0 or more")
_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(ONE, (_is_schema, "a schema (an object, true or false)")),
    **dict.fromkeys(MANY, (_is_schemas, "a list of one or more schemas")),
    **dict.fromkeys(NAMED, (lambda value: _is_map(value, _is_schema), "an object whose values are schemas")),
    **dict.fromkeys(("$ref", "description", "pattern", "format"), _TEXT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties"), _COUNT),
    "type": (_is_type, f"one of {', '.join(TYPES)}, or a list of them"),
    "required": (_is_names, "a list of property names"),
    "enum": (is_list, "a list"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "items": (lambda value: _is_schema(value) or (is_list(value) and all(map(_is_schema, value))), "a schema"),
    "dependencies": (
        lambda value: _is_map(value, lambda child: _is_schema(child) or _is_names(child)),
        "an object of schemas or lists of names",
    ),
    "dependentRequired": (lambda value: _is_map(value, _is_names), "an object of lists of names"),
}


def check_schema(schema: object, *, name: str) -> None:
    """Refuse what no dialect can take. `name` is the tool's or the output's name; None stands for "no parameters".

    Raises ConfigurationError, naming the tool and the JSON pointer, for: something that is not a mapping; values that
    JSON does not have, names that are not str, nesting beyond `canonical.MAX_DEPTH`; a root that cannot be an object;
    a keyword whose value has the wrong type; a `$ref` that leads nowhere, outside the schema, or round in a circle.
    """
    checked(schema, name=name)


def checked(schema: object, *, name: str) -> Schema:
    """A plain deep copy of the schema (dicts and lists only) that passed `check_schema`."""
    if schema is None:
        return {}
    if not isinstance(schema, Mapping):
        raise ConfigurationError(
            f"The schema of {name!r} is of type {type(schema).__name__}, not a mapping",
            hint="Give a JSON Schema object, such as the result of `Model.model_json_schema()`",
        )
    try:
        root: Schema = _thaw(schema, 0)
        check_value(root, path="the schema")
    except JSONPolicyError as error:
        raise ConfigurationError(
            f"The schema of {name!r} is not JSON: {error}", hint="Use only what JSON has, and less nesting"
        ) from None
    _check_keywords(root, name)
    try:
        is_object = _may_be_object(root, root, frozenset())
    except RecursionError:
        raise too_entangled(name) from None
    if not is_object:
        raise ConfigurationError(
            f"The schema of {name!r} does not describe an object at its root",
            hint='Give the root `"type": "object"` and put the value into a property',
        )
    return root


def too_entangled(name: str) -> ConfigurationError:
    """The error for references that lead through hundreds of schemas to say one thing about one value."""
    return ConfigurationError(
        f"The schema of {name!r} follows a chain of references that is too long",
        hint="Refer to the last schema of the chain directly",
    )


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _thaw(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise JSONPolicyError(f"it is nested deeper than {MAX_DEPTH} levels, or contains itself")
    if _is_mapping(value):
        return {key: _thaw(child, depth + 1) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_thaw(child, depth + 1) for child in cast("list[Any]", value)]
    return value


def _check_keywords(root: Schema, name: str) -> None:
    for path, node in _checkable(root, name):
        if "$ref" in node:
            try:
                locate(root, node["$ref"])
            except LookupError as error:
                raise ConfigurationError(
                    f"The schema of {name!r} has a $ref at {path or '/'} that cannot be used: {error}",
                    hint="Put the target under `$defs` and refer to it as `#/$defs/Name`",
                ) from None


def _checkable(root: Schema, name: str) -> list[tuple[str, Schema]]:
    """All nodes. The value of each keyword is checked before the walk goes into it."""
    found: list[tuple[str, Schema]] = []
    for path, node in nodes(root):
        for key, value in node.items():
            rule = _RULES.get(key)
            if rule is not None and not rule[0](value):
                raise ConfigurationError(
                    f"The schema of {name!r} has at {step(path, key)} something other than {rule[1]}",
                    hint=f"Correct the value of {key!r} there",
                )
        found.append((path, node))
    return found


def _may_be_object(root: Schema, schema: Node, seen: frozenset[str]) -> bool:
    if isinstance(schema, bool):
        return schema
    types = types_of(schema)
    if types and "object" not in types:
        return False
    if "$ref" in schema:
        pointer, target = locate(root, schema["$ref"])
        if pointer not in seen and not _may_be_object(root, target, seen | {pointer}):
            return False
    values: list[Any] = [schema["const"]] if "const" in schema else schema.get("enum") or [{}]
    if not any(isinstance(value, dict) for value in values):
        return False
    if not all(_may_be_object(root, part, seen) for part in schema.get("allOf", ())):
        return False
    return all(
        any(_may_be_object(root, part, seen) for part in schema[key]) for key in ("anyOf", "oneOf") if key in schema
    )
