"""Reasoning text on its way back: by host, by the name of a served model, as the caller says; and never elsewhere."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest
from pollux_like_chat.policies import Reasoning, known
from wires import TOOLS, Fake, ask, chat_call, chat_sse, completion, pieces, reloaded, watched

from pollux_like import APIError, Config, ConfigurationError, Environment, Input, Message, ToolCall, ToolResult, handoff
from pollux_like.simulator import Simulator
from pollux_like.testing import call, say, think

pytestmark = pytest.mark.anyio

ROUND = (
    Message("user", "a"),
    Message("assistant", "", (ToolCall("c1", "f", "{}"),)),
    Message("tool", "1", tool_call_id="c1"),
    Message("assistant", "b"),
)


class Server(Fake):
    """A server at an address."""

    def at(self, address: str, model: str = "m", **more: Any) -> Config:  # type: ignore[override]
        client = openai.AsyncOpenAI(api_key="none", base_url=address, http_client=self._http)
        return Config("local", model, client=client, **more)


def options(**given: Any) -> dict[str, Any]:
    return {"provider_options": {"local": given}}


def members(said: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The reasoning members of each assistant message."""
    return [
        {key: value for key, value in one.items() if key in ("reasoning", "reasoning_content")}
        for one in said
        if one["role"] == "assistant"
    ]


@pytest.mark.parametrize(
    ("address", "model", "policy", "field"),
    [
        # api-docs.deepseek.com/guides/thinking_mode; the refusals that Kimi's and Groq's users quote; Cerebras's likewise
        ("https://api.deepseek.com/v1", "deepseek-reasoner", "require", "reasoning_content"),
        ("https://api.moonshot.ai/v1", "kimi-k2.6", "tool_turns", "reasoning_content"),
        ("https://api.moonshot.cn/v1", "moonshot-v1-8k", "tool_turns", "reasoning_content"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3.6-plus", "ignore", "reasoning_content"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "deepseek-v4-pro", "require", None),
        ("https://api.z.ai/api/paas/v4", "glm-4.7", "ignore", "reasoning_content"),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b", "forbid", None),
        ("https://api.cerebras.ai/v1", "qwen-3.8-27b", "ignore", "reasoning"),
        ("http://127.0.0.1:8000/v1", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "forbid", None),
        ("http://127.0.0.1:11434/v1", "deepseek-r1:8b", "forbid", None),
        ("http://127.0.0.1:8000/v1", "deepseek-ai/DeepSeek-V3.2", "require", None),
        ("http://127.0.0.1:8000/v1", "moonshotai/Kimi-K2-Thinking", "tool_turns", None),
        ("http://127.0.0.1:8000/v1", "moonshotai/Kimi-K2-Instruct", "ignore", None),
        ("http://127.0.0.1:1234/v1", "openai/gpt-oss-20b", "ignore", None),
        ("https://api.deepseek.com.example/v1", "m", "ignore", None),  # not that host
        ("https://proxy.example/api.deepseek.com", "m", "ignore", None),
        ("embedded:", "m", "ignore", None),
        ("", "", "ignore", None),
    ],
)
def test_what_holds_where(address: str, model: str, policy: Any, field: str | None) -> None:
    assert known(address, model) == Reasoning(policy, field)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("case", "address", "first", "then"),
    [
        ("RCP-01 every message", "https://api.deepseek.com", {"reasoning_content": "r"}, {"reasoning_content": "r"}),
        ("RCP-01 tool turns only", "https://api.moonshot.ai/v1", {"reasoning_content": "r"}, {}),
        ("RCP-04", "https://api.groq.com/openai/v1", {}, {}),
        ("RCP-06 default", "http://127.0.0.1:8000/v1", {"reasoning": "r"}, {"reasoning": "r"}),
        ("RCP-06 a name that is known", "https://api.cerebras.ai/v1", {"reasoning": "r"}, {"reasoning": "r"}),
    ],
)
async def test_a_tool_round_and_a_turn_after_it(
    case: str, address: str, first: dict[str, str], then: dict[str, str], streamed: bool
) -> None:
    name = "reasoning" if case.startswith(("RCP-06", "RCP-04")) else "reasoning_content"
    calling = {name: "r", "tool_calls": [chat_call("c1")]}
    answers: list[Any] = [completion(calling), completion({name: "r", "content": "x"})]
    if streamed:
        answers[0] = chat_sse({name: "r"}, pieces(0, "{}", "c1", "f"), finish="tool_calls")
        answers[1] = chat_sse({name: "r"}, {"content": "x"})
    server = Server(*answers, completion({"content": "y"}))
    to = server.at(address)
    one = (await watched(to, "go"))[0] if streamed else await ask(to, "go")
    assert one.reasoning == "r"
    results = Input(continuation=reloaded(one.continuation), tool_results=[ToolResult("c1", "1")])
    two = (await watched(to, results))[0] if streamed else await ask(to, results)
    await ask(to, Input("more", continuation=reloaded(two.continuation)))
    assert members(server.said[1]) == [first]
    assert members(server.said[2]) == [first, then]
    assert server.said[2][: len(server.said[1])] == server.said[1]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("require", [{"reasoning_content": ""}, {"reasoning_content": ""}]),
        ("tool_turns", [{"reasoning_content": ""}, {}]),
        ("ignore", [{}, {}]),
        ("forbid", [{}, {}]),
    ],
)
async def test_rcp_02_where_none_came_empty_text_stands_in(policy: str, expected: list[dict[str, str]]) -> None:
    """Portable history and answers without reasoning alike; recorded: DeepSeek takes a call of another client so."""
    server = Server(completion({"content": "x"}), completion({"content": "y"}))
    output = await ask(server.at("http://h/v1"), Input("c", history=[*ROUND]), **options(reasoning=policy))
    await ask(server.at("http://h/v1"), Input("d", continuation=output.continuation), **options(reasoning=policy))
    assert members(server.said[0]) == expected
    assert members(server.said[1]) == [*expected, expected[1]]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_a_known_name_is_the_name(name: str) -> None:
    both = {"reasoning_content": "", "reasoning": "r"} if name == "reasoning" else {"reasoning_content": "r"}
    server = Server(completion({**both, "content": "x"}), completion({"content": "y"}))
    output = await ask(server.at("https://api.deepseek.com"), "go")
    await ask(server.at("https://api.deepseek.com"), Input("d", continuation=output.continuation))
    assert members(server.said[1]) == [{"reasoning_content": "r"}]


