"""The OpenAPI document says what the service does: a small generated sample finds no answer outside of it."""

from __future__ import annotations

import pytest

from pollux_like.typed import ScriptedEngine
from pollux_like.typed.openapi import document
from pollux_like.typed.server import make_app

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from hypothesis import HealthCheck, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

CHECKS = [
    not_a_server_error,
    checks.response_schema_conformance,
    checks.status_code_conformance,
    checks.content_type_conformance,
]

api = schemathesis.openapi.from_dict(document())
api.app = make_app(ScriptedEngine())


@api.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_answer_is_one_of_the_document(case: object) -> None:
    response = case.call()  # type: ignore[attr-defined]
    assert response.status_code < 500
    case.validate_response(response, checks=CHECKS)  # type: ignore[attr-defined]
