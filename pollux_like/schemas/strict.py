"""A schema written again inside the subset that a strict mode enforces; each dialect gives its `Rules`.

A keyword that a strict mode refuses goes one of three ways. One that describes (`default`, `examples`) or that merely
narrows a value whose shape stays (`uniqueItems`, a foreign `format`) moves into the description, and is reported. One
that says nothing to a model (`$schema`, `$comment`, `$anchor`, `discriminator`, `default: null`) goes silently. One
that shapes the value (`patternProperties`, `not`, `if`, an open map) cannot be given up: `NotStrict`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pollux_like.canonical import MAX_DEPTH, dumps
from pollux_like.schemas.merge import Unmergeable, merged, written_out
from pollux_like.schemas.subset import (
    NARROWING,
    SHAPING,
    SILENT,
    STRUCTURE,
    NotStrict,
    Rules,
    foreign,
    shaping,
    with_types,
)
from pollux_like.schemas.values import TYPES, is_of, same, type_of
from pollux_like.schemas.walker import MERELY_TOLD, Node, Schema, accepts_null, locate, places, step, types_of

MAX_NODES: Final = 10_000
"""Schema nodes that one strict schema may have once references are written out; beyond it the tool is not strict."""


class StrictWriter:
    """Writes one schema. `losses` holds (JSON pointer, clause) of everything that went away or moved to a text."""

    def __init__(self, root: Schema, rules: Rules) -> None:
        self.root, self._inferred = with_types(root)
        self.rules = rules
        self.losses: list[tuple[str, str]] = []
        self._names: dict[str, str] = {}
        self._pending: list[tuple[str, str, Schema]] = []
        self._count = 0

    def write(self) -> Schema:
        """The strict schema with the definitions that it uses, and only those. Raises NotStrict."""
        try:
            result = self._node(self.root, "", 0)
            definitions: Schema = {}
            while self._pending:
                pointer, name, target = self._pending.pop(0)
                definitions[name] = self._node(target, pointer, 0)
        except Unmergeable as error:
            raise NotStrict(error.path, error.why) from None
        return {**result, "$defs": definitions} if definitions else result

    def _node(self, schema: Node, path: str, depth: int) -> Schema:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_NODES:
            raise NotStrict(path, "is too deep or too large once its references are written out")
        if isinstance(schema, bool):
            raise NotStrict(path, "accepts any value" if schema else "accepts no value")
        if "allOf" in schema:
            schema = merged(self.root, schema, path)
        for key in shaping(schema):
            raise NotStrict(path, f"uses {key!r}")
        if "$ref" in schema:
            result = self._reference(schema, path, depth)
        elif "anyOf" in schema or "oneOf" in schema:
            result = self._union(schema, path, depth)
        elif schema.get("enum") or "const" in schema:
            result = self._literal(schema, path)
        else:
            result = self._typed(schema, path, depth)
        return nullable(result) if schema.get("nullable") is True else result

    def _lose(self, path: str, clause: str) -> None:
        if (path, clause) not in self.losses:
            self.losses.append((path, clause))

    # -- references

    def _reference(self, schema: Schema, path: str, depth: int) -> Schema:
        told = {key: value for key, value in schema.items() if key in MERELY_TOLD and key not in SILENT}
        if set(schema) - {"$ref"} - MERELY_TOLD or (self.rules.inline_refs and told):
            return self._node(written_out(self.root, schema, path), path, depth + 1)
        pointer, target = locate(self.root, schema["$ref"])
        if isinstance(target, bool):
            return self._node(target, path, depth)
        reference = {"$ref": "#" if not pointer else f"#/$defs/{self._name(pointer, target)}"}
        # OpenAI refuses keywords beside a $ref; a union of one branch carries them (developers.openai.com
        # structured-outputs; openai-python unravels such references for the same reason).
        return self._tell({"anyOf": [reference]}, told, path) if told else reference

    def _name(self, pointer: str, target: Schema) -> str:
        if pointer not in self._names:
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", pointer.rsplit("/", 1)[-1]) or "schema"
            name, number = base, 1
            while name in self._names.values():
                number += 1
                name = f"{base}_{number}"
            self._names[pointer] = name
            self._pending.append((pointer, name, target))
        return self._names[pointer]

    # -- unions

    def _union(self, schema: Schema, path: str, depth: int) -> Schema:
        key = "anyOf" if "anyOf" in schema else "oneOf"
        beside = set(schema) - MERELY_TOLD - {key, "type"}
        if beside:
            raise NotStrict(path, f"uses {key!r} beside {', '.join(sorted(beside))}")
        if key == "oneOf" and "discriminator" not in schema and len(schema["oneOf"]) > 1:
            self._lose(path, "'oneOf' became 'anyOf', so that exactly one branch fits is no longer enforced")
        branches: list[Schema] = []
        for index, branch in enumerate(schema[key]):
            if branch is not False:
                where = step(path, key, index)
                branches.append(self._node(self._with_type(branch, schema, where), where, depth + 1))
        if not branches:
            raise NotStrict(path, "accepts no value")
        alone = branches[0]
        if len(branches) == 1 and "$ref" not in alone and "anyOf" not in alone:
            return self._tell({**alone}, schema, path)
        return self._tell({"anyOf": branches}, schema, path)

    def _with_type(self, branch: Node, schema: Schema, path: str) -> Node:
        """A `type` beside the union belongs to every branch."""
        if "type" not in schema:
            return branch
        if isinstance(branch, bool):
            return {"type": schema["type"]} if branch else False
        own = types_of(written_out(self.root, branch, path))
        if own and set(own) <= set(types_of(schema)):
            return branch
        return written_out(self.root, {"allOf": [branch, {"type": schema["type"]}]}, path)

    # -- values

    def _literal(self, schema: Schema, path: str) -> Schema:
        values: list[Any] = schema.get("enum") or [schema["const"]]
        if "const" in schema:
            values = [value for value in values if same(value, schema["const"])]
        types = types_of(schema)
        values = [value for value in values if not types or any(is_of(value, name) for name in types)]
        if not values:
            raise NotStrict(path, "accepts no value")
        if any(isinstance(value, (dict, list)) for value in values):
            raise NotStrict(path, "lists objects or arrays as its values")
        used = {type_of(value) for value in values}
        if types:  # 1 is a "number" where the schema says so
            used = {next(name for name in types if is_of(value, name)) for value in values}
        result: Schema = {"type": _one_or_list([name for name in TYPES if name in used])}
        result.update({"const": values[0]} if "const" in schema else {"enum": values})
        return self._tell(result, schema, path, used)

    def _typed(self, schema: Schema, path: str, depth: int) -> Schema:
        types = types_of(schema)
        if not types:
            raise NotStrict(path, "accepts any value")
        if id(schema) in self._inferred:
            self._lose(path, f"no type was given; it is read as {types[0]!r}")
        some = [name for name in types if name != "null"]
        if "object" not in some and "array" not in some:
            return self._tell({"type": _one_or_list(types)}, schema, path, set(types))
        if len(some) > 1:
            told = {key: value for key, value in schema.items() if key in MERELY_TOLD}
            bare = {key: value for key, value in schema.items() if key not in MERELY_TOLD}
            idle = {name: foreign(set(bare), name) for name in types}
            branches = [
                self._node({**{k: v for k, v in bare.items() if k not in idle[name]}, "type": name}, path, depth + 1)
                for name in types
            ]
            return self._tell({"anyOf": branches}, told, path)
        write = self._object if some == ["object"] else self._array
        result = self._tell(write(schema, path, depth), schema, path, set(some))
        return nullable(result) if "null" in types else result

    def _object(self, schema: Schema, path: str, depth: int) -> Schema:
        if schema.get("additionalProperties", False) is not False:
            raise NotStrict(path, "is an open map (additionalProperties)")
        if "properties" not in schema and schema.get("additionalProperties", True) is not False:
            raise NotStrict(path, "is an object without properties, an open map")
        declared: dict[str, Node] = schema.get("properties", {})
        required: list[str] = list(dict.fromkeys(schema.get("required", ())))
        for name in required:
            if name not in declared:
                self._lose(path, f"'required' named {name!r}, which is not a property")
        properties: dict[str, Schema] = {}
        for name, child in declared.items():
            if child is False and name not in required:
                continue  # a closed object says the same
            where = step(path, "properties", name)
            written = self._node(child, where, depth + 1)
            tag = isinstance(child, dict) and "const" in child and same(child["const"], child.get("default"))
            if self.rules.all_required and name not in required and not tag and not accepts_null(self.root, child):
                written = nullable(written)  # a tag whose only value is its default loses nothing by being sent
            properties[name] = written
        result: Schema = {"type": "object", "properties": properties}
        if self.rules.all_required:
            result["required"] = list(properties)
        elif required:
            result["required"] = [name for name in properties if name in required]
        return {**result, "additionalProperties": False}

    def _array(self, schema: Schema, path: str, depth: int) -> Schema:
        first, items = places(schema)
        if first:
            # "array schema missing items": strict modes know no tuples (pydantic-ai #7315, openai-node
            # lib/transform). One that repeats a single schema is an array of fixed length.
            fixed = schema.get("maxItems") == len(first) or items is False
            alike = all(place == first[0] for place in first)
            if not alike or not fixed or not self.rules.keeps("maxItems", len(first)):
                raise NotStrict(path, "is a tuple ('prefixItems')")
            most = {} if "maxItems" in schema or items is not False else {"maxItems": len(first)}
            return {"type": "array", "items": self._node(first[0], step(path, "prefixItems", 0), depth + 1), **most}
        if items is False:
            raise NotStrict(path, "is an array without items")
        return {"type": "array", "items": self._node(items, step(path, "items"), depth + 1)}

    # -- what stands beside the structure

    def _tell(self, result: Schema, schema: Schema, path: str, types: set[str] | None = None) -> Schema:
        """Add title, description and the keywords that may stay; the others become text and a loss."""
        extra: Schema = {}
        notes: list[str] = []
        idle = foreign(set(schema), *types) if types else frozenset[str]()
        for key, value in schema.items():
            if key in idle:
                self._lose(path, f"{key!r} says nothing about this type and was left out")
            elif key in STRUCTURE or key in SILENT or key in SHAPING or _says_nothing(key, value, schema):
                continue
            elif (key in NARROWING and self.rules.keeps(key, value)) or (key == "default" and self.rules.keeps_default):
                extra[key] = value
            elif key in NARROWING or key in ("default", "examples", "example", "deprecated"):
                notes.append(f"{key}: {dumps(value)}")
                self._lose(path, f"{key!r} is not enforced; it moved into the description")
            else:
                self._lose(path, f"{key!r} was left out")
        names = {key: schema.get(key, result.get(key)) for key in ("title", "description")}
        if notes:
            text = "; ".join(notes)
            names["description"] = f"{names['description']} ({text})" if names["description"] else text
        return {**result, **{key: value for key, value in names.items() if value is not None}, **extra}


def _says_nothing(key: str, value: Any, schema: Schema) -> bool:
    if key == "default":  # null stands for absence, and a constant is its own default
        return value is None or same(value, schema.get("const"))
    return key == "deprecated" and value is False


def nullable(schema: Schema) -> Schema:
    """A strict node that also accepts null, in the form that its kind has for it."""
    if _has_null(schema):
        return schema
    kinds = types_of(schema)
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "$ref" in schema or "object" in kinds or "array" in kinds:
        outer: Schema = {key: schema[key] for key in ("title", "description", "default") if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {"anyOf": [inner, {"type": "null"}], **outer}
    result = {key: value for key, value in schema.items() if key != "const"} | {"type": [*kinds, "null"]}
    if "enum" in schema or "const" in schema:
        result["enum"] = [*(schema["enum"] if "enum" in schema else [schema["const"]]), None]
    return result


def _has_null(schema: Schema) -> bool:
    return "null" in types_of(schema) or any(_has_null(branch) for branch in schema.get("anyOf", ()))


def _one_or_list(types: list[str]) -> str | list[str]:
    return types[0] if len(types) == 1 else types