async def test_the_caller_has_the_last_word() -> None:
    server = Server(completion({"reasoning_content": "r", "content": "x"}), *[completion({"content": "y"})] * 3)
    to = server.at("https://api.deepseek.com")
    output = await ask(to, "go")
    given = Input("d", continuation=output.continuation)
    await ask(to, given, **options(reasoning="forbid"))
    await ask(to, given, **options(reasoning_field="reasoning"))
    await ask(to, given, **options(reasoning="ignore", top_k=3))
    assert [members(said) for said in server.said[1:]] == [[{}], [{"reasoning": "r"}], [{"reasoning_content": "r"}]]
    assert not {"reasoning", "reasoning_field"} & set().union(*server.sent)
    assert server.sent[3]["top_k"] == 3


@pytest.mark.parametrize(
    ("given", "named"),
    [({"reasoning": "always"}, "require, tool_turns, ignore, forbid"), ({"reasoning": {"effort": "low"}}, "dict"),
     ({"reasoning": True}, "bool"), ({"reasoning_field": "thoughts"}, "reasoning_content, reasoning")],
)  # fmt: skip
async def test_its_words_are_checked(given: dict[str, Any], named: str) -> None:
    server = Server()
    with pytest.raises(ConfigurationError, match=named):
        await ask(server.at("http://h/v1"), "go", **options(**given))
    assert server.raw == []


