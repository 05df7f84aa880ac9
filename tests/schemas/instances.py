"""Instances of a schema, and how one is said under a strict schema: both apart from the code under test."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from schemas.legal import find, walk


def is_valid(schema: Any, value: Any) -> bool:
    draft7 = any(isinstance(node, dict) and isinstance(node.get("items"), list) for _, node in walk(schema))
    return (Draft7Validator if draft7 else Draft202012Validator)(schema).is_valid(value)


def as_json_schema(schema: Any) -> Any:
    """The schema with OpenAPI's `nullable` said in JSON Schema, empty enums away: what the author meant."""
    result = copy.deepcopy(schema)
    for _, node in walk(result):
        if isinstance(node, dict) and node.get("enum") == []:
            del node["enum"]
        if isinstance(node, dict) and node.get("nullable") is True:
            inner = {key: node.pop(key) for key in list(node)}
            del inner["nullable"]
            node["anyOf"] = [inner, {"type": "null"}]
    return result


def as_reported(schema: Any, losses: tuple[str, ...]) -> Any:
    """The schema as the losses say it is now understood."""
    result = copy.deepcopy(schema)
    text = "\n".join(losses)
    for _, node in walk(result):
        if not isinstance(node, dict):
            continue
        for key in list(node):
            if f"{key!r} is not enforced" in text:
                del node[key]
        if "it is read as 'object'" in text and "properties" in node:
            node.setdefault("type", "object")
        if "'oneOf' became 'anyOf'" in text and "oneOf" in node:
            node["anyOf"] = node.pop("oneOf")
        if "'required' named" in text and "required" in node:
            node["required"] = [name for name in node["required"] if name in node.get("properties", {})]
    return result


def unconstrained(schema: Any, losses: tuple[str, ...]) -> Any:
    """The schema without the constraints at its root that are only told in the description."""
    gone = {key for key in schema if any(f"{key!r} at the root is not accepted" in loss for loss in losses)}
    kept = {key: value for key, value in schema.items() if key not in gone}
    return {**kept, "$defs": {**kept.get("$defs", {}), "_root": {key: schema[key] for key in gone}}} if gone else kept


class NoInstance(Exception):
    pass


def sample(root: Any, schema: Any, random: Random, depth: int = 0) -> Any:
    """A value that probably fits; it never has properties that are not declared."""
    if schema is False or depth > 12:
        raise NoInstance
    if schema is True:
        return random.choice([None, 1, "x"])
    if "$ref" in schema:
        return sample(root, find(root, schema["$ref"]), random, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "allOf" in schema:
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        parts = [*schema["allOf"], *([rest] if {"type", "properties"} & set(rest) else [])]
        found = [sample(root, part, random, depth + 1) for part in parts if part is not True]
        objects = [value for value in found if isinstance(value, dict)]
        return {key: value for part in objects for key, value in part.items()} if objects else (found or ["x"])[0]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            branches = [branch for branch in schema[key] if branch is not False]
            if not branches:
                raise NoInstance
            if "properties" not in schema:
                if depth > 6:
                    branches = sorted(branches, key=lambda branch: len(str(branch)))[:1]
                return sample(root, random.choice(branches), random, depth + 1)
    types = schema.get("type", "object" if "properties" in schema or "required" in schema else None)
    kind = random.choice(types) if isinstance(types, list) else types
    if kind == "object":
        return _object(root, schema, random, depth)
    if kind == "array":
        return _array(root, schema, random, depth)
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    scalars: dict[Any, Any] = {
        "string": random.choice(["", "a", "type", "ab"]) + "a" * int(schema.get("minLength", 0)),
        "integer": int(low) + random.randint(0, 3) * int(schema.get("multipleOf", 1)),
        "number": low + random.choice([0, 1, 2.5]) * schema.get("multipleOf", 1),
        "boolean": random.choice([True, False]),
        "null": None,
    }
    return scalars[kind] if kind in scalars else random.choice([1, "x", {"k": None}])


def _object(root: Any, schema: Any, random: Random, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, child in schema.get("properties", {}).items():
        needed = name in schema.get("required", [])
        if needed or (depth < 6 and random.random() < 0.6):
            try:
                result[name] = sample(root, child, random, depth + 1)
            except NoInstance:
                if needed:
                    raise
    return result


def _array(root: Any, schema: Any, random: Random, depth: int) -> list[Any]:
    first, rest = schema.get("prefixItems", []), schema.get("items", True)
    if isinstance(rest, list):
        first, rest = rest, schema.get("additionalItems", True)
    least = int(schema.get("minItems", 0))
    result = [sample(root, child, random, depth + 1) for child in first]
    count = max(least - len(result), 0) + (random.randint(0, 2) if depth < 6 and rest is not False else 0)
    count = min(count, int(schema.get("maxItems", 9)) - len(result))
    return result + [sample(root, rest, random, depth + 1) for _ in range(max(count, 0))]


def samples(schema: Any, random: Random, count: int) -> list[Any]:
    """Up to `count` values that a validator accepts."""
    found: list[Any] = []
    for _ in range(count):
        try:
            value = sample(schema, schema, random)
        except NoInstance:
            continue
        if isinstance(value, dict) and is_valid(schema, value):
            found.append(value)
    return found


Tags = set[tuple[str, Any]]


def tags_of(schema: Any) -> Tags:
    """Properties with one value, which is their default: absent and present mean the same."""
    return {
        (name, child["const"])
        for _, node in walk(schema or {})
        if isinstance(node, dict)
        for name, child in node.get("properties", {}).items()
        if isinstance(child, dict) and "const" in child and child.get("default") == child["const"]
    }


def said(root: Any, schema: Any, value: Any, tags: Tags) -> Any:
    """The value as a model says it where every property is required: null, or the tag, stands for absence."""
    if "$ref" in schema:
        return said(root, find(root, schema["$ref"]), value, tags)
    if "anyOf" in schema:
        for branch in schema["anyOf"]:
            filled = said(root, branch, value, tags)
            if Draft202012Validator(root).evolve(schema=branch).is_valid(filled):
                return filled
        return value
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        result = {name: said(root, known.get(name, {}), child, tags) for name, child in value.items()}
        for name in schema.get("required", []):
            const = known[name].get("const")
            result.setdefault(name, const if (name, const) in tags else None)
        return result
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [said(root, schema["items"], child, tags) for child in value]
    return value


def same_meaning(cleaned: Any, value: Any, tags: Tags) -> bool:
    """Equal, but for nulls (each was checked against the schema) and for tags."""
    return bool(_bare(cleaned, tags) == _bare(value, tags))


def _bare(value: Any, tags: Tags) -> Any:
    if isinstance(value, dict):
        kept = {name: child for name, child in value.items() if child is not None}
        tagged = {name for name, const in tags if name in kept and kept[name] == const}
        return {name: _bare(child, tags) for name, child in kept.items() if name not in tagged}
    return [_bare(child, tags) for child in value] if isinstance(value, list) else value
