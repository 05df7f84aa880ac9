"""OpenRouter written by hand: its list of models, and answers behind the real SDK client."""

from __future__ import annotations

from typing import Any

import httpx2
import openai
import pytest
from wires import Answer, Body, Fake

from pollux_like import Config

ADDRESS = "https://openrouter.ai/api/v1"
CLAUDE = "anthropic/claude-haiku-4.5"


class Router(Fake):
    """`models` is the answer to `GET /models`; `lists` counts how often it was asked for."""

    def __init__(self, *answers: Answer, models: Body | httpx2.Response | Exception | None = None) -> None:
        super().__init__(*answers)
        self.models = {"data": [{"id": CLAUDE, "supported_parameters": ["tools"]}]} if models is None else models
        self.lists = 0
        self.requests: list[httpx2.Request] = []

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if request.method == "POST":
            return await super()._answer(request)
        self.lists += 1
        assert str(request.url) == f"{ADDRESS}/models"
        if isinstance(self.models, Exception):
            raise self.models
        return self.models if isinstance(self.models, httpx2.Response) else httpx2.Response(200, json=self.models)

    def config(self, model: str = CLAUDE, **more: Any) -> Config:
        """A Config through the OpenAI SDK."""
        if not hasattr(self, "client"):
            self.client = openai.AsyncOpenAI(api_key="sk-or-test", base_url=ADDRESS, http_client=self._http)
        return Config("openrouter", model, client=self.client, **more)


@pytest.fixture
def router() -> type[Router]:
    """The class, to be made with the answers."""
    return Router
