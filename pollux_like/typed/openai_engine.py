"""OpenAIEngine: a served model over chat completions. What the server can do is asked at start-up, not assumed.

Three dialects are tried, the first that keeps a constraint is used (documents of vLLM, SGLang and OpenAI):

    vllm     continue_final_message, structured_outputs {choice, regex, grammar}, logprobs
    sglang   continue_final_message, regex or ebnf, logprobs
    json     no prefix; response_format json_schema with an enum; probabilities are not used

Two words that no model would choose are offered: where their probabilities add up to one, the server reports them under
the constraint (`masked`), else before it. The server tokenises texts itself, so template tokens in them are broken up.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from typing import Any, cast

from pollux_like import checks
from pollux_like.canonical import JSONPolicyError, dumps, loads
from pollux_like.engine import Choice, Constraint, Counted, EngineInfo, Free, Prompt, Shape, Step, gbnf
from pollux_like.errors import (
    APIError,
    AuthenticationError,
    ConfigurationError,
    ContextOverflowError,
    RateLimitError,
    missing_extra,
)
from pollux_like.typed.guards import without_tokens

try:
    import httpx2
except ModuleNotFoundError as error:
    raise missing_extra("typed", error) from None

TIMEOUT_S = 120.0
TOP = 20
"""Alternatives per token: the most that vLLM gives unless started with more (--max-logprobs)."""
PARALLEL = 4
_PROBE = Choice((" zebra", " quartz"))
_END = re.compile(r"<[|｜].*[|｜]>|</s>|<eos>|<end_of_turn>|")
_LENGTHS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server takes a prefix and a constraint."""

    name: str
    prefill: bool
    logprobs: bool


DIALECTS = (Dialect("vllm", True, True), Dialect("sglang", True, True), Dialect("json", False, False))


async def open_engine(
    *, base_url: str | None = None, model: str | None = None, api_key: str | None = None
) -> OpenAIEngine:
    """Connect and probe. `base_url` ends where /chat/completions begins; `model` is the server's first one by default.

    Raises ConfigurationError where no dialect works, APIError where the server does not answer.
    """
    if base_url is None:
        raise ConfigurationError("the engine openai has no base_url", hint="Give the address of the server")
    address = checks.address(base_url, "base_url").rstrip("/")
    headers = {} if api_key is None else {"Authorization": f"Bearer {checks.key(api_key, 'api_key')}"}
    client = httpx2.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT_S)
    try:
        with _shaped():
            return await _opened(client, model)
    except BaseException:
        await client.aclose()
        raise


async def _opened(client: httpx2.AsyncClient, model: str | None) -> OpenAIEngine:
    listed = await _asked(client, "GET", "/models", None)
    data = cast("list[dict[str, Any]]", listed.get("data") or [])
    if model is None and not data:
        raise ConfigurationError("the server names no model", hint="Give model")
    chosen = model or str(data[0]["id"])
    window = next((one.get("max_model_len") for one in data if one.get("id") == chosen), None)
    for dialect in DIALECTS:
        masked = await _probed(client, chosen, dialect)
        if masked != "no":
            return OpenAIEngine(client, chosen, dialect, window, {"masked": True, "raw": False}.get(masked))
    raise ConfigurationError(
        "the server keeps no constraint that is known here",
        hint="Serve the model with vLLM, SGLang or llama-server",
    )


