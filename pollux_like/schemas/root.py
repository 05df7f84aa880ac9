"""The root of a tool's parameters: always one object with properties, without a union around it."""

from __future__ import annotations

from typing import Any, Final

from pollux_like.canonical import dumps
from pollux_like.schemas.merge import Unmergeable, merged, written_out
from pollux_like.schemas.walker import DEFINITIONS, MERELY_TOLD, Schema, is_dict, locate, nodes, rewrite, step

MAX_TOLD: Final = 2_000
"""Longest JSON text, in characters, of a removed constraint that is still written into the description."""

_UNIONS: Final = ("anyOf", "oneOf", "allOf")


def object_root(root: Schema) -> tuple[Schema, list[tuple[str, str]]]:
    """The root as `type: object` with `properties`; a root `$ref` is written out. Nothing else changes.

    A schema that asks for nothing at all (`{}`, or `type: object` alone) becomes the empty closed object: a tool
    without parameters. Losses are (JSON pointer, clause).
    """
    losses: list[tuple[str, str]] = []
    seen: set[str] = set()
    while "$ref" in root:
        pointer, target = locate(root, root["$ref"])
        if pointer in seen or not isinstance(target, dict):
            break
        seen.add(pointer)
        beside = {key: value for key, value in root.items() if key != "$ref"}
        if set(beside) <= MERELY_TOLD:
            root = {**target, **beside}
        else:
            kept = {key: value for key, value in beside.items() if key in DEFINITIONS}
            rest = {key: value for key, value in beside.items() if key not in DEFINITIONS}
            root = {**kept, "allOf": [target, rest]}
    if set(root) - {"type"} <= MERELY_TOLD:
        root = {**root, "additionalProperties": False}
    if root.get("type", "object") != "object":
        losses.append(("", "the root is an object only; its other types were left out"))
    if "nullable" in root:
        root = {key: value for key, value in root.items() if key != "nullable"}
    return {**root, "type": "object", "properties": root.get("properties", {})}, losses


def merged_root(root: Schema) -> Schema:
    """The root with its `allOf` merged into it where that is plain; otherwise as it was."""
    if "allOf" not in root:
        return root
    try:
        result = written_out(root, merged(root, root, ""), "")
    except Unmergeable:
        return root
    merged_away = {**_keep_targets(root, ["allOf"]), **{k: v for k, v in result.items() if k not in DEFINITIONS}}
    return _repointed(merged_away, ["allOf"])


def without(root: Schema, keywords: tuple[str, ...]) -> tuple[Schema, list[tuple[str, str]]]:
    """The root without the given keywords: told in the description, and the branches' properties lifted to the root.

    A union of whole objects thus still shows every property; which of them go together is text.
    """
    present = [key for key in keywords if key in root]
    if not present:
        return root, []
    losses: list[tuple[str, str]] = []
    result: Schema = {**_keep_targets(root, present)}
    result.update({k: v for k, v in root.items() if k not in present and k not in DEFINITIONS})
    told = dumps({key: root[key] for key in present})
    for key in present:
        if key in _UNIONS:
            result.update(_lifted(root, result, key))
    if len(told) <= MAX_TOLD:
        about = root.get("description")
        text = f"The arguments must also satisfy: {told}"
        result["description"] = f"{about} {text}" if about else text
    for key in present:
        how = "it is told in the description" if len(told) <= MAX_TOLD else "it is too long for the description"
        losses.append((step("", key), f"{key!r} at the root is not accepted there; {how}"))
    return _repointed(result, present), losses


def _lifted(root: Schema, result: Schema, key: str) -> Schema:
    """`properties` and `required` of the result with those of the branches added."""
    branches: list[Schema] = []
    for index, branch in enumerate(root[key]):
        if is_dict(branch):
            try:
                branches.append(written_out(root, branch, step("", key, index)))
            except Unmergeable:
                continue
    properties: dict[str, Any] = dict(result.get("properties", {}))
    added: dict[str, list[Any]] = {}
    for branch in branches if root.get("additionalProperties") is not False else []:
        for name, schema in branch.get("properties", {}).items():
            if name not in properties and schema not in added.setdefault(name, []):
                added[name].append(schema)
    for name, schemas in added.items():
        properties[name] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    required: dict[str, None] = dict.fromkeys(result.get("required", ()))
    sets: list[set[str]] = [set(branch.get("required", ())) for branch in branches]
    if sets and len(branches) == len(root[key]):
        common = set[str]().union(*sets) if key == "allOf" else sets[0].intersection(*sets)
        required |= dict.fromkeys(name for name in properties if name in common)
    return {"properties": properties, **({"required": list(required)} if required else {})}


def _keep_targets(root: Schema, removed: list[str]) -> Schema:
    """The definitions, with the removed keywords among them where a reference leads into one of these."""
    kept: Schema = {key: root[key] for key in root if key in DEFINITIONS}
    refs = [node["$ref"] for _, node in nodes(root) if "$ref" in node]
    moved = {k: root[k] for k in removed if any(ref == f"#/{k}" or ref.startswith(f"#/{k}/") for ref in refs)}
    if moved:
        kept["$defs"] = {**kept.get("$defs", {}), "_root": moved}
    return kept


def _repointed(root: Schema, removed: list[str]) -> Schema:
    """References into the removed keywords lead to where `_keep_targets` put these."""

    def change(node: Schema) -> Schema:
        ref = node.get("$ref", "")
        return {**node, "$ref": "#/$defs/_root/" + ref[2:]} if ref.split("/")[1:2] in ([k] for k in removed) else node

    result = rewrite(root, change)
    assert isinstance(result, dict)
    return result
