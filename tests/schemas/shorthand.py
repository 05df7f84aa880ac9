"""Short ways to say what the tests of normalisation say often."""

from __future__ import annotations

from typing import Any

from pollux_like.schemas import normalise


def openai(schema: Any, *, strict: bool = True) -> dict[str, Any]:
    result = normalise(schema, "openai", strict=strict, name="f")
    assert result.strict is strict, result.losses
    return result.schema


def anthropic(schema: Any, *, strict: bool = True) -> dict[str, Any]:
    result = normalise(schema, "anthropic", strict=strict, name="f")
    assert result.strict is strict, result.losses
    return result.schema


def why(schema: Any, dialect: str = "openai") -> str:
    result = normalise(schema, dialect, strict=True, name="f")
    assert not result.strict
    return result.losses[0]


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def optional(schema: Any, **more: Any) -> Any:
    """How OpenAI strict sees one optional property."""
    result = openai({**of(p=schema), **more})
    assert result["required"] == ["p"]
    return result["properties"]["p"]
