"""Strict schemas: which JSON Schemas the vendors refuse for strict tools and structured output.

The limits of Anthropic are those its API reported in 2026; they stand in a table because they move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pollux_like.simulator.shapes import as_array, as_object, is_object
from pollux_like.simulator.wire import Fault


@dataclass(frozen=True, slots=True)
class StrictLimits:
    tools: int = 20
    optional: int = 24
    unions: int = 16


LIMITS = StrictLimits()
_CHILDREN = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def walk(schema: Any, context: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every subschema with its place, outermost first."""
    if not is_object(schema):
        return
    yield context, schema
    for key in _CHILDREN:
        for name, child in as_object(schema.get(key)).items():
            yield from walk(child, (*context, key, name))
    for key in _LISTS:
        for n, child in enumerate(as_array(schema.get(key))):
            yield from walk(child, (*context, key, str(n)))
    for key in ("items", "additionalProperties"):
        yield from walk(schema.get(key), (*context, key))


def openai_strict(schema: Any) -> str | None:
    """What is wrong with a strict schema, in OpenAI's words after "Invalid schema for …: ", or None."""
    if not is_object(schema) or schema.get("type") != "object" or "anyOf" in schema:
        return "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
    for context, node in walk(schema):
        place = _context(context)
        if node.get("type") != "object" and "properties" not in node:
            continue
        if node.get("additionalProperties") is not False:
            return f"In context={place}, 'additionalProperties' is required to be supplied and to be false."
        required = node.get("required", [])
        for name in as_object(node.get("properties")):
            if name not in required:
                return (
                    f"In context={place}, 'required' is required to be supplied and to be an array including every key "
                    f"in properties. Missing '{name}'."
                )
        for name in required:
            if name not in as_object(node.get("properties")):
                return (
                    f"In context={place}, 'required' is required to be supplied and to be an array including every key "
                    f"in properties. Extra required key '{name}' supplied."
                )
    return None


def _context(parts: tuple[str, ...]) -> str:
    return f"({', '.join(repr(part) for part in parts)}{',' if len(parts) == 1 else ''})"


def anthropic_strict(tools: list[dict[str, Any]], fmt: dict[str, Any] | None) -> Fault | None:
    """Limits over all strict tools and the output format of a request (recorded 400s of the Messages API)."""
    strict = [(n, tool) for n, tool in enumerate(tools) if tool.get("strict") is True]
    if len(strict) > LIMITS.tools:
        return Fault(
            400,
            f"Too many strict tools ({len(strict)}). The maximum number of strict tools supported is {LIMITS.tools}. "
            "Try reducing the number of tools marked as strict.",
        )
    named = [(f"tools.{n}.custom", tool["input_schema"]) for n, tool in strict]
    if fmt is not None:
        named.append(("output_config.format.schema", fmt.get("schema")))
    optional = unions = 0
    for path, schema in named:
        loop = _cycle(schema)
        if loop is not None:
            return Fault(
                400,
                f"{path}: Invalid schema: Circular reference detected in schema definitions: {loop}. Self-referencing "
                "or mutually-referencing definitions are not supported.",
            )
        for _, node in walk(schema):
            properties = as_object(node.get("properties"))
            if node.get("type") == "object" and node.get("additionalProperties") is not False:
                return Fault(400, f"{path}: For 'object' type, 'additionalProperties' must be explicitly set to false")
            optional += sum(name not in node.get("required", []) for name in properties)
            unions += sum(
                is_object(child) and ("anyOf" in child or isinstance(child.get("type"), list))
                for child in properties.values()
            )
    if optional > LIMITS.optional:
        return Fault(
            400,
            f"Schemas contains too many optional parameters ({optional}), which would make grammar compilation "
            f"inefficient. Reduce the number of optional parameters in your tool schemas (limit: {LIMITS.optional}).",
        )
    if unions > LIMITS.unions:
        return Fault(
            400,
            f"Schemas contains too many parameters with union types ({unions} parameters with type arrays or anyOf). "
            "This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters (limit: "
            f"{LIMITS.unions} parameters with unions).",
        )
    return None


def _cycle(schema: Any) -> str | None:
    """The first circle among the definitions, as "A -> B -> A"."""
    given = as_object(schema)
    definitions = {**as_object(given.get("$defs")), **as_object(given.get("definitions"))}
    edges = {
        name: [str(node["$ref"]).rsplit("/", 1)[-1] for _, node in walk(child) if "$ref" in node]
        for name, child in definitions.items()
    }
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return " -> ".join(reversed(circle))
    return None
