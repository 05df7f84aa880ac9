"""Older spellings written as draft 2020-12 has them, for APIs that check every schema against that draft."""

from __future__ import annotations

import re

from pollux_like.schemas.walker import Schema, is_list, locate, nodes, rewrite, types_of


def modern(root: Schema, *, array_items: bool = False) -> tuple[Schema, list[tuple[str, str]]]:
    """Tuples as `prefixItems` (draft-07 has a list in `items`), empty enums left out; the meaning stays.

    With `array_items` every array also gets `items`, which may be `{}`. Losses are (JSON pointer, clause).
    """
    losses = [(path, "an empty 'enum' was left out") for path, node in nodes(root) if node.get("enum") == []]

    def change(node: Schema) -> Schema:
        if node.get("enum") == []:
            node = {key: value for key, value in node.items() if key != "enum"}
        if is_list(node.get("items")):
            rest = {key: value for key, value in node.items() if key not in ("items", "additionalItems")}
            more = {"items": node["additionalItems"]} if "additionalItems" in node else {}
            node = {**rest, **({"prefixItems": node["items"]} if node["items"] else {}), **more}
        if array_items and "items" not in node and "array" in types_of(node):
            node = {**node, "items": {}}
        return node

    result = rewrite(root, change)
    assert isinstance(result, dict)
    return _repointed(root, result), losses


def _repointed(before: Schema, after: Schema) -> Schema:
    """References into a list of `items` follow it into `prefixItems`."""

    def change(node: Schema) -> Schema:
        ref = node.get("$ref")
        if ref is None:
            return node
        try:
            locate(after, ref)
        except LookupError:
            return {**node, "$ref": re.sub(r"/items/(\d+)(?=/|$)", r"/prefixItems/\1", ref)}
        return node

    if before == after:
        return after
    result = rewrite(after, change)
    assert isinstance(result, dict)
    return result