@contextmanager
def _shaped() -> Generator[None, None, None]:
    """An answer that is not of the API's shape is the server's fault, wherever in it that shows."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise _broken() from None


class OpenAIEngine:
    """See `pollux_like.engine.Engine`. Made by `open_engine`."""

    def __init__(
        self, client: httpx2.AsyncClient, model: str, dialect: Dialect, window: int | None, masked: bool | None
    ) -> None:
        self._client = client
        self.dialect = dialect
        notes = ["template tokens in texts are broken by a zero-width space"]
        if not dialect.prefill:
            notes.append("the answer is asked for as JSON, without a prefix")
        self.info = EngineInfo(
            model, f"openai:{dialect.name}", window=window, masked=masked, layout=tuple(notes), parallel=PARALLEL
        )

    async def open(self, prompt: Prompt) -> Counted:
        """One token after the shared turns: the server keeps what it encoded."""
        body = self.body(Prompt(prompt.shared), Free(), 1, 0.0, 0)
        answer = await _asked(self._client, "POST", "/chat/completions", body)
        with _shaped():
            counted = _counted(answer)
        return Counted(counted.prompt, counted.cached, 0)

    async def generate(
        self, prompt: Prompt, constraint: Constraint, *, max_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> AsyncGenerator[Step | Counted, None]:
        """Free text as it comes; a constrained value in one answer."""
        body = self.body(prompt, constraint, max_tokens, temperature, seed)
        if isinstance(constraint, Free):
            with _shaped():
                async for item in self._streamed(body, "" if self.dialect.prefill else prompt.begin):
                    yield item
            return
        answer = await _asked(self._client, "POST", "/chat/completions", body)
        with _shaped():
            chosen = _choice(answer)
            steps = _steps(chosen) if self.dialect.prefill else [Step(_json_value(chosen).encode())]
            counted = _counted(answer)
        for step in steps:
            yield step
        yield counted

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def body(self, prompt: Prompt, constraint: Constraint, most: int, temperature: float, seed: int) -> dict[str, Any]:
        turns = prompt.shared if prompt.ask is None else (*prompt.shared, prompt.ask)
        messages = [{"role": turn.role, "content": without_tokens(turn.text)} for turn in turns]
        more: dict[str, Any] = {}
        if prompt.begin and self.dialect.prefill:
            messages.append({"role": "assistant", "content": without_tokens(prompt.begin)})
            more = {"continue_final_message": True, "add_generation_prompt": False}
        constrained = _constrained(self.dialect, constraint)
        return {
            "model": self.info.model, "messages": messages, "max_tokens": most + 16 * (not self.dialect.prefill),
            "temperature": temperature, "seed": seed, **more, **constrained,
        }  # fmt: skip

    async def _streamed(self, body: dict[str, Any], echo: str) -> AsyncGenerator[Step | Counted, None]:
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        counted, finish, head = Counted(None, None, None), "stop", ""
        try:
            async with self._client.stream("POST", "/chat/completions", json=body) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refused(response)
                async for line in response.aiter_lines():
                    if not line.startswith("data: ") or line == "data: [DONE]":
                        continue
                    chunk = _read(line[6:])
                    counted = _counted(chunk) if chunk.get("usage") else counted
                    for chosen in cast("list[dict[str, Any]]", chunk.get("choices") or []):
                        finish = chosen.get("finish_reason") or finish
                        text = str(_object(chosen.get("delta")).get("content") or "")
                        if echo and text:  # a server without prefix may repeat `field =`
                            head += text
                            if echo.startswith(head.lstrip()) and len(head.lstrip()) < len(echo):
                                continue
                            text, echo = head.lstrip().removeprefix(echo), ""
                        if text:
                            yield Step(text.encode())
        except httpx2.HTTPError as error:
            raise _unreachable(error) from None
        if finish != "length":
            yield Step(b"")
        yield Counted(counted.prompt, counted.cached, counted.generated, finish)


def _constrained(dialect: Dialect, constraint: Constraint) -> dict[str, Any]:
    if isinstance(constraint, Free):
        return {}
    wanted = {"logprobs": True, "top_logprobs": TOP} if dialect.logprobs else {}
    match dialect.name, constraint:
        case "vllm", Choice(options):
            return {**wanted, "structured_outputs": {"choice": list(options)}}
        case "vllm", Shape(pattern):
            return {**wanted, "structured_outputs": {"regex": pattern}}
        case "vllm", _:
            return {**wanted, "structured_outputs": {"grammar": gbnf(constraint)}}
        case "sglang", Choice(options):
            return {**wanted, "regex": f"({'|'.join(re.escape(option) for option in options)})"}
        case "sglang", Shape(pattern):
            return {**wanted, "regex": pattern}
        case "sglang", _:
            return {**wanted, "ebnf": gbnf(constraint)}
        case _:
            return {"response_format": _json_schema(constraint)}


def _json_schema(constraint: Constraint) -> dict[str, Any]:
    value: dict[str, Any] = {"type": "string"}
    if isinstance(constraint, Choice):
        value["enum"] = [option.removeprefix(" ") for option in constraint.options]
    schema = {
        "type": "object", "properties": {"value": value}, "required": ["value"], "additionalProperties": False,
    }  # fmt: skip
    return {"type": "json_schema", "json_schema": {"name": "value", "strict": True, "schema": schema}}


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _json_value(chosen: Mapping[str, Any]) -> str:
    answer = _read(str(_object(chosen.get("message")).get("content") or "{}"))
    return f" {answer.get('value', '')}"


async def _probed(client: httpx2.AsyncClient, model: str, dialect: Dialect) -> str:
    """masked, raw, none (no probabilities), or no (the dialect does not work)."""
    engine = OpenAIEngine(client, model, dialect, None, None)
    prompt = Prompt((), None, "word =" if dialect.prefill else "")
    body = engine.body(prompt, _PROBE, 8, 0.0, 0)
    body["messages"] = [{"role": "user", "content": "Name an animal or a stone."}, *body["messages"]]
    try:
        answer = await _asked(client, "POST", "/chat/completions", body)
    except APIError as error:
        if error.status in (400, 404, 422, 501):
            return "no"
        raise
    chosen = _choice(answer)
    if not dialect.prefill:
        try:
            return "none" if _json_value(chosen) in _PROBE.options else "no"
        except APIError:
            return "no"
    if _object(chosen.get("message")).get("content") not in _PROBE.options:
        return "no"
    steps = _steps(chosen)
    if not steps or steps[0].logprob is None or not steps[0].alternatives:
        return "none"
    allowed = [p for data, p in steps[0].alternatives if any(o.encode().startswith(data) for o in _PROBE.options)]
    return "masked" if sum(exp(p) for p in allowed) > 0.98 else "raw"


def _steps(chosen: Mapping[str, Any]) -> list[Step]:
    shown: dict[str, Any] = chosen.get("logprobs") or {}
    entries = cast("Sequence[dict[str, Any]]", shown.get("content") or ())
    if not entries:
        return [Step(str(_object(chosen.get("message")).get("content") or "").encode())]
    return [
        Step(
            _data(one),
            float(one["logprob"]),
            tuple((_data(o), float(o["logprob"])) for o in one.get("top_logprobs") or ()),
        )
        for one in entries
    ]


def _data(entry: Mapping[str, Any]) -> bytes:
    token = str(entry.get("token") or "")
    if _END.fullmatch(token):
        return b""
    given = entry.get("bytes")
    return bytes(cast("list[int]", given)) if given else token.encode()


def _choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = cast("list[dict[str, Any]]", answer.get("choices") or [])
    if not choices:
        raise _broken()
    return choices[0]


def _counted(answer: Mapping[str, Any]) -> Counted:
    usage: dict[str, Any] = answer.get("usage") or {}
    details: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    choices = cast("list[dict[str, Any]]", answer.get("choices") or [{}])
    finish = str((choices[0] if choices else {}).get("finish_reason") or "stop")
    found = (usage.get("prompt_tokens"), details.get("cached_tokens"), usage.get("completion_tokens"))
    prompt, cached, generated = (None if count is None else int(count) for count in found)
    return Counted(prompt, cached, generated, finish)


async def _asked(client: httpx2.AsyncClient, method: str, path: str, body: Any) -> dict[str, Any]:
    try:
        response = await client.request(method, path, json=body)
    except httpx2.HTTPError as error:
        raise _unreachable(error) from None
    if response.status_code != 200:
        raise _refused(response)
    return _read(response.text)


def _read(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except JSONPolicyError:
        raise _broken() from None
    if not isinstance(value, dict):
        raise _broken()
    return cast("dict[str, Any]", value)


def _refused(response: httpx2.Response) -> APIError:
    status = response.status_code
    if status in (401, 403):
        return AuthenticationError("the server refused the key", hint="Give its key as api_key", status=status)
    if status == 429:
        return RateLimitError("the server has too many requests", hint="Try again later", status=429, retryable=True)
    try:
        said = dumps(_read(response.text))
    except APIError:
        said = ""
    if status == 400 and ("context length" in said or "context_length" in said or "context window" in said):
        limit, tokens, *_ = (*_LENGTHS.findall(said), "?", "?")
        return ContextOverflowError(
            f"The conversation is longer than the window of the model (limit and length as the server says: {limit}, "
            f"{tokens} tokens)",
            hint="Shorten the conversation",
            status=400,
        )
    return APIError(
        f"the server answered {status}", hint="Look at its log", status=status, retryable=status in (500, 502, 503, 504)
    )


def _broken() -> APIError:
    return APIError("the server's answer is none of a chat completion", hint="Check base_url", retryable=False)


def _unreachable(error: Exception) -> APIError:
    return APIError(f"the server did not answer ({type(error).__name__})", hint="See whether it runs", retryable=True)
