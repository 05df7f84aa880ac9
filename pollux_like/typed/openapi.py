"""The OpenAPI 3.1 document of the service, made from the limits and words that the code checks by."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from pollux_like.typed import conversation, patterns, reading, rules, run, schema
from pollux_like.typed.answers import DECISIONS, STATUSES


def document() -> dict[str, Any]:
    """The document as JSON."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Typed conversations", "version": metadata.version("pollux-like")},
        "paths": {
            "/v1/typed": {"post": _post("typed", "TypedRequest", "TypedAnswer")},
            "/v1/typed/stream": {"post": _post("typedStream", "TypedRequest", None)},
            "/v1/generate": {"post": _post("generate", "GenerateRequest", "Generated")},
            "/v1/generate/stream": {"post": _post("generateStream", "GenerateRequest", None)},
            "/v1/models": {"get": _get("models")},
            "/health": {"get": _get("health")},
        },
        "components": {"schemas": _schemas()},
    }


def _post(name: str, body: str, answer: str | None) -> dict[str, Any]:
    if answer is None:
        found: dict[str, Any] = {"text/event-stream": {}}  # OpenAPI 3.1 has no schema of events
    else:
        found = {"application/json": {"schema": _ref(answer)}}
    statuses = {
        "400": "No JSON.", "404": "Another model was named.", "413": "Body or conversation too long.",
        "415": "A page of another site sent no JSON.", "422": "The request cannot be meant so.",
        "429": "The queue is full.", "500": "The service failed.", "502": "The engine failed.",
        "503": "No turn, or the engine is away.",
    }  # fmt: skip
    return {
        "operationId": name,
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref(body)}}},
        "responses": {
            "200": {"description": "The answer.", "content": found},
            **{status: _refusal(text, status) for status, text in statuses.items()},
        },
    }


def _refusal(text: str, status: str) -> dict[str, Any]:
    made: dict[str, Any] = {"description": text, "content": {"application/json": {"schema": _ref("Error")}}}
    if status in ("429", "503"):
        made["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    return made


def _get(name: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": name,
        "responses": {
            "200": {"description": "What is served.", "content": content},
            "503": _refusal("The engine is not open.", "503"),
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas() -> dict[str, Any]:
    text_part = {
        "type": "object", "required": ["type", "text"], "additionalProperties": False,
        "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    }  # fmt: skip
    message = {
        "type": "object", "required": ["role", "content"], "additionalProperties": False,
        "properties": {
            "role": {"enum": ["system", "user", "assistant"]},
            "content": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": text_part}]},
        },
    }  # fmt: skip
    shared = {
        "messages": {"type": "array", "minItems": 1, "maxItems": conversation.MAX_MESSAGES, "items": _ref("Message")},
        "context": {"type": "string", "minLength": 1},
        "system": {"type": "string", "minLength": 1},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        "model": {"type": "string"},
        "image": {"type": "null"},
    }
    some = [{"required": ["messages"]}, {"required": ["context"]}]
    tokens = {"type": "integer", "minimum": 1, "maximum": run.MAX_GENERATE_TOKENS}
    match = {"type": "array", "items": _ref("Match")}
    return {
        "Message": message,
        "TypedRequest": {
            "type": "object", "required": ["schema"], "additionalProperties": False, "anyOf": some,
            "properties": {
                **shared,
                "schema": {
                    "type": "object", "minProperties": 1, "maxProperties": schema.MAX_FIELDS,
                    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
                    "additionalProperties": _ref("Field"),
                },
                "previous": {"type": "object"},
            },
        },
        "GenerateRequest": {
            "type": "object", "additionalProperties": False, "anyOf": some,
            "properties": {**shared, "match": match, "max_tokens": tokens},
        },
        "Field": _field(),
        "Rule": {
            "type": "object", "required": ["when", "do"], "additionalProperties": False,
            "properties": {
                "when": {
                    "type": "object", "minProperties": 1, "additionalProperties": False,
                    "properties": dict.fromkeys(rules.TESTS, True),
                },
                "do": {"enum": list(rules.ACTIONS)},
                "call": {"type": "string"},
            },
        },
        "Match": {
            "type": "object", "required": ["pattern", "do"], "additionalProperties": False,
            "properties": {"pattern": {"type": "string"}, "do": {"enum": ["review", "reject", "null"]}},
        },
        "TypedAnswer": _answer(),
        "Generated": {"type": "object", "required": ["text", "decision", "rules", "finish", "provenance", "usage"]},
        "Error": {
            "type": "object", "required": ["error"],
            "properties": {"error": {"type": "object", "required": ["code", "message", "hint"]}},
        },
    }  # fmt: skip


def _field() -> dict[str, Any]:
    return {
        "type": "object", "required": ["type"], "additionalProperties": False,
        "properties": {
            "type": {"enum": list(schema.TYPES)},
            "description": {"type": "string", "maxLength": reading.MAX_TEXT_CHARS},
            "nullable": {"type": "boolean"}, "extract": {"type": "boolean"}, "free_form": {"type": "boolean"},
            "pattern": {"type": "string", "maxLength": patterns.MAX_PATTERN_CHARS},
            "format": {"enum": list(patterns.FORMATS)},
            "options": {"type": "array", "minItems": 1, "maxItems": schema.MAX_OPTIONS, "items": {"type": "string"}},
            "minimum": {"type": ["number", "string"]}, "maximum": {"type": ["number", "string"]},
            "items": _ref("Field"),
            "max_items": {"type": "integer", "minimum": 1, "maximum": schema.MAX_ITEMS},
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": schema.MAX_FIELD_TOKENS},
            "depends_on": {"type": "array", "items": {"type": "string"}},
            "call": {"type": "string"},
            "authority": {"enum": ["claim", "fact"]},
            "claims": {"type": "string"},
            "on": {"type": "array", "items": _ref("Rule")},
            "match": {"anyOf": [_ref("Match"), {"type": "array", "items": _ref("Match")}]},
        },
    }  # fmt: skip


def _answer() -> dict[str, Any]:
    number = {"type": ["number", "null"]}
    one = {
        "type": "object",
        "required": [
            "value", "confidence", "mass", "calibrated", "status", "evidence", "alternatives", "decision", "rules",
            "error",
        ],
        "properties": {
            "confidence": number, "mass": number, "calibrated": {"type": "boolean"},
            "status": {"enum": list(STATUSES)}, "decision": {"enum": list(DECISIONS)},
            "evidence": {"type": "array"}, "alternatives": {"type": "array"}, "rules": {"type": "array"},
            "error": {"type": ["object", "null"]},
        },
    }  # fmt: skip
    return {
        "type": "object",
        "required": ["values", "fields", "provenance", "usage"],
        "properties": {
            "values": {"type": "object"},
            "fields": {"type": "object", "additionalProperties": one},
            "provenance": {"type": "object"},
            "usage": {"type": "object"},
        },
    }
