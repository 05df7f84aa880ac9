"""The way back: arguments without the nulls that only strict mode made the model send.

Strict mode of some targets has no optional properties; there an optional one is made nullable, and the model says
"absent" with null. The tool's own schema knows only absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pollux_like.schemas.check import checked, too_entangled
from pollux_like.schemas.subset import with_types
from pollux_like.schemas.values import is_of, same
from pollux_like.schemas.walker import Node, Schema, accepts_null, is_dict, is_list, locate, places, types_of


def clean_arguments(schema: Mapping[str, Any] | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Drop each null that the *original* schema rejects where the property is declared and optional.

    Goes through properties, items, branches of `anyOf`/`oneOf`/`allOf`, `$ref` (recursive ones too) and the values of
    maps. Of a union, the first branch counts that the value fits as it is, else the first that it fits once cleaned;
    where none fits, the value stays. A null that the schema accepts stays, as do nulls in lists, map entries that are
    themselves null, and everything that the schema does not describe. A schema without a type that has `properties`,
    `items` or other keywords of one type is read as of that type. Returns the same object where nothing changed.
    Raises ConfigurationError where the schema fails `check_schema`.
    """
    root, _ = with_types(checked(schema, name="arguments"))
    try:
        cleaned = _Cleaner(root).clean(root, arguments)
    except RecursionError:
        raise too_entangled("arguments") from None
    return cleaned if is_dict(cleaned) else arguments


class _Cleaner:
    """One pass. Results are remembered per (schema, value), so unions inside unions stay linear."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._cleaned: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._fitting: dict[tuple[int, int], tuple[Any, bool]] = {}

    def clean(self, schema: Node, value: Any) -> Any:
        if not (is_dict(value) or is_list(value)) or not isinstance(schema, dict):
            return value
        key = (id(schema), id(value))
        if key not in self._cleaned:
            self._cleaned[key] = (value, value)  # a schema that applies itself to the same value adds nothing
            self._cleaned[key] = (value, self._clean(schema, value))
        return self._cleaned[key][1]

    def _clean(self, schema: Schema, value: Any) -> Any:
        parts = self._parts(schema)
        value = self._object(parts, value) if is_dict(value) else self._list(parts, value)
        for part in parts:
            for key in ("anyOf", "oneOf"):
                if key in part:
                    value = self._branch(part[key], value)
            if "if" in part:
                branch = "then" if self._fits(part["if"], value) else "else"
                value = self.clean(part.get(branch, True), value)
        return value

    def _parts(self, schema: Schema) -> list[Schema]:
        """The schema and what applies together with it: reference targets and members of `allOf`."""
        parts: list[Schema] = []
        waiting: list[Node] = [schema]
        while waiting:
            part = waiting.pop(0)
            if isinstance(part, dict) and not any(part is known for known in parts):
                parts.append(part)
                if "$ref" in part:
                    waiting.append(locate(self.root, part["$ref"])[1])
                waiting.extend(part.get("allOf", ()))
        return parts

    def _object(self, parts: list[Schema], value: dict[str, Any]) -> dict[str, Any]:
        required = {name for part in parts for name in part.get("required", ())}
        result: dict[str, Any] = {}
        for name, child in value.items():
            declared: list[Node] = [part["properties"][name] for part in parts if name in part.get("properties", ())]
            if child is None:
                rejected = any(not accepts_null(self.root, schema) for schema in declared)
                if rejected and name not in required:
                    continue
            for schema in declared or [part.get("additionalProperties", True) for part in parts]:
                child = self.clean(schema, child)
            result[name] = child
        unchanged = len(result) == len(value) and all(result[name] is value[name] for name in result)
        return value if unchanged else result

    def _list(self, parts: list[Schema], value: list[Any]) -> list[Any]:
        result = list(value)
        for part in parts:
            first, rest = places(part)
            result = [
                self.clean(first[index] if index < len(first) else rest, child) for index, child in enumerate(result)
            ]
        return value if all(new is old for new, old in zip(result, value, strict=True)) else result

    def _branch(self, branches: list[Node], value: Any) -> Any:
        if any(self._fits(branch, value) for branch in branches):
            return value
        for branch in branches:
            cleaned = self.clean(branch, value)
            if self._fits(branch, cleaned):
                return cleaned
        return value

    def _fits(self, schema: Node, value: Any) -> bool:
        """Whether the value has this shape: types, literals, required and closed objects, not sizes or patterns."""
        if isinstance(schema, bool):
            return schema
        if value is None:
            return accepts_null(self.root, schema)
        key = (id(schema), id(value))
        if key not in self._fitting:
            self._fitting[key] = (value, False)  # a schema that consists of itself accepts nothing new
            self._fitting[key] = (value, self._shaped(schema, value))
        return self._fitting[key][1]

    def _shaped(self, schema: Schema, value: Any) -> bool:
        for part in self._parts(schema):
            types = types_of(part)
            if types and not any(is_of(value, name) for name in types):
                return False
            if part.get("enum") and not any(same(value, one) for one in part["enum"]):
                return False
            if "const" in part and not same(value, part["const"]):
                return False
            for key in ("anyOf", "oneOf"):
                if key in part and not any(self._fits(branch, value) for branch in part[key]):
                    return False
            if is_dict(value) and not self._shaped_object(part, value):
                return False
            if is_list(value) and not self._shaped_list(part, value):
                return False
        return True

    def _shaped_object(self, part: Schema, value: dict[str, Any]) -> bool:
        declared: dict[str, Node] = part.get("properties", {})
        if any(name not in value for name in part.get("required", ())):
            return False
        others: Node = True if "patternProperties" in part else part.get("additionalProperties", True)
        return all(self._fits(declared.get(name, others), child) for name, child in value.items())

    def _shaped_list(self, part: Schema, value: list[Any]) -> bool:
        first, rest = places(part)
        return all(self._fits(first[index] if index < len(first) else rest, child) for index, child in enumerate(value))
