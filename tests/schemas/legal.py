"""Each target's rules, written from the providers' documents and recorded refusals, apart from the code under test.

Every function yields complaints; a schema is legal where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

COMMON = {"type", "title", "description", "properties", "required", "additionalProperties", "items", "anyOf", "enum"}
OPENAI = COMMON | {"const", "$ref", "$defs", "pattern", "format", "minLength", "maxLength", "minItems", "maxItems"}
OPENAI |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
ANTHROPIC = COMMON | {"const", "$ref", "$defs", "default", "format", "pattern", "minItems"}
OPENAI_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
ANTHROPIC_FORMATS = OPENAI_FORMATS | {"uri"}

SINGLE = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems"]
SINGLE += ["unevaluatedProperties", "unevaluatedItems", "contentSchema"]
LISTS = ["anyOf", "oneOf", "allOf", "prefixItems", "items"]
MAPS = ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"]


def walk(schema: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    yield path, schema
    if not isinstance(schema, dict):
        return
    for key in SINGLE:
        if isinstance(schema.get(key), (dict, bool)):
            yield from walk(schema[key], f"{path}/{key}")
    for key in LISTS:
        if isinstance(schema.get(key), list):
            for index, child in enumerate(schema[key]):
                yield from walk(child, f"{path}/{key}/{index}")
    for key in MAPS:
        if isinstance(schema.get(key), dict):
            for name, child in schema[key].items():
                if not isinstance(child, list):
                    yield from walk(child, f"{path}/{key}/{name}")


def find(root: Any, ref: str) -> Any:
    """The target of a reference; KeyError, IndexError or ValueError where there is none."""
    if ref != "#" and not ref.startswith("#/"):
        for _, node in walk(root):
            if isinstance(node, dict) and "#" + node.get("$anchor", "") == ref:
                return node
        raise KeyError(ref)
    node = root
    for token in unquote(ref).split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        node = node[int(token)] if isinstance(node, list) else node[token]
    return node


def _references(root: dict[str, Any]) -> Iterator[str]:
    for path, node in walk(root):
        if isinstance(node, dict) and "$ref" in node:
            try:
                find(root, node["$ref"])
            except (KeyError, IndexError, ValueError):
                yield f"{path}: {node['$ref']} leads nowhere"


def _metaschema(schema: dict[str, Any]) -> Iterator[str]:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield f"metaschema: {error.message}"


def _value_type(value: Any) -> set[str]:
    kinds: list[tuple[Any, set[str]]] = [
        (bool, {"boolean"}),
        (int, {"integer", "number"}),
        (float, {"number", "integer"} if isinstance(value, float) and value.is_integer() else {"number"}),
        (str, {"string"}),
        (type(None), {"null"}),
    ]
    return next((names for kind, names in kinds if isinstance(value, kind)), set())


def _strict_nodes(schema: dict[str, Any], allowed: set[str], formats: set[str]) -> Iterator[str]:
    if schema.get("type") != "object" or {"anyOf", "$ref", "enum", "const"} & set(schema):
        yield "#: the root is not a plain object"
    for path, node in walk(schema):
        if isinstance(node, bool):
            if not (path.endswith("/additionalProperties") and node is False):
                yield f"{path}: boolean schema"
            continue
        extra = set(node) - allowed
        if extra:
            yield f"{path}: {sorted(extra)} not permitted"
        if "$defs" in node and path != "#":
            yield f"{path}: $defs below the root"
        if not {"type", "$ref", "anyOf"} & set(node):
            yield f"{path}: schema must have a 'type' key"
        if "$ref" in node and set(node) != {"$ref"}:
            yield f"{path}: $ref cannot have keywords beside it"
        if "$ref" in node and node["$ref"] != "#" and not node["$ref"].startswith("#/$defs/"):
            yield f"{path}: $ref outside $defs"
        types = node.get("type", [])
        types = [types] if isinstance(types, str) else types
        if len(types) != len(set(types)):
            yield f"{path}: type names one type twice"
        if "object" in types:
            if node.get("additionalProperties") is not False:
                yield f"{path}: 'additionalProperties' is required to be supplied and to be false"
            if not isinstance(node.get("properties"), dict):
                yield f"{path}: object schema missing properties"
        if "array" in types and not isinstance(node.get("items"), dict):
            yield f"{path}: array schema missing items"
        if "format" in node and node["format"] not in formats:
            yield f"{path}: {node['format']!r} is not a valid format"
        values = node.get("enum", [node["const"]] if "const" in node else [])
        if "enum" in node and not values:
            yield f"{path}: empty enum"
        if any(not _value_type(value) & set(types) for value in values):
            yield f"{path}: a listed value is not of the type"
        if "anyOf" in node and not node["anyOf"]:
            yield f"{path}: empty anyOf"
    yield from _references(schema)
    yield from _metaschema(schema)


def openai_strict(schema: dict[str, Any]) -> Iterator[str]:
    yield from _strict_nodes(schema, OPENAI, OPENAI_FORMATS)
    properties = values = 0
    for path, node in walk(schema):
        if isinstance(node, dict):
            properties += len(node.get("properties", {}))
            values += len(node.get("enum", []))
            if "properties" in node and sorted(node.get("required", [])) != sorted(node["properties"]):
                yield f"{path}: 'required' is required to include every key in properties"
    if properties > 5000 or values > 1000:
        yield "too large"


def anthropic_strict(schema: dict[str, Any]) -> Iterator[str]:
    yield from _strict_nodes(schema, ANTHROPIC, ANTHROPIC_FORMATS)
    for path, node in walk(schema):
        if isinstance(node, dict):
            if not set(node.get("required", [])) <= set(node.get("properties", {})):
                yield f"{path}: required names no property"
            if node.get("minItems", 0) not in (0, 1):
                yield f"{path}: minItems other than 0 and 1"
            if any(sign in node.get("pattern", "") for sign in ("(?", "\\b", "\\1")):
                yield f"{path}: unsupported pattern"
    yield from _cycles(schema, "#", [])


def _cycles(root: dict[str, Any], ref: str, trail: list[str]) -> Iterator[str]:
    if ref in trail:
        yield "Circular reference detected in schema definitions"
        return
    start = {key: value for key, value in root.items() if key != "$defs"} if ref == "#" else find(root, ref)
    for _, node in walk(start):
        if isinstance(node, dict) and "$ref" in node:
            yield from _cycles(root, node["$ref"], [*trail, ref])


def _loose(schema: dict[str, Any], refused: set[str]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "#: schema must have type 'object'"
    if not isinstance(schema.get("properties"), dict):
        yield "#: object schema missing properties"
    if refused & set(schema):
        yield f"#: {sorted(refused & set(schema))} at the top level"
    yield from _references(schema)


def openai_loose(schema: dict[str, Any]) -> Iterator[str]:
    yield from _loose(schema, {"anyOf", "oneOf", "allOf", "enum", "const", "not"})
    yield from _metaschema(schema)
    for path, node in walk(schema):
        if isinstance(node, dict) and "array" in str(node.get("type")) and "items" not in node:
            yield f"{path}: array schema missing items"
        if isinstance(node, dict) and node.get("enum") == []:
            yield f"{path}: [] should be non-empty"


def anthropic_loose(schema: dict[str, Any]) -> Iterator[str]:
    yield from _loose(schema, {"anyOf", "oneOf", "allOf"})
    yield from _metaschema(schema)


def plain(schema: dict[str, Any]) -> Iterator[str]:
    yield from _loose(schema, set())
