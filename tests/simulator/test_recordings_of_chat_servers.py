"""What OpenRouter and DeepSeek accepted, the simulator accepts; what they refused, it refuses with the same words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from recordings import collection, router
from recordings.collection import Exchange

from pollux_like.simulator import Simulator

NOT_FORM = {
    "openrouter/errors.json#err-400-context-length": "the recording leaves the long text out",
    "openrouter/err-429-upstream.json#0": "a limit of the provider behind",
    "openrouter/err-429-upstream.json#1": "a limit of the provider behind",
    "openrouter/err-429-upstream.json#2": "a limit of the provider behind",
    "deepseek/errors.json#err-400-unanswered-tool-call": "another API",
}
"""Exchanges whose verdict does not lie in the form of a chat completion."""
UNKNOWN_MODEL = "openai/gpt-nonexistent-routed-model"
BASES = {"openrouter": "/api/v1", "deepseek": ""}


def conversations() -> Iterator[Any]:
    for name in collection.NAMES:
        if name.split("/")[0] in BASES:
            asked = [one for one in collection.load(name)[1] if one.where not in NOT_FORM]
            for group in [[one] for one in asked] if name.endswith("errors.json") else [asked] if asked else []:
                yield pytest.param(name.split("/")[0], group, id=group[0].where)
    if not collection.NAMES:
        yield pytest.param("", [], marks=pytest.mark.skip(reason="no recordings of real APIs here"), id="absent")


def said(exchange: Exchange) -> dict[str, Any]:
    """The recorded answer as a body, its reasoning put together."""
    return {"choices": [{"message": router.expected(exchange.body, exchange.events).items[0]}]}


@pytest.mark.parametrize(("server", "exchanges"), list(conversations()))
def test_same_verdict_as_the_real_api(server: str, exchanges: list[Exchange], http: httpx2.Client) -> None:
    models = {str(one.request["model"]) for one in exchanges if one.request} - {UNKNOWN_MODEL}
    with Simulator(models=models, api_key="sim-key") as sim:
        for exchange in exchanges:
            assert exchange.request is not None
            refused = (
                "" if server == "openrouter" else "Bearer a-key"
            )  # one recording came without, one with a wrong one
            key = refused if exchange.status == 401 else "Bearer sim-key"
            address = sim.base_url(server) + exchange.path.removeprefix(BASES[server])
            answer = http.post(address, json=exchange.request, headers={"authorization": key})
            assert answer.status_code == exchange.status, answer.text
            if exchange.status == 200:
                if not any("error" in event for event in exchange.events):
                    sim.adopt(exchange.request, said(exchange))
            else:
                ours, theirs = answer.json()["error"], exchange.body["error"]
                assert ours == theirs  # to the letter: message, type, param and code


def test_every_exception_is_needed() -> None:
    if not collection.NAMES:
        pytest.skip("no recordings of real APIs here")
    there = {one.where for name in collection.NAMES for one in collection.load(name)[1]}
    assert NOT_FORM.keys() <= there
