"""The OpenAPI document of a server, made from the bodies that it checks."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from pollux_like.environments import bodies

_SID = {"name": "X-Session-ID", "in": "header", "required": True, "schema": {"type": "string", "minLength": 1}}
_JSON: dict[str, Any] = {"application/json": {"schema": {}}}
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
_ERROR = {"application/json": {"schema": {"type": "object", "required": ["detail"]}}}

_ROOT: tuple[tuple[str, str, str, type[BaseModel] | None, bool, tuple[int, ...]], ...] = (
    ("get", "/health", "Whether the server is alive", None, False, ()),
    ("get", "/version", "Its version", None, False, ()),
    ("get", "/list_environments", "The names of the environments, the default first", None, False, ()),
    ("post", "/create_session", "A session id; nothing is made", bodies.Empty, False, (408, 413, 422)),
    ("post", "/delete_session", "Nothing to release", None, True, (400,)),
    ("post", "/create", "Make an environment for a task", bodies.Create, True, (400, 404, 408, 413, 422, 429, 500)),
    ("post", "/delete", "End a session", None, True, (400,)),
    ("post", "/ping", "Keep a session", None, True, (400, 404)),
)
_OWN: tuple[tuple[str, str, str, type[BaseModel] | None, bool, tuple[int, ...]], ...] = (
    ("get", "/splits", "The splits", None, False, (404, 500)),
    ("post", "/tasks", "All tasks of a split", bodies.OfSplit, False, (400, 404, 408, 413, 422, 500)),
    ("post", "/num_tasks", "The number of tasks of a split", bodies.OfSplit, False, (400, 404, 408, 413, 422, 500)),
    ("post", "/task", "One task", bodies.OfTask, False, (400, 404, 408, 413, 422, 500)),
    ("post", "/task_range", "A slice of the tasks", bodies.OfRange, False, (400, 404, 408, 413, 422, 500)),
    ("get", "/tools", "The tools of the class", None, False, (404, 500)),
    ("get", "/task_tools", "The tools of the session's task", None, True, (400, 404, 410, 500)),
    ("post", "/call", "Run a tool", bodies.Call, True, (400, 404, 408, 409, 410, 413, 422, 429, 500, 503)),
    ("get", "/prompt", "The task as blocks", None, True, (400, 404, 410, 500, 503)),
    ("get", "/messages", "The task as a conversation", None, True, (400, 404, 410, 500, 503)),
    ("post", "/score_group", "Score answers against each other", bodies.ScoreGroup, True,
     (400, 404, 408, 409, 410, 413, 422, 429, 500, 503)),
)  # fmt: skip
_STREAMED = ("/create_session", "/call", "/score_group")


def document(version: str, environments: list[str]) -> dict[str, Any]:
    """OpenAPI 3.1: the root routes, and those of an environment under its name."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    env = {"name": "env", "in": "path", "required": True, "schema": {"type": "string", "enum": environments}}
    for method, path, summary, body, session, statuses in _ROOT:
        paths[path] = {method: _operation(path, summary, body, [_SID] if session else [], statuses, schemas)}
    for method, path, summary, body, session, statuses in _OWN:
        parameters = [env, _SID] if session else [env]
        paths[f"/{{env}}{path}"] = {method: _operation(path, summary, body, parameters, statuses, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "pollux_like environments", "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


def _operation(
    path: str,
    summary: str,
    body: type[BaseModel] | None,
    parameters: list[dict[str, Any]],
    statuses: tuple[int, ...],
    schemas: dict[str, Any],
) -> dict[str, Any]:
    content: dict[str, Any] = _EVENTS if path in _STREAMED else _JSON
    responses: dict[str, Any] = {"200": {"description": "Done", "content": content}}
    for status in (401, *statuses):
        responses[str(status)] = {"description": "Refused" if status < 500 else "Failed", "content": _ERROR}
    operation: dict[str, Any] = {
        "operationId": path.strip("/"), "summary": summary, "parameters": parameters, "responses": responses,
        "security": [{}, {"bearer": []}],
    }  # fmt: skip
    if body is not None:
        schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": path != "/create_session", "content": content}
    return operation
