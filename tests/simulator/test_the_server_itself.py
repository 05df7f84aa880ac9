"""The simulator as a thing to start, to ask, to script and to stop."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import anyio
import httpx2
import openai
import pytest

from pollux_like.errors import ConfigurationError
from pollux_like.simulator import Recorded, Simulator
from pollux_like.testing.script import Answer, answer, call, say, think

Ask = Callable[..., httpx2.Response]


def test_an_empty_queue_echoes(gpt: Ask, claude: Ask, chat: Ask) -> None:
    assert gpt(input="Good day").json()["output"][0]["content"][0]["text"] == "You said: Good day"
    messages = [{"role": "user", "content": [{"type": "text", "text": "Good night"}]}]
    assert claude(messages=messages).json()["content"][0]["text"] == "You said: Good night"
    assert chat().json()["choices"][0]["message"]["content"] == "You said: Hi"


def test_requests_are_recorded_and_secrets_masked(sim: Simulator, gpt: Ask) -> None:
    gpt(input="Hi", headers={"authorization": "Bearer very-secret", "x-mine": "1"})
    seen = sim.requests[-1]
    assert (seen.dialect, seen.method, seen.path, seen.status) == ("openai", "POST", "/v1/responses", 200)
    assert seen.body == json.loads(seen.raw) == {"model": "gpt-5.5", "input": "Hi"}
    assert seen.headers["x-mine"] == "1"
    assert "very-secret" not in repr(seen)


def test_a_function_answers_from_the_request(sim: Simulator, gpt: Ask) -> None:
    def shout(request: Recorded) -> Answer:
        return answer(say(str(request.body["input"]).upper()))

    sim.reply(shout)
    assert gpt(input="quiet").json()["output"][0]["content"][0]["text"] == "QUIET"


def test_a_failing_function_is_not_lost(http: httpx2.Client) -> None:
    def broken(request: Recorded) -> Answer:
        raise LookupError(request.path)

    sim = Simulator().start()
    sim.reply(broken)
    response = http.post(sim.base_url("openai") + "/responses", json={"model": "m", "input": "x"})
    assert (response.status_code, response.headers["x-should-retry"]) == (500, "false")
    with pytest.raises(LookupError):
        sim.stop()


def test_a_refused_request_takes_no_turn(sim: Simulator, gpt: Ask) -> None:
    sim.reply("mine")
    assert gpt(nonsense=1).status_code == 400
    assert sim.left == 1
    assert gpt().json()["output"][0]["content"][0]["text"] == "mine"


def test_turns_can_be_kept_for_one_conversation(sim: Simulator, gpt: Ask) -> None:
    def about(word: str) -> Callable[[Recorded], bool]:
        return lambda request: word in str(request.body["input"])

    sim.reply("for B", when=about("B"))
    sim.reply("for A", when=about("A"))
    said = [gpt(input=text).json()["output"][0]["content"][0]["text"] for text in ("I am A", "I am B")]
    assert said == ["for A", "for B"]


def test_many_conversations_at_once_each_get_one_turn(sim: Simulator, gpt: Ask) -> None:
    for n in range(24):
        sim.reply(str(n))
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: gpt().json()["output"][0]["content"][0]["text"], range(24)))
    assert sorted(said, key=int) == [str(n) for n in range(24)]


def test_a_waiting_function_blocks_no_one_else(sim: Simulator, gpt: Ask) -> None:
    release = threading.Event()

    def wait(request: Recorded) -> Answer:
        release.wait(10)
        return answer("late")

    sim.reply(wait, when=lambda request: request.body["input"] == "slow")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(gpt, input="slow")
        assert gpt(input="fast").status_code == 200
        release.set()
        assert slow.result().json()["output"][0]["content"][0]["text"] == "late"


def test_the_environment_alone_points_an_sdk_here(sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sim.environ().items():
        monkeypatch.setenv(name, value)
    with openai.OpenAI() as client:
        assert client.responses.create(model="gpt-5.5", input="Hi").output_text == "You said: Hi"
        assert [model.id for model in client.models.list()]
    assert set(sim.environ()) == {
        "OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_API_KEY", "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY",
    }  # fmt: skip


def test_models_are_listed_in_both_envelopes(http: httpx2.Client) -> None:
    with Simulator(models=["gpt-x", "claude-x"]) as sim:
        theirs = http.get(sim.base_url("openai") + "/models").json()
        with httpx2.Client() as bare:
            ours = bare.get(sim.base_url("openai") + "/models").json()
    assert [model["type"] for model in theirs["data"]] == ["model", "model"]
    assert [model["id"] for model in ours["data"]] == ["claude-x", "gpt-x"]


def test_unknown_paths_and_broken_json(sim: Simulator, http: httpx2.Client) -> None:
    assert http.post(sim.base_url("openai") + "/nothing", json={}).status_code == 404
    for name, path in (("openai", "/responses"), ("anthropic", "/v1/messages"), ("chat", "/chat/completions")):
        response = http.post(sim.base_url(name) + path, content=b"{no json")
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "invalid_request_error"


def test_lenient_mode_answers_what_strict_mode_refuses(http: httpx2.Client) -> None:
    body = {"model": "gpt-5.5", "input": [{"type": "function_call_output", "call_id": "x", "output": "y"}], "odd": 1}
    with Simulator(strict=False) as sim:
        assert http.post(sim.base_url("openai") + "/responses", json=body).status_code == 200


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_runs_inside_async_code(backend: str) -> None:
    async def main() -> str:
        async with Simulator() as sim, httpx2.AsyncClient() as client:
            sim.reply(call("f", {}))
            headers = {"authorization": "Bearer k"}
            url = sim.base_url("openai") + "/responses"
            response = await client.post(url, json={"model": "m", "input": "x"}, headers=headers)
            return str(response.json()["output"][0]["type"])

    assert anyio.run(main, backend=backend) == "function_call"


def test_it_stops_and_starts_again(http: httpx2.Client) -> None:
    sim = Simulator()
    with pytest.raises(ConfigurationError, match="not running"):
        sim.base_url("openai")
    for _ in range(2):
        with sim:
            url = sim.base_url("openai") + "/models"
            assert http.get(url).status_code == 200
            with pytest.raises(ConfigurationError, match="already running"):
                sim.start()
        with pytest.raises(httpx2.ConnectError):
            http.get(url)


def test_two_simulators_with_one_key_know_each_others_signatures(http: httpx2.Client) -> None:
    key = b"k" * 32
    with Simulator(key=key) as first, Simulator(key=key) as second, Simulator() as stranger:
        url = first.base_url("anthropic") + "/v1/messages"
        first.reply(think("Hm"), say("Yes"))
        ask = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        turn = {"role": "assistant", "content": http.post(url, json=ask).json()["content"]}
        again = {**ask, "messages": [*ask["messages"], turn, {"role": "user", "content": "And?"}]}  # type: ignore[misc]
        assert http.post(second.base_url("anthropic") + "/v1/messages", json=again).status_code == 200
        assert http.post(stranger.base_url("anthropic") + "/v1/messages", json=again).status_code == 400


def test_bad_options_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="binding"):
        Simulator(binding="maybe")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="key"):
        Simulator(key=b"short")
    with pytest.raises(ConfigurationError, match="one answer"), Simulator() as sim:
        sim.reply("a", answer("b"))


def test_the_simulator_needs_no_vendor_sdk() -> None:
    code = "import sys, pollux_like.simulator; print([m for m in ('openai', 'anthropic') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_serving_from_a_program_prints_the_environment() -> None:
    code = "from pollux_like.simulator import serve; serve(port=0)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        name, _, url = line.removeprefix("export ").partition("=")
        for _ in range(200):
            try:
                answered = httpx2.get(f"{url}/models").status_code
                break
            except httpx2.ConnectError:
                threading.Event().wait(0.02)
        process.terminate()
    assert (name, answered) == ("OPENAI_BASE_URL", 200)
