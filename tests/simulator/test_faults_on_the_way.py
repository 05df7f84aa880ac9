"""Every scripted fault is seen by the client as what it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from pollux_like.errors import ConfigurationError
from pollux_like.simulator import Fault, Simulator
from pollux_like.testing.script import answer, say

Ask = Callable[..., httpx2.Response]
LONG = say("one two three four five six seven eight nine ten")
USER: Any = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (408, "timeout_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_anthropic_statuses(sim: Simulator, anthropic_sdk: anthropic.Anthropic, status: int, kind: str) -> None:
    sim.fail(status)
    with pytest.raises(anthropic.APIStatusError) as caught:
        anthropic_sdk.messages.create(model="claude-haiku-4-5", max_tokens=10, messages=USER)
    assert caught.value.status_code == status
    assert caught.value.type == kind
    assert caught.value.request_id is not None
    assert sim.requests[-1].status == status


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 429, 500, 503])
def test_openai_statuses(sim: Simulator, openai_sdk: openai.OpenAI, status: int) -> None:
    sim.fail(status)
    with pytest.raises(openai.APIStatusError) as caught:
        openai_sdk.responses.create(model="gpt-5.5", input="Hi")
    assert caught.value.status_code == status
    assert caught.value.type is not None
    assert (caught.value.request_id or "").startswith("req_")


def test_failures_take_their_place_in_the_queue(sim: Simulator, gpt: Ask) -> None:
    sim.reply("first")
    sim.fail(429, retry_after=1, times=2)
    sim.reply("last")
    assert [gpt().status_code for _ in range(4)] == [200, 429, 429, 200]
    assert sim.left == 0


def test_retry_after_as_seconds_and_as_a_date(sim: Simulator, gpt: Ask) -> None:
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=30)
    sim.fail(429, retry_after=1.5)
    sim.fail(503, retry_after=moment)
    assert gpt().headers["retry-after"] == "1.5"
    assert parsedate_to_datetime(gpt().headers["retry-after"]) == moment


def test_quota_is_told_from_rate(sim: Simulator, gpt: Ask) -> None:
    sim.fail(429, code="insufficient_quota")
    sim.fail(429)
    assert gpt().json()["error"]["type"] == "insufficient_quota"
    assert gpt().json()["error"]["code"] == "rate_limit_exceeded"


def test_the_connection_breaks_after_some_events(sim: Simulator, gpt: Ask, http: httpx2.Client) -> None:
    sim.fault(LONG, cut_after=4)
    seen: list[str] = []
    with (
        pytest.raises(httpx2.RemoteProtocolError),
        http.stream(
            "POST", sim.base_url("openai") + "/responses", json={"model": "m", "input": "x", "stream": True}
        ) as r,
    ):
        seen.extend(line for line in r.iter_lines() if line.startswith("event:"))
    assert len(seen) == 4


def test_the_connection_breaks_after_some_bytes(sim: Simulator, claude: Ask, http: httpx2.Client) -> None:
    sim.fault(LONG, cut_after_bytes=100, times=2)
    for stream in (True, False):
        body = {"model": "claude-haiku-4-5", "max_tokens": 5, "messages": USER, "stream": stream}
        got: list[bytes] = []
        with (
            pytest.raises(httpx2.RemoteProtocolError),
            http.stream("POST", sim.base_url("anthropic") + "/v1/messages", json=body) as response,
        ):
            got.extend(response.iter_bytes())
        assert len(b"".join(got)) == 100


def test_the_connection_breaks_before_any_byte(sim: Simulator, openai_sdk: openai.OpenAI) -> None:
    sim.fault(LONG, drop=True)
    with pytest.raises(openai.APIConnectionError):
        openai_sdk.responses.create(model="gpt-5.5", input="Hi")
    assert sim.requests[-1].status is None


def test_a_stream_ends_without_its_terminal_event(sim: Simulator, anthropic_sdk: anthropic.Anthropic) -> None:
    sim.fault(LONG, end_after=5)
    with anthropic_sdk.messages.create(model="claude-haiku-4-5", max_tokens=5, messages=USER, stream=True) as stream:
        kinds = [event.type for event in stream]
    assert "message_stop" not in kinds
    assert kinds[0] == "message_start"


def test_a_line_that_is_no_json(sim: Simulator, openai_sdk: openai.OpenAI) -> None:
    sim.fault(LONG, garble_after=3)
    with pytest.raises(json.JSONDecodeError), openai_sdk.responses.create(model="m", input="x", stream=True) as stream:
        list(stream)


def test_an_error_event_in_the_middle(
    sim: Simulator, anthropic_sdk: anthropic.Anthropic, openai_sdk: openai.OpenAI
) -> None:
    sim.fault(LONG, error_after=4, error=Fault(529))
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        anthropic_sdk.messages.create(model="claude-haiku-4-5", max_tokens=5, messages=USER, stream=True) as stream,
    ):
        list(stream)
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    sim.fault(LONG, error_after=4, error=Fault(429, code="insufficient_quota"))
    with (
        pytest.raises(openai.APIError) as failed,
        openai_sdk.responses.create(model="m", input="x", stream=True) as events,
    ):
        list(events)
    assert failed.value.code == "insufficient_quota"


def test_an_error_under_status_200(sim: Simulator, chat: Ask) -> None:
    sim.fault(LONG, error_body=True, error=Fault(503, "Upstream is gone"))
    response = chat()
    assert response.status_code == 200
    assert response.json()["error"]["message"] == "Upstream is gone"


def test_two_finish_reasons(sim: Simulator, chat: Ask) -> None:
    sim.fault(LONG, double_finish=True)
    assert chat(stream=True).text.count('"finish_reason":"stop"') == 2


def test_slow_bytes_still_make_the_whole_body(sim: Simulator, gpt: Ask) -> None:
    sim.fault(LONG, delay_s=0.01, times=2)
    assert gpt().json()["output"][0]["content"][0]["text"] == LONG.text
    assert "response.completed" in gpt(stream=True).text


def test_truncated_and_garbled_bodies(sim: Simulator, claude: Ask) -> None:
    sim.fault(LONG, end_after=0)
    sim.fault(LONG, garble_after=0)
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            claude().json()


def test_a_client_that_goes_away_is_counted(sim: Simulator, http: httpx2.Client) -> None:
    sim.fault(LONG, delay_s=0.05)
    gone = threading.Event()
    body = {"model": "m", "input": "x", "stream": True}
    with http.stream("POST", sim.base_url("openai") + "/responses", json=body) as response:
        next(response.iter_raw())
    for _ in range(100):
        if sim.closed_early:
            break
        gone.wait(0.02)
    assert sim.closed_early == 1


def test_a_reply_goes_wrong_in_one_way_only(sim: Simulator) -> None:
    with pytest.raises(ConfigurationError, match="cut_after and drop"):
        sim.fault(answer("x"), cut_after=1, drop=True)
    with pytest.raises(ConfigurationError, match="no error"):
        sim.fail(200)
