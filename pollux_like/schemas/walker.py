"""Where the schemas are inside a schema: the one walker, by keyword position, that every dialect uses.

A key of `properties` is a name, never a keyword, and the values of `default`, `enum`, `const` and `examples` are data:
nothing here looks into them as schemas. Keyword positions are those of JSON Schema 2020-12 and of draft-07
(json-schema.org/draft/2020-12/json-schema-core, section 10). Every function takes schemas that `check_schema` accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

Schema: TypeAlias = "dict[str, Any]"
Node: TypeAlias = "Schema | bool"

ONE = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords whose value is one schema (`items` may be a list, up to draft 2019-09)."""

MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""

NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value maps names to schemas (a value of `dependencies` may be a list of names)."""

DEFINITIONS = frozenset({"$defs", "definitions"})
"""Places that hold schemas without applying them."""

MERELY_TOLD = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"),
        *("nullable", "discriminator", "$schema", "$comment", "$id", "id", "$anchor", *DEFINITIONS),
    }
)
"""Keywords beside which another one keeps its whole meaning: they restrict nothing by themselves."""


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def named(value: Any) -> ItemsView[str, Any]:
    """The entries of the value of a `NAMED` keyword."""
    entries: dict[str, Any] = value
    return entries.items()


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """The names in `type`, each once; none where it is absent."""
    types: str | list[str] = schema.get("type", [])
    return [types] if isinstance(types, str) else list(dict.fromkeys(types))


def places(schema: Mapping[str, Any]) -> tuple[list[Node], Node]:
    """The schemas of an array's first elements and that of the others, from either draft's spelling of tuples."""
    items: Any = schema.get("items", True)
    if is_list(items):
        return items, schema.get("additionalItems", True)
    return schema.get("prefixItems", []), items


def step(path: str, *tokens: str | int) -> str:
    """Append tokens to a JSON pointer (RFC 6901)."""
    return path + "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def children(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every direct subschema with the tokens that lead to it."""
    for key, value in schema.items():
        if key in ONE and not is_list(value):
            yield (key,), value
        elif key in ONE or key in MANY:
            yield from (((key, index), child) for index, child in enumerate(value))
        elif key in NAMED:
            yield from (((key, name), child) for name, child in named(value) if not is_list(child))


def nodes(schema: Node, path: str = "") -> Iterator[tuple[str, Schema]]:
    """The schema and everything below it that is not a boolean, definitions included. References are not followed."""
    stack: list[tuple[str, Node]] = [(path, schema)]
    while stack:
        where, node = stack.pop()
        if isinstance(node, dict):
            yield where, node
            stack.extend((step(where, *tokens), child) for tokens, child in children(node))


def rewrite(schema: Node, change: Callable[[Schema], Schema]) -> Node:
    """A copy in which `change` was applied to every schema node, the inner ones first; it may change its argument."""
    if isinstance(schema, bool):
        return schema
    result: Schema = {}
    for key, value in schema.items():
        if key in ONE and not is_list(value):
            result[key] = rewrite(value, change)
        elif key in ONE or key in MANY:
            result[key] = [rewrite(child, change) for child in value]
        elif key in NAMED:
            result[key] = {name: child if is_list(child) else rewrite(child, change) for name, child in named(value)}
        else:
            result[key] = value
    return change(result)


def locate(root: Schema, ref: str) -> tuple[str, Node]:
    """The target of a `$ref` inside the document, with its pointer; a chain of bare references is followed.

    Knows `#`, `#/pointer` and `#anchor`. Raises LookupError where it leads nowhere, outside, or round in a circle.
    """
    seen: set[str] = set()
    while True:
        pointer, target = _target(root, ref)
        if pointer in seen:
            raise LookupError("it leads only to itself")
        seen.add(pointer)
        if isinstance(target, bool) or set(target) != {"$ref"}:
            return pointer, target
        ref = target["$ref"]


def _target(root: Schema, ref: str) -> tuple[str, Node]:
    if not ref.startswith("#"):
        raise LookupError("it leads outside the schema")
    fragment = unquote(ref[1:])
    if fragment and not fragment.startswith("/"):
        for path, node in nodes(root):
            if node.get("$anchor") == fragment:
                return path, node
        raise LookupError("no schema has this anchor")
    value: Any = root
    for raw in fragment.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if is_dict(value) and token in value:
            value = value[token]
        elif is_list(value) and re.fullmatch(r"0|[1-9][0-9]{0,5}", token) and int(token) < len(value):
            value = value[int(token)]
        else:
            raise LookupError("it leads nowhere")
    if isinstance(value, bool) or is_dict(value):
        return fragment, value
    raise LookupError("it leads to something that is not a schema")


def accepts_null(root: Schema, schema: Node, seen: frozenset[str] = frozenset()) -> bool:
    """Whether `null` is valid here, OpenAPI's `nullable: true` included. A recursion without end restricts nothing."""
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema:
        pointer, target = locate(root, schema["$ref"])
        if pointer not in seen and not accepts_null(root, target, seen | {pointer}):
            return False
    if schema.get("nullable") is not True:
        types = types_of(schema)
        if types and "null" not in types:
            return False
        if (schema.get("enum") and None not in schema["enum"]) or schema.get("const", None) is not None:
            return False
    if not all(accepts_null(root, part, seen) for part in schema.get("allOf", ())):
        return False
    if "anyOf" in schema and not any(accepts_null(root, part, seen) for part in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(accepts_null(root, part, seen) for part in schema["oneOf"]) != 1:
        return False
    if "not" in schema and accepts_null(root, schema["not"], seen):
        return False
    if "if" in schema:
        branch = "then" if accepts_null(root, schema["if"], seen) else "else"
        return accepts_null(root, schema.get(branch, True), seen)
    return True


def find_cycle(root: Schema) -> tuple[str, ...]:
    """The pointers of definitions that refer to each other in a circle, or () where nothing is recursive.

    Only what the root reaches counts; definitions that nothing uses do not.
    """
    edges: dict[str, list[str]] = {}
    targets: dict[str, Node] = {"": root}

    def uses(pointer: str) -> list[str]:
        if pointer not in edges:
            edges[pointer] = []
            for node in _applied(targets[pointer]):
                if "$ref" in node:
                    found, target = locate(root, node["$ref"])
                    targets[found] = target
                    edges[pointer].append(found)
        return edges[pointer]

    trail: list[tuple[str, Iterator[str]]] = [("", iter(uses("")))]
    done: set[str] = set()
    while trail:
        pointer, following = trail[-1]
        after = next(following, None)
        if after is None:
            done.add(pointer)
            trail.pop()
        elif any(after == on for on, _ in trail):
            return tuple(on for on, _ in trail[[on for on, _ in trail].index(after) :])
        elif any(on.startswith(after + "/") for on, _ in trail):
            return (after, pointer)  # a reference to something that encloses it
        elif after not in done:
            trail.append((after, iter(uses(after))))
    return ()


def _applied(schema: Node) -> Iterator[Schema]:
    stack: list[Node] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(child for tokens, child in children(node) if tokens[0] not in DEFINITIONS)
