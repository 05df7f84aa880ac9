"""A llama-server by its URL, through its own routes: /props, /tokenize and /v1/completions (tools/server/README.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from pollux_like import checks
from pollux_like.canonical import JSONPolicyError, loads, sha256
from pollux_like.engine import Counted, EngineInfo
from pollux_like.errors import APIError, AuthenticationError, ConfigurationError, ContextOverflowError, missing_extra
from pollux_like_local.models import model_id
from pollux_like_local.prompt import ChatTemplate, Piece

TIMEOUT_S = 120.0


class Remote:
    """A connected llama-server. One client per event loop: make it where it is used."""

    def __init__(self, client: Any, errors: type[Exception], properties: dict[str, Any], model: str) -> None:
        self._client = client
        self._errors = errors
        source = str(properties["chat_template"])
        self.template = ChatTemplate(source, bos=properties["bos_token"], eos=properties["eos_token"])
        window = int(properties["default_generation_settings"]["n_ctx"])
        self.info = EngineInfo(model, "llama", None, sha256(source), window, masked=False, parallel=1)

    @classmethod
    async def open(cls, base_url: str, api_key: str | None) -> Remote:
        """Ask what the server is. Raises ConfigurationError where it is no llama-server, APIError without an answer."""
        try:
            import httpx2
            import jinja2  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ModuleNotFoundError as error:
            raise missing_extra("typed", error) from None
        address = checks.address(base_url, "base_url").rstrip("/").removesuffix("/v1")
        headers = {} if api_key is None else {"Authorization": f"Bearer {checks.key(api_key, 'api_key')}"}
        client = httpx2.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT_S)
        try:
            properties = await _asked(client, httpx2.HTTPError, "GET", "/props", None)
            if "chat_template" not in properties or "default_generation_settings" not in properties:
                raise ConfigurationError(
                    "the server at base_url is no llama-server", hint='Use the engine "openai" for other servers'
                )
            path = str(properties.get("model_path") or properties.get("model_alias") or "llama-server")
            with _shaped():
                return cls(client, httpx2.HTTPError, properties, _name(path))
        except BaseException:
            await client.aclose()
            raise

    async def tokenize(self, pieces: Sequence[Piece]) -> list[int]:
        """Piece by piece; neighbours that are plain text go in one request."""
        ids: list[int] = []
        for index, piece in enumerate(pieces):
            begins = piece.special and index == 0 and not self.template.begins_with_bos
            body = {"content": piece.text, "add_special": begins, "parse_special": piece.special}
            answer = await _asked(self._client, self._errors, "POST", "/tokenize", body)
            with _shaped():
                ids += [int(token) for token in answer["tokens"]]
        return ids

    async def complete(self, prompt: Sequence[int], most: int, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Closing it closes the connection, which frees the server's slot."""
        body = {"prompt": list(prompt), "max_tokens": most, "stream": True, "cache_prompt": True, **options}
        try:
            async with self._client.stream("POST", "/v1/completions", json=body) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refused(response.status_code, _read(response.text))
                async for line in response.aiter_lines():
                    if not line.startswith("data: ") or line == "data: [DONE]":
                        continue
                    chunk = _read(line[6:])
                    with _shaped():
                        if "error" in chunk:
                            raise _refused(int(chunk["error"].get("code") or 500), chunk)
                        chosen = chunk["choices"][0]
                        counted = _counted(chosen, chunk) if chosen["finish_reason"] else None
                    yield chosen
                    if counted is not None:
                        yield counted
                        return
        except self._errors as error:
            raise _unreachable(error) from None
        raise _broken("it ended without a finish reason")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _counted(chosen: dict[str, Any], chunk: dict[str, Any]) -> Counted:
    timings = chunk["timings"]
    cached, fresh, made = (int(timings[name]) for name in ("cache_n", "prompt_n", "predicted_n"))
    return Counted(cached + fresh, cached, made, str(chosen["finish_reason"]))


@contextmanager
def _shaped() -> Generator[None, None, None]:
    """An answer that is not of the server's shape is its fault, wherever in it that shows."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
        raise _broken("its answer is not that of a llama-server") from None


async def _asked(client: Any, errors: type[Exception], method: str, path: str, body: Any) -> dict[str, Any]:
    try:
        response = await client.request(method, path, json=body)
    except errors as error:
        raise _unreachable(error) from None
    if response.status_code != 200:
        raise _refused(response.status_code, _read(response.text))
    return _read(response.text)


def _read(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except JSONPolicyError:
        raise _broken("its answer is no JSON") from None
    if not isinstance(value, dict):
        raise _broken("its answer is no JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]  # a JSON object


def _refused(status: int, body: dict[str, Any]) -> APIError:
    error: dict[str, Any] = body["error"] if isinstance(body.get("error"), dict) else {}
    if status in (401, 403):
        return AuthenticationError(
            "the llama-server refused the key", hint="Give its key as api_key", provider="local", status=status
        )
    if error.get("type") == "exceed_context_size_error":
        return ContextOverflowError(
            f"The conversation takes {error.get('n_prompt_tokens')} tokens and the window of the model holds "
            f"{error.get('n_ctx')}",
            hint="Shorten the conversation",
            provider="local",
            status=status,
        )
    return APIError(
        f"the llama-server answered {status}", hint="Look at its log", provider="local", status=status,
        type=error.get("type"), retryable=status in (429, 503),
    )  # fmt: skip


def _broken(what: str) -> APIError:
    return APIError(f"the llama-server failed: {what}", hint="Try again", provider="local", retryable=True)


def _unreachable(error: Exception) -> APIError:
    return APIError(
        f"the llama-server did not answer ({type(error).__name__})", hint="See whether it runs", provider="local",
        retryable=True,
    )  # fmt: skip


def _name(path: str) -> str:
    return model_id(PurePath(path)) if path.lower().endswith(".gguf") else path
