"""Conversations with the embedded model: what is evaluated again, what is the same, what is cut."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from pollux_like_local.engine import LlamaEngine
from pollux_like_local.prompt import Turn

from pollux_like import Config, Environment, Input, sync
from pollux_like.errors import APIError, ConfigurationError, ContextOverflowError

CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}


def run(engine: LlamaEngine, body: dict[str, Any], backend: str = "asyncio") -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(await engine.complete(body))
        return reply

    return anyio.run(main, backend=backend)


def chunks(engine: LlamaEngine, body: dict[str, Any], backend: str = "asyncio") -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        return [json.loads(text) async for text in engine.stream(body)]

    return anyio.run(main, backend=backend)


def text_of(reply: dict[str, Any]) -> str:
    return str(reply["choices"][0]["message"]["content"])


def evaluated(reply: dict[str, Any]) -> int:
    usage = reply["usage"]
    return int(usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"])


def test_each_turn_evaluates_only_what_is_new(engine: LlamaEngine, backend: str) -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": f"You are a helpful assistant on {backend}."}]
    cached = [0]
    for question in ("What is the capital of France?", "And of Italy?", "Name one river there.", "Thank you."):
        messages.append({"role": "user", "content": question})
        reply = run(engine, {"messages": messages, "max_tokens": 12}, backend)
        messages.append(reply["choices"][0]["message"])
        cached.append(reply["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert evaluated(reply) < 24 or len(messages) == 3
    assert cached[2:] == sorted(set(cached[2:])), "the cached part grows with every turn"
    assert cached[-1] > 60


def test_two_conversations_taking_turns_keep_their_prefixes(engine: LlamaEngine) -> None:
    talks = [
        [{"role": "user", "content": text}] for text in ("Tell me about the sea. " * 12, "I like red apples. " * 12)
    ]
    for talk in talks:
        talk.append(run(engine, {"messages": talk, "max_tokens": 6})["choices"][0]["message"])
    for talk in talks:
        talk.append({"role": "user", "content": "Go on."})
        reply = run(engine, {"messages": talk, "max_tokens": 6})
        assert evaluated(reply) < 20
        assert reply["usage"]["prompt_tokens"] > 80


@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.8, "seed": 7}, {"temperature": 0.8, "top_p": 0.9, "seed": 3}]
)
def test_streamed_or_whole_it_is_the_same_reply(engine: LlamaEngine, sampling: dict[str, Any], backend: str) -> None:
    body = {"messages": CAPITAL, "max_tokens": 10, **sampling}
    run(engine, body, backend)  # both now start from the same cache
    reply, streamed = run(engine, body, backend), chunks(engine, body, backend)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in streamed[:-1])
    assert text == text_of(reply) != ""
    assert [chunk["choices"][0]["finish_reason"] for chunk in streamed[:-1]].count(None) == len(streamed) - 2
    assert streamed[-2]["choices"][0]["finish_reason"] == reply["choices"][0]["finish_reason"]
    assert streamed[-1] == {**streamed[0], "choices": [], "usage": reply["usage"]}
    assert streamed[0]["id"] == reply["id"]
    assert streamed[0]["object"] == "chat.completion.chunk"


def test_it_answers_without_a_system_message(engine: LlamaEngine) -> None:
    assert "Paris" in text_of(run(engine, {"messages": CAPITAL, "max_tokens": 12}))


def test_a_reply_does_not_depend_on_what_was_cached(engine: LlamaEngine) -> None:
    assert engine._loaded is not None
    server, template = engine._loaded.runtime._server, engine._loaded.runtime.template
    words = "the sea is red and big in a small city of France or Italy, says policy number 12 to an apple. " * 6
    prompt = engine._loaded.runtime.tokenize(template.render([Turn("system", ("Be brief.",)), Turn("user", (words,))]))

    def likelihoods(length: int, *, cache_prompt: bool) -> tuple[int, list[float]]:
        body = {
            "prompt": prompt[:length],
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": 5,
            "cache_prompt": cache_prompt,
        }
        reply = server.handle_completions(body)
        top = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return reply["timings"]["cache_n"], [token["logprob"] for token in top]

    fresh = likelihoods(len(prompt), cache_prompt=False)
    assert fresh[0] == 0
    for part in (20, 70, 130):
        likelihoods(part, cache_prompt=False)
        assert likelihoods(len(prompt), cache_prompt=True) == (part, fresh[1])


def test_length_and_stop(engine: LlamaEngine) -> None:
    reply = run(engine, {"messages": CAPITAL, "max_tokens": 3})
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["completion_tokens"] == 3
    reply = run(engine, {"messages": CAPITAL, "max_tokens": 12, "stop": ["France"]})
    assert text_of(reply) == "The capital of "
    assert reply["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "schema",
    [
        PERSON | {"required": ["name", "age"]},
        {"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 2, "maxItems": 3},
        {"type": "integer", "minimum": 0, "maximum": 150},
        {"$ref": "#/$defs/p", "$defs": {"p": PERSON | {"required": ["age"]}}},
    ],
)
def test_a_schema_is_kept(engine: LlamaEngine, schema: dict[str, Any]) -> None:
    import jsonschema

    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    messages = [{"role": "user", "content": "Ann is 31 and likes blue. Describe her."}]
    reply = run(engine, {"messages": messages, "max_tokens": 60, "response_format": form})
    assert reply["choices"][0]["finish_reason"] == "stop"
    jsonschema.validate(json.loads(text_of(reply)), schema)


def test_json_object(engine: LlamaEngine) -> None:
    body = {"messages": CAPITAL, "max_tokens": 4, "response_format": {"type": "json_object"}}
    reply = run(engine, body)
    assert text_of(reply).startswith("{")
    assert reply["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}, "required": ["a"]},
        {"type": "string", "pattern": "(?=x)y"},
    ],
)
def test_a_schema_that_cannot_be_enforced_is_refused(engine: LlamaEngine, schema: dict[str, Any]) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    with pytest.raises(ConfigurationError, match="response_format"):
        run(engine, {"messages": CAPITAL, "response_format": form})


def test_strict_refuses_what_the_grammar_would_ignore(engine: LlamaEngine) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "maxItems": 2, "uniqueItems": True}
    form = {"name": "answer", "schema": schema}
    body = {"messages": CAPITAL, "max_tokens": 12, "response_format": {"type": "json_schema", "json_schema": form}}
    assert isinstance(json.loads(text_of(run(engine, body))), list)
    form["strict"] = True
    with pytest.raises(ConfigurationError, match="strict"):
        run(engine, body)


def test_overflow_gives_both_counts(engine: LlamaEngine) -> None:
    with pytest.raises(ContextOverflowError, match=r"takes 6\d\d tokens .* holds 512"):
        run(engine, {"messages": [{"role": "user", "content": "word " * 600}]})
    assert text_of(run(engine, {"messages": CAPITAL, "max_tokens": 4}))


def test_a_reply_ends_at_the_window(engine: LlamaEngine) -> None:
    messages = [{"role": "user", "content": "word " * 470 + "\nSay the word many times."}]
    reply = run(engine, {"messages": messages, "max_tokens": 400, "temperature": 1, "seed": 1})
    assert reply["usage"]["total_tokens"] <= 512


def test_cancelling_frees_the_slot(engine: LlamaEngine, backend: str) -> None:
    body = {"messages": [{"role": "user", "content": f"Count on {backend}: one, two, three."}], "max_tokens": 300}
    body["response_format"] = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "string", "minLength": 900}},
    }

    async def main() -> tuple[int, bool]:
        seen = 0
        async with anyio.create_task_group() as tasks:
            async for _ in engine.stream(body):
                seen += 1
                if seen == 3:
                    tasks.cancel_scope.cancel()
        with anyio.fail_after(10):  # the cancelled reply alone would take longer to finish than these two
            stream = engine.stream(body)
            await anext(stream)
            await stream.aclose()
            reply = json.loads(await engine.complete({"messages": CAPITAL, "max_tokens": 4}))
        return seen, bool(text_of(reply))

    assert anyio.run(main, backend=backend) == (3, True)
    assert engine._loaded is not None
    assert engine._loaded.worker._work_queue.qsize() == 0
    assert not engine._jobs


def test_requests_at_once_are_all_answered(engine: LlamaEngine, backend: str) -> None:
    replies: list[str] = []

    async def ask() -> None:
        replies.append(text_of(json.loads(await engine.complete({"messages": CAPITAL, "max_tokens": 8}))))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask)

    anyio.run(main, backend=backend)
    assert len(replies) == 4
    assert set(replies) == {"The capital of France is Paris."}


def test_engines_share_a_loaded_model_until_the_last_is_closed(engine: LlamaEngine) -> None:
    async def main() -> None:
        other = await LlamaEngine.open(engine.model.path, n_ctx=engine.model.n_ctx)
        assert other._loaded is engine._loaded
        await other.aclose()
        await other.aclose()
        with pytest.raises(ConfigurationError, match="closed"):
            await other.complete({"messages": CAPITAL})
        again = await LlamaEngine.open(engine.model.path, n_ctx=engine.model.n_ctx)
        stream = again.stream({"messages": CAPITAL, "max_tokens": 200})
        await anext(stream)
        await again.aclose()
        with pytest.raises(APIError, match="closed while"):
            [_ async for _ in stream]

    anyio.run(main)
    assert text_of(run(engine, {"messages": CAPITAL, "max_tokens": 2})) == "The capital"


def test_the_model_is_described(engine: LlamaEngine) -> None:
    model = engine.model
    assert (model.id, model.eot, model.n_ctx) == ("smollm2-135m-instruct", "<|im_end|>", 512)
    assert len(model.fingerprint) == len(model.template_hash) == 64


def test_the_embedded_model_counts_what_it_will_read() -> None:
    environment, config = Environment(instructions="Answer in one word."), Config("local")
    state = None
    for question in ("Name a colour.", "Name another one."):
        given = Input(question, history=[]) if state is None else Input(question, continuation=state)
        counted = sync.count_tokens(environment, given, config)
        output = sync.interact(environment, given, config, max_tokens=5)
        assert output.usage.input_tokens == counted > 0
        state = output.continuation


def test_a_server_behind_local_is_not_asked() -> None:
    with pytest.raises(ConfigurationError, match="count no tokens"):
        sync.count_tokens(Environment(), Input("x"), Config("local", "m", base_url="http://127.0.0.1:1/v1"))
