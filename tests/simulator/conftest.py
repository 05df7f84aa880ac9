"""One running simulator for the whole folder, emptied before each test, and ways to ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import anthropic
import httpx2
import openai
import pytest

from pollux_like.simulator import Simulator

Ask: TypeAlias = Callable[..., httpx2.Response]
HEADERS = {"authorization": "Bearer sim-key", "anthropic-version": "2023-06-01"}


@pytest.fixture(scope="session")
def running() -> Iterator[Simulator]:
    with Simulator() as sim:
        yield sim


@pytest.fixture
def sim(running: Simulator) -> Simulator:
    running.clear()
    return running


@pytest.fixture(scope="session")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=10, headers=HEADERS) as client:
        yield client


@pytest.fixture
def claude(sim: Simulator, http: httpx2.Client) -> Ask:
    """POST /v1/messages; a body of model, max_tokens and one user message is filled in."""

    def ask(*, headers: dict[str, str] | None = None, beta: bool = False, **body: Any) -> httpx2.Response:
        whole = {
            "model": "claude-haiku-4-5",
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": "Hi"}],
            **body,
        }
        path = "/v1/messages?beta=true" if beta else "/v1/messages"
        return http.post(sim.base_url("anthropic") + path, json=whole, headers=headers)

    return ask


@pytest.fixture
def gpt(sim: Simulator, http: httpx2.Client) -> Ask:
    """POST /v1/responses; model and input are filled in."""

    def ask(*, headers: dict[str, str] | None = None, **body: Any) -> httpx2.Response:
        whole = {"model": "gpt-5.5", "input": "Hi", **body}
        return http.post(sim.base_url("openai") + "/responses", json=whole, headers=headers)

    return ask


@pytest.fixture
def chat(sim: Simulator, http: httpx2.Client) -> Ask:
    """POST /v1/chat/completions; model and messages are filled in."""

    def ask(*, headers: dict[str, str] | None = None, **body: Any) -> httpx2.Response:
        whole = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], **body}
        return http.post(sim.base_url("chat") + "/chat/completions", json=whole, headers=headers)

    return ask


@pytest.fixture
def gemini(sim: Simulator, http: httpx2.Client) -> Ask:
    """POST …:generateContent, or another verb; the model of the path and one user content are filled in."""

    def ask(*, model: str = "gemini-3-flash-preview", verb: str = "generateContent", **body: Any) -> httpx2.Response:
        whole = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], **body}
        url = f"{sim.base_url('gemini')}/v1beta/models/{model}:{verb}"
        return http.post(url, json=whole, headers={"x-goog-api-key": "sim-key"})

    return ask


@pytest.fixture
def openai_sdk(sim: Simulator, http: httpx2.Client) -> openai.OpenAI:
    return openai.OpenAI(base_url=sim.base_url("openai"), api_key="sim-key", max_retries=0, http_client=http)


@pytest.fixture
def anthropic_sdk(sim: Simulator) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=sim.base_url("anthropic"), api_key="sim-key", max_retries=0) as client:
        yield client