async def test_another_models_reasoning_stays_out() -> None:
    """FOR-02, FOR-03: it is no text of the conversation, and where the member is demanded it is empty."""
    server = Server(completion({"reasoning_content": "SECRET", "content": "x"}), *[completion({"content": "y"})] * 3)
    output = await ask(server.at("https://api.deepseek.com", "deepseek-v4-pro"), "go")
    given = Input("d", continuation=reloaded(output.continuation))
    await ask(server.at("https://api.deepseek.com", "deepseek-v4-flash"), given)
    await ask(server.at("http://127.0.0.1:8000/v1", "qwen"), given)
    await ask(server.at("https://api.deepseek.com", "deepseek-v4-pro"), given)
    assert [members(said) for said in server.said[1:]] == [
        [{"reasoning_content": ""}], [{}], [{"reasoning_content": "SECRET"}],
    ]  # fmt: skip


async def test_rcp_04_a_refusal_is_not_repeated() -> None:
    refusal = httpx2.Response(400, json={"error": {"message": "property 'reasoning_content' is unsupported"}})
    server = Server(completion({"reasoning_content": "r", "content": "x"}), refusal)
    output = await ask(server.at("http://h/v1"), "go")
    with pytest.raises(APIError, match="unsupported") as caught:
        await ask(server.at("http://h/v1", max_attempts=3), Input("d", continuation=output.continuation))
    assert (caught.value.retryable, len(server.raw)) == (False, 2)


async def test_it_stays_inside_the_continuation() -> None:
    output = await ask(Server(completion({"reasoning_content": "SECRET", "content": "x"})).at("http://h/v1"), "go")
    assert output.continuation is not None
    portable = handoff(output.continuation)
    assert portable.losses == ("turn 1: the member reasoning_content of the message",)
    assert "SECRET" not in json.dumps([one.to_jsonable() for one in (*portable.history, *output.messages)])
    assert "SECRET" in json.dumps(output.continuation.to_jsonable())
    assert "SECRET" not in repr(output.continuation)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("deepseek", "deepseek-v4-flash"), ("deepseek", "deepseek-reasoner"), ("deepseek", "deepseek-chat"),
        ("kimi", "kimi-k2.6"), ("kimi", "kimi-k3"), ("kimi", "moonshot-v1-8k"), ("qwen", "qwen3.6-plus"),
    ],
)  # fmt: skip
async def test_the_strict_servers_take_what_we_send(name: str, model: str) -> None:
    """By the model's name alone: the address is a loopback one."""
    with Simulator() as sim:
        to = Config("local", model, base_url=sim.base_url(name), max_attempts=1, api_key="sim-key")
        sim.reply(think("r"), call("f", {"a": 1}, id="c1"))
        sim.reply(call("f", {"a": 2}, id="c2"))
        sim.reply(think("r"), say("x"))
        output = await ask(to, Input("go", history=[*ROUND]))
        output = await ask(to, Input(continuation=output.continuation, tool_results=[ToolResult("c1", "1")]))
        output = await ask(to, Input(continuation=output.continuation, tool_results=[ToolResult("c2", "2")]))
        output = await ask(to, Input("more", continuation=reloaded(output.continuation)), Environment(tools=TOOLS))
    assert output.text == "You said: more"


async def test_the_embedded_model_gets_none() -> None:
    from pollux_like import registry
    from pollux_like.provider import Request
    from pollux_like.turns import Stamp, Turn

    config = Config("local", "deepseek-v4.gguf")
    vendor = registry.vendor_of(config)
    stamp = Stamp("local", "chat", "http://h/v1", "deepseek-v4.gguf", "e")
    turn = Turn(stamp, (Message("user", "a"),), ('{"role":"assistant","content":"b","reasoning_content":"r"}',))
    request = Request(
        "deepseek-v4.gguf", (turn,), (Message("user", "c"),), endpoint=vendor.endpoint(config), streaming=False
    )
    assert members(json.loads(vendor.render(request).body)["messages"]) == [{}]
