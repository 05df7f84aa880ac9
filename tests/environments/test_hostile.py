"""Hostile input: an error each, the server lives, and the sessions of others are not touched."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import schemathesis
from environment_support import CONVERSATION, INSTANCES, Harbour
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pollux_like.environments import Limits, Server

EXAMPLES = 200 if os.environ.get("POLLUX_LIKE_SOAK") == "1" else 8

BODY = json.dumps({"task_spec": {"conversation": CONVERSATION}}).encode()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server with small limits."""
    with Server([Harbour], limits=Limits(body=20_000, body_s=0.3, sessions=200, setup_s=5)) as server:
        yield server


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
@given(data=st.data())
def hit(operation: Any, data: st.DataObject) -> None:
    """Requests that fit the document and requests that do not: each is answered as it says, and never by a failure."""
    mode = data.draw(st.sampled_from([schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]))
    case = data.draw(operation.as_strategy(generation_mode=mode))
    answer = case.call(timeout=30)
    assert answer.status_code < 500, (operation.label, answer.text)
    assert str(answer.status_code) in {*operation.definition.raw["responses"], "404", "405"}, (
        operation.label,
        answer.status_code,
    )


def test_the_server_keeps_to_its_document(guarded: Server) -> None:
    schema = schemathesis.openapi.from_url(f"{guarded.base_url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 19
    for operation in operations:
        hit(operation)


@pytest.fixture
def innocent(guarded: Server) -> Iterator[httpx2.Client]:
    """Another session, which must be as it was."""
    with httpx2.Client(base_url=guarded.base_url, headers={"X-Session-ID": "innocent"}, timeout=30) as http:
        assert http.post("/create", content=BODY).status_code == 200
        yield http
        answer = http.get("/messages")
        assert (answer.status_code, len(answer.json())) == (200, 4)
        assert http.post("/delete").status_code == 200


BODIES: list[bytes] = [
    b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"task_spec": {}, "task_spec": {}, "x": 1}', b'{"task_spec": NaN}',
    b'{"task_spec": {"a": 1e999}, "index": 0}', b'{"task_spec": {"a": "\\ud800"}}', b"[" * 9_000,
    b'{"task_spec": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}", b'{"split": "train"}', b'{"split": "train", "index": 1e400}',
    b'{"split": "train", "index": ' + b"9" * 5000 + b"}", b'{"name": "board", "input": []}', b'{"name": 3, "input": {}}',
    b'{"name": "__init__", "input": {}}', b'{"name": "setup", "input": {}}', b'{"candidates": [{"messages": [{"role": "user"}]}]}',
]  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/create", "/call", "/score_group", "/tasks", "/task", "/task_range", "/create_session"]
)
def test_malformed_bodies(innocent: httpx2.Client, path: str) -> None:
    for number, body in enumerate(BODIES):
        headers = {"X-Session-ID": f"bad-{number}"} if path == "/create" else {}
        answer = innocent.post(path, content=body, headers=headers)
        if answer.status_code == 200:
            fits = body == b'{"split": "train"}' and path in ("/tasks", "/task_range")
            assert fits or (body, path) == (b"", "/create_session") or b"not_found" in answer.content, body
        else:
            assert 400 <= answer.status_code < 500, (body, answer.text)
            assert answer.json()["detail"]


def test_oversized_bodies(innocent: httpx2.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(50):
            yield b" " * 1000

    for content in (b"x" * 20_001, endless()):
        with httpx2.Client(base_url=innocent.base_url) as http:
            try:
                assert http.post("/call", content=content, headers={"X-Session-ID": "innocent"}).status_code == 413
            except httpx2.TransportError:  # the server had answered and closed before all was sent
                assert not isinstance(content, bytes)


@pytest.mark.parametrize(
    "sid", ["forged", "INNOCENT", "innocent ", "innocent\x7f", "x" * 257, "../innocent", "%69nnocent"]
)
def test_forged_session_ids(innocent: httpx2.Client, sid: str) -> None:
    address = httpx2.URL(innocent.base_url)
    for method, path in (("GET", "/messages"), ("GET", "/task_tools"), ("POST", "/ping"), ("GET", "/prompt")):
        raw = spoken(
            address,
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-Session-ID: {sid}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode(),
            whole=False,
        )
        if sid.strip() == "innocent":
            assert raw.startswith(b"HTTP/1.1 200")  # header values are trimmed by every parser
        else:
            assert raw.split()[1] in (b"400", b"404"), raw[:100]


def spoken(address: httpx2.URL, request: bytes, *, whole: bool = True) -> bytes:
    """What the server says to raw bytes before it closes."""
    with socket.create_connection((address.host, address.port or 80), timeout=10) as raw:
        raw.sendall(request)
        if whole:
            raw.shutdown(socket.SHUT_WR)
        said = b""
        while data := raw.recv(65536):
            said += data
        return said


def test_slow_clients_are_answered_and_closed(innocent: httpx2.Client) -> None:
    head = b"POST /call HTTP/1.1\r\nHost: x\r\nX-Session-ID: innocent\r\nContent-Length: 100\r\n\r\n{"
    said = spoken(httpx2.URL(innocent.base_url), head, whole=False)
    assert said.startswith(b"HTTP/1.1 408")


def test_garbage_instead_of_http(innocent: httpx2.Client) -> None:
    rng = random.Random(4)
    for _ in range(30):
        said = spoken(httpx2.URL(innocent.base_url), rng.randbytes(200) + b"\r\n\r\n")
        assert said == b"" or said.startswith(b"HTTP/1.1 400")


def test_a_client_that_leaves_in_the_middle_of_a_stream(innocent: httpx2.Client) -> None:
    address = httpx2.URL(innocent.base_url)
    body = json.dumps({"name": "echo", "input": {"text": "x" * 15_000}}).encode()
    head = f"POST /call HTTP/1.1\r\nHost: x\r\nX-Session-ID: innocent\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(10):
        with socket.create_connection((address.host, address.port or 80), timeout=10) as raw:
            raw.sendall(head + body)
            raw.recv(10)
    while INSTANCES[-1].log.count("echo") < 10:  # each call was run to its end, once
        innocent.post("/ping")
    assert INSTANCES[-1].log.count("echo") == 10
