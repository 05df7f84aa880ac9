"""`allOf` made one schema where that is plain: no keyword of two parts has to be weighed against another."""

from __future__ import annotations

from typing import Any

from pollux_like.schemas.walker import MERELY_TOLD, Schema, is_dict, locate, step, types_of


class Unmergeable(Exception):
    """Two parts of an `allOf` say different things; `path` is the JSON pointer of the schema that holds it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


def merged(root: Schema, schema: Schema, path: str, seen: frozenset[str] = frozenset()) -> Schema:
    """The schema without its `allOf`, meaning the same. References among the parts are written out.

    One reference beside nothing but annotations stays a reference, so recursive models stay finite.
    Raises Unmergeable.
    """
    rest = {key: value for key, value in schema.items() if key != "allOf"}
    parts: list[Any] = schema.get("allOf", [])
    if len(parts) == 1 and is_dict(parts[0]) and set(rest) <= MERELY_TOLD:
        only: Schema = parts[0]
        if "allOf" not in only and set(only) - {"$ref"} <= MERELY_TOLD:
            return {**only, **rest}
    result = written_out(root, rest, path, seen) if "$ref" in rest else rest
    for index, part in enumerate(parts):
        where = step(path, "allOf", index)
        if part is True:
            continue
        if part is False:
            raise Unmergeable(where, "accepts no value")
        result = _both(result, written_out(root, part, where, seen), path)
    return result


def written_out(root: Schema, schema: Schema, path: str, seen: frozenset[str] = frozenset()) -> Schema:
    """The schema with its own `$ref` and `allOf` replaced by what they say. Raises Unmergeable."""
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    if "$ref" in schema:
        pointer, target = locate(root, schema["$ref"])
        if pointer in seen:
            raise Unmergeable(path, "is a part of itself")
        if isinstance(target, bool):
            raise Unmergeable(path, "refers to a boolean schema")
        rest = _both(rest, written_out(root, target, path, seen | {pointer}), path)
    return merged(root, rest, path, seen) if "allOf" in rest else rest


def _both(one: Schema, two: Schema, path: str) -> Schema:
    _check_closed(one, two, path)
    result = dict(one)
    for key, value in two.items():
        if key not in result or (result[key] == value and type(result[key]) is type(value)):
            result[key] = value
        elif key == "properties":
            result[key] = _properties(result[key], value)
        elif key == "required":
            result[key] = list(dict.fromkeys([*result[key], *value]))
        elif key == "allOf":
            result[key] = [*result[key], *value]
        elif key == "type":
            result[key] = _types(result, two, path)
        elif key not in MERELY_TOLD or key == "nullable":
            raise Unmergeable(path, f"has an allOf whose parts give {key!r} different values")
    return result


def _check_closed(one: Schema, two: Schema, path: str) -> None:
    """A part that is closed refuses the properties of the other part: what remains is not simply their union."""
    for closed, other in ((one, two), (two, one)):
        is_closed = closed.get("additionalProperties", True) not in (True, {}) or "unevaluatedProperties" in closed
        if is_closed and not other.get("properties", {}).keys() <= closed.get("properties", {}).keys():
            raise Unmergeable(path, "has an allOf with a part that is closed to the properties of another part")


def _properties(one: Schema, two: Schema) -> Schema:
    result = dict(one)
    for name, schema in two.items():
        if name not in result or result[name] == schema:
            result[name] = schema
        else:
            result[name] = {"allOf": [result[name], schema]}
    return result


def _types(one: Schema, two: Schema, path: str) -> str | list[str]:
    first, second = types_of(one), types_of(two)
    both = [name for name in first if name in second or (name == "integer" and "number" in second)]
    both += [name for name in second if name == "integer" and "number" in first and name not in both]
    if not both:
        raise Unmergeable(path, "has an allOf whose parts have no type in common")
    return both[0] if len(both) == 1 else both
