"""Ids of calls: servers number them, leave them empty, leave them out or give a new one in every chunk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wires import Fake, ask, chat_call, chat_sse, chunk, completion, pieces, reloaded, sse, watched

from pollux_like import Config, Input, ToolResult
from pollux_like.simulator import Simulator

pytestmark = pytest.mark.anyio


def local(fake: Fake) -> Config:
    return Config("local", "m", client=fake.openai().client)


def paired(said: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Each call's id with its result's content."""
    calls = [one["id"] for message in said for one in message.get("tool_calls", ())]
    results = {one["tool_call_id"]: one["content"] for one in said if one["role"] == "tool"}
    assert all(isinstance(one, str) and one for one in calls)
    return [(one, results[one]) for one in calls]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((0, 1), ("0", "1")), ((7, "c"), ("7", "c")), (("", ""), None), ((None, None), None), (("c", "c"), None),
        ((" ", "c"), None), ((True, False), None), (({}, []), None),
    ],
)  # fmt: skip
async def test_tid_07_every_call_has_an_id_of_its_own(
    given: tuple[Any, Any], kept: tuple[str, str] | None, streamed: bool
) -> None:
    calls = [{**chat_call(None, f'{{"a":{n}}}'), "id": one} for n, one in enumerate(given)]
    answer: Any = completion({"tool_calls": calls})
    if streamed:
        answer = chat_sse(*({"tool_calls": [{**one, "index": n}]} for n, one in enumerate(calls)), finish="tool_calls")
    fake = Fake(answer, completion({"content": "x"}), completion({"content": "y"}))
    output = (await watched(local(fake), "go"))[0] if streamed else await ask(local(fake), "go")
    ids = [one.id for one in output.tool_calls]
    assert len(set(ids)) == 2
    assert kept is None or tuple(ids) == kept
    assert max(map(len, ids)) <= 40
    state = reloaded(output.continuation)
    assert [one.id for one in state.pending_tool_calls] == ids
    results = [ToolResult(one, f"r{n}") for n, one in enumerate(ids)]
    later = await ask(local(fake), Input(continuation=state, tool_results=results))
    await ask(local(fake), Input("more", continuation=reloaded(later.continuation)))
    for said in fake.said[1:]:  # made up once: the same ids in every later request
        assert paired(said) == [(ids[0], "r0"), (ids[1], "r1")]


async def test_chunks_with_an_id_each_make_up_one_id() -> None:
    """The id of the answer seeds what is made up: events and output must agree on it."""
    chunks = [
        {**chunk(delta, finish), "id": f"chunk-{n}"}
        for n, (delta, finish) in enumerate([(pieces(0, "{}", name="f"), None), ({}, "tool_calls")])
    ]
    fake = Fake(sse(*chunks, {"id": "chunk-9", "choices": [], "usage": {"prompt_tokens": 1}}, "[DONE]"))
    output, events = await watched(local(fake), "go")
    assert [one.tool_call.id for one in events if one.tool_call] == [one.id for one in output.tool_calls]


@pytest.mark.parametrize("streamed", [False, True])
async def test_members_of_a_call_that_nobody_knows_go_back(streamed: bool) -> None:
    """A compatible address of Gemini signs calls so (ai.google.dev/gemini-api/docs/thought-signatures)."""
    signed = {"extra_content": {"google": {"thought_signature": "S"}}}
    answer: Any = completion({"tool_calls": [{**chat_call("c1"), **signed}]})
    if streamed:
        first = pieces(0, "", "c1", "f")
        first["tool_calls"][0] |= signed
        answer = chat_sse(first, pieces(0, "{}"), finish="tool_calls")
    fake = Fake(answer, completion({"content": "x"}))
    output = (await watched(local(fake), "go"))[0] if streamed else await ask(local(fake), "go")
    await ask(local(fake), Input(continuation=reloaded(output.continuation), tool_results=[ToolResult("c1", "1")]))
    (back,) = fake.said[1][2]["tool_calls"]
    assert back == {**chat_call("c1"), **signed}


async def test_the_channel_of_a_chunk_is_no_member_of_the_message() -> None:
    """Recorded (Groq): every chunk of reasoning names its channel."""
    fake = Fake(
        chat_sse(
            {"reasoning": "a", "channel": "analysis"}, {"reasoning": "b", "channel": "analysis"}, {"content": "x"}
        ),
        completion({"content": "y"}),
    )
    output, _ = await watched(local(fake), "go")
    assert output.reasoning == "ab"
    await ask(local(fake), Input("more", continuation=output.continuation))
    assert json.dumps(fake.said[1][2]) == '{"role": "assistant", "content": "x", "reasoning": "ab"}'


async def test_private_names_of_an_openai_account_do_not_go_to_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-private")
    with Simulator() as sim:
        await ask(Config("local", "m", base_url=sim.base_url("chat")), "go")
        (request,) = sim.requests
        assert "private" not in str(request.headers)
