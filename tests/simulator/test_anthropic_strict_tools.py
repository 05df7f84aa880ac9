"""The limits of strict tools on the Messages API, at the limit and one above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

Ask = Callable[..., httpx2.Response]


def strict(name: str, properties: dict[str, Any], required: list[str], **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}
    return {"name": name, "strict": True, "input_schema": schema}


def many(count: int) -> list[dict[str, Any]]:
    return [strict(f"t{n}", {}, []) for n in range(count)]


def optional(count: int) -> list[dict[str, Any]]:
    return [strict("f", {f"p{n}": {"type": "string"} for n in range(count)}, [])]


def unions(count: int) -> list[dict[str, Any]]:
    names = [f"p{n}" for n in range(count)]
    return [strict("f", {name: {"type": ["string", "null"]} for name in names}, names)]


@pytest.mark.parametrize(
    ("make", "limit", "message"),
    [
        (many, 20, "Too many strict tools (21). The maximum number of strict tools supported is 20."),
        (optional, 24, "Schemas contains too many optional parameters (25)"),
        (unions, 16, "Schemas contains too many parameters with union types (17 parameters"),
    ],
)
def test_limits(claude: Ask, make: Callable[[int], list[dict[str, Any]]], limit: int, message: str) -> None:
    assert claude(tools=make(limit)).status_code == 200
    response = claude(tools=make(limit + 1))
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(message)


def test_circles_and_open_objects(claude: Ask) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    node["additionalProperties"] = False
    tool = strict("f", {"n": {"$ref": "#/$defs/Node"}}, ["n"], **{"$defs": {"Node": node}})
    assert "Circular reference detected in schema definitions: Node -> Node." in claude(tools=[tool]).text
    loose = {"name": "f", "strict": True, "input_schema": {"type": "object", "properties": {}}}
    assert "must be explicitly set to false" in claude(tools=[loose]).text
    assert claude(tools=[{**loose, "strict": False}]).status_code == 200
    assert claude(tools=[{**tool, "strict": False}]).status_code == 200


def test_the_output_format_counts_too(claude: Ask) -> None:
    schema = optional(5)[0]["input_schema"]
    fmt = {"format": {"type": "json_schema", "schema": schema}}
    assert claude(output_config=fmt).status_code == 200
    assert claude(output_config=fmt, tools=optional(20)).status_code == 400
