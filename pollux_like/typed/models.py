"""A pydantic model as a schema: its fields become typed fields.

`str` is copied from the conversation (`extract`), unless the field says otherwise; `Optional` is nullable; `Literal`
and enums of text are enum; `int`, `float`, `bool`, `date` and lists of them are themselves; bounds and descriptions are
kept. `Field(json_schema_extra={"typed": {…}})` sets or replaces any key of the typed field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pollux_like.errors import SchemaError

_TYPES = {"integer": "int", "number": "float", "boolean": "bool", "string": "string", "array": "list"}
_BOUNDS = {"minimum": "minimum", "maximum": "maximum"}


def is_model(schema: object) -> bool:
    """Whether the schema is a pydantic model class."""
    return isinstance(schema, type) and hasattr(schema, "model_json_schema")


def schema_of(model: Any) -> dict[str, Any]:
    """The typed schema of a model. Raises SchemaError for a field that has no typed form, naming it."""
    whole: dict[str, Any] = model.model_json_schema(by_alias=False)
    named: dict[str, Any] = whole.get("$defs", {})
    return {
        name: _field(spec, named, f"schema.{name}")
        for name, spec in cast("dict[str, dict[str, Any]]", whole.get("properties", {})).items()
    }


def _field(spec: Mapping[str, Any], named: Mapping[str, Any], path: str) -> dict[str, Any]:
    said: dict[str, Any] = dict(spec.get("typed", {}))
    nullable, plain = _without_null(_resolved(spec, named), named)
    made: dict[str, Any] = {"nullable": True} if nullable else {}
    if isinstance(spec.get("description"), str):
        made["description"] = spec["description"][:500]
    if said.get("type") == "call":
        return {**made, **said}
    return {**made, **_typed(plain, named, path, said), **said}


def _typed(plain: Mapping[str, Any], named: Mapping[str, Any], path: str, said: Mapping[str, Any]) -> dict[str, Any]:
    options = plain.get("enum", [plain["const"]] if "const" in plain else None)
    if options is not None:
        if not all(isinstance(option, str) for option in options):
            raise _bad(path)
        return {"type": "enum", "options": list(options)}
    kind = _TYPES.get(str(plain.get("type")))
    if kind is None:
        raise _bad(path)
    if kind == "list":
        items = plain.get("items")
        if not isinstance(items, Mapping):
            raise _bad(path)
        inner = _resolved(cast("Mapping[str, Any]", items), named)
        most = {"max_items": plain["maxItems"]} if "maxItems" in plain else {}
        return {"type": "list", "items": _typed(inner, named, f"{path}.items", {}), **most}
    if kind == "string" and plain.get("format") == "date":
        return {"type": "date"}
    if kind == "string":
        if "free_form" in said:
            return {"type": "string"}
        pattern = {"pattern": plain["pattern"]} if "pattern" in plain and "format" not in said else {}
        return {"type": "string", "extract": True, **pattern}
    return {"type": kind, **{key: plain[key] for key in _BOUNDS if key in plain and kind in ("int", "float")}}


def _without_null(spec: Mapping[str, Any], named: Mapping[str, Any]) -> tuple[bool, Mapping[str, Any]]:
    kinds = spec.get("anyOf")
    if not isinstance(kinds, list):
        return False, spec
    left = [one for one in cast("list[dict[str, Any]]", kinds) if one.get("type") != "null"]
    return len(left) < len(cast("list[Any]", kinds)), _resolved(left[0], named) if len(left) == 1 else {}


def _resolved(spec: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = spec.get("$ref")
    if isinstance(reference, str):
        return cast("Mapping[str, Any]", named.get(reference.rsplit("/", 1)[-1], {}))
    return spec


def _bad(path: str) -> SchemaError:
    return SchemaError(
        f"{path} has a type that is read out of no conversation",
        hint='Use str, int, float, bool, date, Literal of text, lists of them, or set {"typed": {…}}',
        path=path,
    )
