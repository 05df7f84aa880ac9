"""The Gemini dialects: `parametersJsonSchema` and `responseJsonSchema`, and the reduced OpenAPI form of `parameters`.

Sources: ai.google.dev/gemini-api/docs/structured-output, "JSON Schema support"; the fields of `Schema` in
ai.google.dev/api/caching; the answer 400 "Unknown name ... Cannot find field" to everything else in `parameters`.
`additionalProperties` is left out on both paths: parts of the API refuse it, and only what is declared gets written.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from pollux_like.canonical import dumps
from pollux_like.schemas.merge import Unmergeable, merged
from pollux_like.schemas.modern import modern
from pollux_like.schemas.root import merged_root, object_root
from pollux_like.schemas.values import type_of
from pollux_like.schemas.walker import DEFINITIONS, MERELY_TOLD, Schema, is_dict, locate, nodes, rewrite, step, types_of

_Losses: TypeAlias = "list[tuple[str, str]]"

_SILENT: Final = frozenset({"$schema", "$comment", "$id", "id", "discriminator", "examples", "deprecated", "readOnly",
                            "writeOnly"})  # fmt: skip
"""Keywords that say nothing that the model must know."""

_OPENAPI: Final = frozenset({
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
    "default", "items", "minimum", "maximum",
})  # fmt: skip
"""The fields of `Schema`; any other is refused."""

_FORMATS: Final = {"string": {"date-time", "enum"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
MAX_DEPTH: Final = 32
"""Deepest nesting that references are written out to; the API has an undocumented limit of the same order."""


def json_schema(root: Schema) -> tuple[Schema, _Losses]:
    """The schema for the JSON Schema fields, with losses as (JSON pointer, clause). Recursion stays a `$ref`."""
    root, losses = modern(root)
    root, shaped = object_root(root)
    root = merged_root(root)
    losses = losses + shaped
    for path, node in nodes(root):
        if node.get("additionalProperties", False) not in (False, True, {}):
            losses.append((path, "the schema of its further properties is told in the description"))

    def change(node: Schema) -> Schema:
        node = {key: value for key, value in node.items() if key not in _SILENT}
        node = _declared(node) if "properties" in node else node  # a branch may require what its parent declares
        node = _closed(node)
        if "const" in node:
            value = node.pop("const")
            node["enum"] = [value]
        if "oneOf" in node and "anyOf" not in node:  # "interpreted the same as anyOf"
            node["anyOf"] = node.pop("oneOf")
        if "$ref" in node and set(node) - {"$ref"}:  # "no other properties may be set" beside a reference
            node = {"anyOf": [{"$ref": node.pop("$ref")}], **node}
        return node

    result = rewrite(root, change)
    assert isinstance(result, dict)
    return result, losses


def openapi(root: Schema) -> tuple[Schema, _Losses]:
    """The schema for `parameters`, with losses as (JSON pointer, clause). References are written out, recursion ends
    in an object that names it."""
    root, losses = modern(root)
    root, shaped = object_root(root)
    losses = losses + shaped
    return _reduced(root, merged_root(root), "", (), losses), losses


def _declared(node: Schema) -> Schema:
    """Without required names that are no properties: "property is not defined"."""
    if "required" not in node:
        return node
    names = [name for name in node["required"] if name in node.get("properties", {})]
    rest = {key: value for key, value in node.items() if key != "required"}
    return {**rest, "required": names} if names else rest


def _closed(node: Schema) -> Schema:
    further = node.get("additionalProperties", False)
    rest = {key: value for key, value in node.items() if key != "additionalProperties"}
    return rest if further in (False, True, {}) else _told(rest, f"Further properties: {dumps(further)}")


def _told(node: Schema, text: str) -> Schema:
    about = node.get("description")
    return {**node, "description": f"{about} {text}" if about else text}


def _reduced(root: Schema, node: Any, path: str, trail: tuple[str, ...], losses: _Losses) -> Schema:
    """One schema in the fields of `Schema`, and everything below it."""
    if not is_dict(node):
        return {}
    if "$ref" in node:
        pointer, target = locate(root, node["$ref"])
        beside = {key: value for key, value in node.items() if key != "$ref"}
        if pointer in trail or len(trail) >= MAX_DEPTH:
            losses.append((path, "is recursive; its inner levels are any object"))
            name = pointer.rsplit("/", 1)[-1] or "the whole"
            types = types_of(target) if is_dict(target) else []
            about = str(beside.get("description") or f"Again {name}.")
            may_be_null = {"nullable": True} if beside.get("nullable") is True else {}
            return {"type": types[0] if len(types) == 1 else "object", "description": about, **may_be_null}
        return _reduced(root, _over(target, beside), path, (*trail, pointer), losses)
    if "allOf" in node:
        try:
            node = merged(root, node, path)
        except Unmergeable:
            losses.append((path, "its 'allOf' is told in the description"))
            rest = {key: value for key, value in node.items() if key != "allOf"}
            node = _told(rest, f"allOf: {dumps(node['allOf'])}")
        else:
            return _reduced(root, node, path, trail, losses)
    node = _typed({**node}, path, losses)
    if "$ref" in node or "allOf" in node:
        return _reduced(root, node, path, trail, losses)
    node = _enumerated(node, path, losses)
    result: Schema = {}
    told: list[str] = []
    for key, value in node.items():
        match key:
            case "properties":
                result[key] = {
                    name: _reduced(root, child, step(path, key, name), trail, losses) for name, child in value.items()
                }
            case "items":
                result[key] = _reduced(root, value, step(path, key), trail, losses)
            case "anyOf":
                result[key] = [
                    _reduced(root, child, step(path, key, at), trail, losses) for at, child in enumerate(value)
                ]
            case _ if key in _OPENAPI:
                result[key] = value
            case _ if key not in _SILENT and key not in DEFINITIONS and (key, value) != ("additionalProperties", False):
                losses.append((step(path, key), f"{key!r} is not accepted there; it is told in the description"))
                told.append(f"{key}: {dumps(value)}")
            case _:
                continue
    if told:
        result = _told(result, " ".join(told))
    if result.get("type") == "array" and "items" not in result:
        result["items"] = {}
    return _declared(result)


def _over(target: Any, beside: Schema) -> Any:
    """What a reference says, with what stands beside it on top."""
    if not is_dict(target):
        return beside
    if set(beside) <= MERELY_TOLD:
        return {**target, **beside}
    return {"allOf": [target, beside]}


def _typed(node: Schema, path: str, losses: _Losses) -> Schema:
    """One type, with `nullable`; several as `anyOf`. Tuples become arrays of any of their elements."""
    if "oneOf" in node:
        node["anyOf"] = [*node.get("anyOf", []), *node.pop("oneOf")]
    branches = node.get("anyOf", [])
    plain = [one for one in branches if not (is_dict(one) and types_of(one) == ["null"])]
    if len(plain) < len(branches):
        node["nullable"] = True
        node["anyOf"] = plain
    if len(plain) == 1 and is_dict(plain[0]) and not (set(node) - {"anyOf"} - MERELY_TOLD):
        del node["anyOf"]
        node = {**plain[0], **node}
        if "$ref" in node or "allOf" in node:  # to be written out first
            return node
        if isinstance(node.get("type"), list) or "anyOf" in node or "oneOf" in node:
            return _typed(node, path, losses)
    types = types_of(node)
    if "null" in types:
        types.remove("null")
        node["nullable"] = True
    if len(types) > 1:
        del node["type"]
        node["anyOf"] = [{"type": one} for one in types]
    elif types:
        node["type"] = types[0]
    if "prefixItems" in node:
        places = node.pop("prefixItems")
        losses.append((step(path, "prefixItems"), "the places of a tuple are not told apart"))
        node["items"] = {"anyOf": places} if len(places) > 1 else places[0]
        node.setdefault("maxItems", len(places))
    if node.get("type") == "object":
        node.setdefault("properties", {})
    return node


def _enumerated(node: Schema, path: str, losses: _Losses) -> Schema:
    """Enums of strings only; values of other types are told, and a number's range is kept. Formats that exist."""
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "enum" in node:
        values = [value for value in node["enum"] if value is not None]
        if len(values) < len(node["enum"]):
            node["nullable"] = True
        del node["enum"]
        if values and all(isinstance(value, str) for value in values):
            node.update({"type": "string", "enum": values})
        elif values:
            kinds = {type_of(value) for value in values}
            if kinds == {"integer", "number"}:
                kinds = {"number"}
            if len(kinds) == 1:
                node.setdefault("type", kinds.pop())
            if node.get("type") in ("integer", "number"):
                node.setdefault("minimum", min(values))
                node.setdefault("maximum", max(values))
            losses.append((step(path, "enum"), "only strings are listed there; the values are told in the description"))
            node = _told(node, f"One of: {', '.join(map(dumps, values))}")
    if "format" in node and node["format"] not in _FORMATS.get(str(node.get("type")), ()):
        kept = node.pop("format")
        losses.append((step(path, "format"), f"the format {kept!r} is told in the description"))
        node = _told(node, f"Format: {kept}")
    return node
