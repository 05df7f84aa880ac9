"""Tools are refused for models that do not advertise them, as the list of models says, which is read once."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest
from pollux_like_openrouter.models import check_tools, listed
from wires import ENV, ask, completion, watched

from pollux_like import APIError, ConfigurationError, Environment, Input

pytestmark = pytest.mark.anyio

PLAIN = Environment(instructions="Be brief.")
LIST = {
    "data": [
        {"id": "a/tools", "supported_parameters": ["temperature", "tools"]},
        {"id": "a/none", "supported_parameters": ["temperature"]},
        {"id": "a/none:free", "supported_parameters": ["tools"]},
        {"id": "a/nothing", "supported_parameters": []},
        {"id": "a/unsaid"},
        {"id": "openrouter/auto", "supported_parameters": []},
        "news",
    ]
}


@pytest.mark.parametrize("model", ["a/none", "a/none:nitro", "a/nothing"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_are_refused_before_the_completion(router: Any, model: str, streamed: bool) -> None:
    server = router(models=LIST)
    with pytest.raises(ConfigurationError, match=f"{model} does not support tools"):
        await (watched if streamed else ask)(server.config(model), "Hi")
    assert (server.lists, server.raw) == (1, [])


@pytest.mark.parametrize("model", ["a/tools", "a/tools:nitro", "a/none:free", "a/unsaid", "openrouter/auto", "b/new"])
async def test_tools_are_sent_where_nothing_speaks_against_it(router: Any, model: str) -> None:
    server = router(completion({"content": "Hi."}), models=LIST)
    assert (await ask(server.config(model), "Hi")).text == "Hi."
    assert len(server.sent[0]["tools"]) == 2


async def test_the_list_is_read_once_per_client_and_only_for_tools(router: Any) -> None:
    server = router(*[completion({"content": "Hi."})] * 7, models=LIST)
    await ask(server.config("a/none"), "Hi", PLAIN)
    await ask(
        server.config("a/none"), "Hi", PLAIN, provider_options={"openrouter": {"tools": [{"type": "openrouter:x"}]}}
    )
    assert server.lists == 0
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask, server.config("a/tools"), "Hi")
    output = await ask(server.config("a/tools"), "Hi")
    await ask(server.config("a/tools"), Input("And?", continuation=output.continuation), ENV)
    with pytest.raises(ConfigurationError, match="does not support tools"):
        await ask(server.config("a/none"), "Hi")
    assert (server.lists, len(server.raw)) == (1, 7)


async def test_functions_in_the_options_are_tools_too(router: Any) -> None:
    server = router(models=LIST)
    tool = {"type": "function", "function": {"name": "h", "parameters": {"type": "object", "properties": {}}}}
    with pytest.raises(ConfigurationError, match="does not support tools"):
        await ask(server.config("a/none"), "Hi", PLAIN, provider_options={"openrouter": {"tools": [tool]}})


@pytest.mark.parametrize(
    "broken",
    [
        httpx2.Response(404, json={"error": {"code": 404, "message": "no"}}),
        httpx2.Response(500, text="<html>"),
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json=[]),
        httpx2.Response(200, json={"data": None}),
        httpx2.ReadTimeout("late"),
        httpx2.ConnectError("gone"),
    ],
    ids=["404", "500", "no JSON", "a list", "no data", "late", "gone"],
)
async def test_a_list_that_cannot_be_read_is_no_error(router: Any, broken: Any) -> None:
    server = router(*[completion({"content": "Hi."})] * 2, models=broken)
    for _ in range(2):
        assert (await ask(server.config("a/none"), "Hi")).metrics.attempts == 1
    assert (server.lists, len(server.raw)) == (1, 2)


async def test_a_turn_that_is_cancelled_meanwhile_leaves_the_list_unread(router: Any) -> None:
    server = router(completion({"content": "Hi."}), models=LIST)
    config = server.config("a/none")
    scope = anyio.CancelScope()
    answer = server.models
    server.models = None
    real = server._answer

    async def slow(request: httpx2.Request) -> httpx2.Response:
        if server.models is None:
            scope.cancel()
            await anyio.sleep_forever()
        return await real(request)  # type: ignore[no-any-return]

    server._http._transport = httpx2.MockTransport(slow)
    with scope:
        await ask(config, "Hi")
    assert scope.cancelled_caught
    server.models = answer
    with pytest.raises(ConfigurationError, match="does not support tools"):
        await ask(config, "Hi")


def test_the_list_alone() -> None:
    with pytest.raises(APIError, match="cannot be read"):
        listed("<html>")
    known = listed('{"data":[{"id":"a/x","supported_parameters":["tools",1]},{"id":7,"supported_parameters":[]}]}')
    assert known == {"a/x": frozenset({"tools", "1"})}
    check_tools("a/x", known)
