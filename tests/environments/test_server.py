"""The server by its own protocol: statuses, sessions that are made once, tools that run in order and answer always."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from environment_support import CONVERSATION, GATES, INSTANCES, TASK, called, events, opened

from pollux_like.environments import (
    Server,
    ToolOutput,
)


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A plain client."""
    with httpx2.Client(base_url=server.base_url, timeout=30) as client:
        yield client


def test_the_routes_of_the_root_and_of_an_environment(http: httpx2.Client) -> None:
    assert http.get("/health").json() == {"status": "ok"}
    assert http.get("/version").json().keys() == {"version", "build_sha"}
    assert http.get("/list_environments").json() == ["harbour", "prompted"]
    for prefix in ("", "/harbour", "/HARBOUR"):
        assert http.get(f"{prefix}/splits").json() == [
            {"name": "train", "type": "train"}, {"name": "test", "type": "test"}, {"name": "odd", "type": "validation"}
        ]  # fmt: skip
    assert http.post("/num_tasks", json={"split": "train"}).json() == {"num_tasks": 3}
    assert http.post("/task", json={"split": "train", "index": "-1"}).json()["task"]["id"] == "train-2"
    assert http.post("/harbour/task", json={"split": "train", "index": True}).json()["env_name"] == "harbour"
    ranges = {(0, 2): 2, (-1, None): 1, (2, 1): 0, (None, 99): 3}
    for (start, stop), number in ranges.items():
        body = {"split": "test", "start": start, "stop": stop}
        assert len(http.post("/task_range", json=body).json()["tasks"]) == number


@pytest.mark.parametrize("path", ["/health", "/splits", "/harbour/tools", "/messages"])
def test_head_is_a_wrong_method(http: httpx2.Client, path: str) -> None:
    """The protocol's table of statuses: 405 for "wrong method (HEAD on GET routes too)"."""
    assert http.head(path).status_code == 405


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/task", {"split": "train", "index": 3}, 400), ("POST", "/tasks", {"split": "no"}, 400),
        ("POST", "/tasks", {"split": "train", "x": 1}, 422), ("POST", "/tasks", {}, 422), ("GET", "/no", None, 404),
        ("GET", "/no/splits", None, 404), ("POST", "/splits", {}, 405), ("POST", "/create", TASK, 400),
        ("POST", "/ping", None, 400),
    ],
)  # fmt: skip
def test_refusals_are_json_with_a_detail(http: httpx2.Client, method: str, path: str, body: Any, status: int) -> None:
    answer = http.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_tool_entries_have_exactly_three_keys(http: httpx2.Client) -> None:
    document = http.get("/tools").json()
    assert {frozenset(entry) for entry in document["tools"]} == {frozenset({"name", "description", "input_schema"})}
    assert document["terminal_tool"] == {"name": "answer", "arg": "text", "description": "Take the answer."}
    assert document["message_block_types"] == ["text", "image", "reasoning", "tool_call", "tool_result"]
    assert "answer" not in [entry["name"] for entry in document["tools"]]


def test_create_is_made_once_for_one_request_and_refused_for_another(http: httpx2.Client) -> None:
    headers = {"X-Session-ID": "once"}
    with ThreadPoolExecutor(8) as pool:
        bodies = [TASK] * 8
        answers = list(pool.map(lambda body: http.post("/create", json=body, headers=headers), bodies))
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"sid": "once"})] * 8
    assert len(INSTANCES) == 1
    other = http.post("/create", json={"task_spec": {}}, headers=headers)
    assert (other.status_code, len(INSTANCES)) == (400, 1)
    secret = {**headers, "X-Secrets": base64.b64encode(b'{"a": {"value": "b"}}').decode()}
    assert http.post("/create", json=TASK, headers=secret).status_code == 400
    assert http.post("/delete", headers=headers).status_code == 200
    assert http.post("/create", json={"task_spec": {}}, headers=headers).status_code == 200


def test_secrets_reach_the_constructor_and_bad_ones_are_a_400_that_does_not_quote_them(http: httpx2.Client) -> None:
    header = base64.b64encode(json.dumps({"pass": {"value": "12345", "allowed_domains": []}}).encode()).decode()
    assert http.post("/create", json=TASK, headers={"X-Session-ID": "s", "X-Secrets": header}).status_code == 200
    assert dict(INSTANCES[-1].secrets) == {"pass": "12345"}
    for bad in ("secretword", base64.b64encode(b'{"pass": "secretword"}').decode(), base64.b64encode(b"[1]").decode()):
        answer = http.post("/create", json=TASK, headers={"X-Session-ID": "t", "X-Secrets": bad})
        assert answer.status_code == 400
        assert "secretword" not in answer.text


def test_a_failed_setup_is_told_to_every_request_of_its_session(http: httpx2.Client) -> None:
    headers = opened(http, "setup", {"task_spec": {"setup": "no crane", "conversation": []}})
    for _ in range(2):
        answer = http.get("/messages", headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (500, "RuntimeError: no crane")
    assert http.get("/task_tools", headers=headers).status_code == 200
    assert http.post("/delete", headers=headers).status_code == 200


def test_a_constructor_that_fails_leaves_no_session(server: Server, http: httpx2.Client) -> None:
    before = server.open_sessions
    answer = http.post("/create", json={"split": "train", "index": 7}, headers={"X-Session-ID": "born"})
    assert (answer.status_code, server.open_sessions) == (400, before)
    assert http.get("/messages", headers={"X-Session-ID": "born"}).status_code == 404


def test_a_bad_conversation_is_a_short_500_and_the_session_lives(http: httpx2.Client) -> None:
    bad = [CONVERSATION[1], {"role": "user", "blocks": [{"type": "reasoning", "text": "private"}]}]
    headers = opened(http, "bad", {"task_spec": {"conversation": bad}})
    answer = http.get("/messages", headers=headers)
    assert answer.status_code == 500
    assert "a reasoning block stands in a user message, at blocks[0]" in answer.json()["detail"]
    assert "private" not in answer.text
    assert called(http, headers, "board", pier=1)["ok"] is True


def test_the_result_of_a_call_is_replayed_to_its_own_session_and_call_only(http: httpx2.Client) -> None:
    mine, other = opened(http, "mine"), opened(http, "other")
    first = events(http.post("/call", json={"name": "board", "input": {"pier": 1}}, headers=mine))
    again = {"name": "board", "input": {"pier": 1}, "task_id": first[0][1]}
    assert events(http.post("/call", json=again, headers=mine)) == first
    for headers, body in (
        (other, again),
        (mine, {**again, "input": {"pier": 2}}),
        (mine, {**again, "name": "echo"}),
        (mine, {**again, "task_id": "x"}),
    ):
        assert events(http.post("/call", json=body, headers=headers)) == [("error", "unknown task_id")]
    assert sum(instance.log.count("board 1") for instance in INSTANCES) == 1


def test_a_call_id_runs_a_tool_once(http: httpx2.Client) -> None:
    headers = {**opened(http, "call-id"), "X-Call-ID": "7"}
    body = {"name": "board", "input": {"pier": 1}}
    assert events(http.post("/call", json=body, headers=headers)) == events(
        http.post("/call", json=body, headers=headers)
    )
    assert http.post("/call", json={"name": "board", "input": {"pier": 2}}, headers=headers).status_code == 409
    assert INSTANCES[-1].log == ["setup", "board 1"]


def test_delete_cancels_answers_the_waiting_client_and_tears_down_last(http: httpx2.Client) -> None:
    GATES["a"] = threading.Event()
    headers = opened(http, "cancel")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.post, "/call", json={"name": "wait", "input": {"text": "a"}}, headers=headers)
        while "wait a" not in INSTANCES[-1].log:
            http.get("/health")
        assert http.post("/delete", headers=headers).json() == {"sid": "cancel"}
        (event, said) = events(waiting.result())[-1]
    assert (event, "cancelled" in said) == ("error", True)
    assert INSTANCES[-1].log == ["setup", "wait a", "teardown"]
    assert http.post("/delete", headers=headers).status_code == 200


def test_teardown_waits_for_a_tool_that_nobody_can_stop(http: httpx2.Client) -> None:
    GATES["b"] = threading.Event()
    headers = opened(http, "thread")
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(http.post, "/call", json={"name": "block", "input": {"text": "b"}}, headers=headers)
        while "block b" not in INSTANCES[-1].log:
            http.get("/health")
        deleting = pool.submit(http.post, "/delete", headers=headers)
        assert events(waiting.result())[-1][0] == "error"  # answered while the thread still runs
        assert "teardown" not in INSTANCES[-1].log
        GATES["b"].set()
        assert deleting.result().status_code == 200
    assert INSTANCES[-1].log == ["setup", "block b", "blocked b", "teardown"]


def test_calls_after_the_end_of_an_episode_are_refused(http: httpx2.Client) -> None:
    headers = opened(http, "end")
    assert called(http, headers, "sail")["output"]["finished"] is True
    for name, given in (("board", {"pier": 1}), ("answer", {"text": "10:10"})):
        assert called(http, headers, name, **given)["reason"] == "episode_finished"
    assert INSTANCES[-1].log == ["setup"]


def test_an_exclusive_tool_waits_for_what_runs(http: httpx2.Client) -> None:
    GATES["c"] = threading.Event()
    headers = opened(http, "exclusive")
    with ThreadPoolExecutor(3) as pool:
        waiting = pool.submit(called, http, headers, "wait", text="c")
        while "wait c" not in INSTANCES[-1].log:
            http.get("/health")
        sailing = pool.submit(called, http, headers, "sail")
        GATES["c"].set()
        assert waiting.result()["ok"] is True
        assert sailing.result()["output"]["reward"] == 1.0


def test_a_result_that_json_cannot_carry_is_an_error_and_not_a_null(http: httpx2.Client) -> None:
    headers = opened(http, "nan")
    with pytest.raises(ValueError, match="finite"):
        ToolOutput(blocks=[], reward=float("nan"))
    body = b'{"name": "board", "input": {"pier": NaN}}'
    assert http.post("/call", content=body, headers=headers).status_code == 422
    storm = events(http.post("/call", json={"name": "storm", "input": {}}, headers=headers))
    assert storm[-1] == ("error", "RuntimeError: a storm:\n    the pier is closed")


def test_prompt_and_messages_default_to_each_other(http: httpx2.Client) -> None:
    headers = opened(http, "prompted", {"env_name": "Prompted", "split": "train", "index": 0})
    blocks = [{"text": text, "detail": None, "type": "text"} for text in ("Name a river.", "  Then a lake.")]
    assert http.get("/prompt", headers=headers).json() == blocks
    assert http.get("/messages", headers=headers).json() == [{"role": "user", "blocks": blocks, "detail": None}]
    flat = http.get("/prompt", headers=opened(http, "flat")).json()
    assert [block["text"] for block in flat[:2]] == ["[system]", "You work at the harbour."]
