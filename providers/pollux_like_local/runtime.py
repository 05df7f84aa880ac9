"""The runtime: one llama.cpp server inside this process (xllamacpp), the only file that imports it.

Everything here blocks and runs on the engine's worker thread. The server has one slot; what it evaluated stays in the
slot, and prompts that other conversations push out of it are kept in memory up to `PROMPT_CACHE_MIB`, so a
conversation that goes on is never evaluated twice.
"""

from __future__ import annotations

import http.client
import os
import platform
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pollux_like.canonical import dumps, loads, sha256
from pollux_like.errors import APIError, ConfigurationError, missing_extra
from pollux_like_local.models import ModelInfo, fingerprint, model_id
from pollux_like_local.prompt import ChatTemplate, Piece

BATCH = 56
"""Prompt tokens per evaluation step; cancellation is noticed between two steps (about half a second on one core).

Below 64 on purpose: from 64 on, llama.cpp's flash attention takes another path with other rounding, and a greedy reply
would depend on how much of the prompt was cached (log-probabilities moved by 0.22; below 64 they are equal bit by bit).
"""

PROMPT_CACHE_MIB = 512

_HTTP_TIMEOUT_S = 60


MODEL_TOO = ", then `pollux-like local setup` for the model"


class Cancelled(Exception):
    """The caller has gone; the slot is free again."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What one run of the model gave. `finish` is stop or length; `cached` prompt tokens were not evaluated again."""

    text: str
    finish: str
    prompt_tokens: int
    cached: int
    generated: int


class Runtime:
    """A loaded model. Raises ConfigurationError where the runtime or the model cannot be used."""

    def __init__(self, path: Path, *, n_ctx: int, threads: int) -> None:
        xllamacpp: Any = import_runtime()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = n_ctx
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.ctx_shift = False
        params.fit_params = False
        params.verbosity = -1
        # The server always listens: on loopback, on a free port, behind a key that never leaves this process.
        self._key = secrets.token_hex()
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [self._key]
        params.ui = False
        params.endpoint_slots = False
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigurationError(
                f"The model {str(path)!r} cannot be loaded with a window of {n_ctx} tokens ({error})",
                hint="Give an intact GGUF file, or a smaller n_ctx",
            ) from None
        address = urlsplit(str(self._server.listening_address))
        self._address = (str(address.hostname), address.port)
        properties = self._http("GET", "/props", None)
        source: str = properties["chat_template"]
        self.template = ChatTemplate(source, bos=properties["bos_token"], eos=properties["eos_token"])
        self._special = lru_cache(maxsize=256)(self._tokenize_special)
        after_reply = self._http(
            "POST", "/tokenize", {"content": self.template.after_reply, "parse_special": True, "with_pieces": True}
        )["tokens"]
        self.eot_id: int = after_reply[0]["id"]
        self.model = ModelInfo(
            id=model_id(path),
            path=path,
            fingerprint=fingerprint(path),
            template_hash=sha256(source),
            eot=after_reply[0]["piece"],
            n_ctx=int(properties["default_generation_settings"]["n_ctx"]),
        )

    def tokenize(self, pieces: Sequence[Piece]) -> list[int]:
        """Token ids of a prompt. Special tokens are recognised in the template's own pieces only."""
        content: list[int | str] = []
        for i, piece in enumerate(pieces):
            if piece.special:
                content.extend(self._special(piece.text, i == 0 and not self.template.begins_with_bos))
            else:
                content.append(piece.text)
        body = {"content": content, "add_special": False, "parse_special": False}
        tokens: list[int] = self._http("POST", "/tokenize", body)["tokens"]
        return tokens

    def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        cancelled: Callable[[], bool],
        on_text: Callable[[str], None] | None = None,
        on_chosen: Callable[[dict[str, Any]], None] | None = None,
        **options: Any,
    ) -> Generated:
        """Run the model. `options` are fields of llama-server's completion request, `temperature` and so on;
        `on_chosen` sees every choice as it comes, its log-probabilities where `logprobs` asks for them.

        Raises Cancelled within one evaluation step after `cancelled()` turns true, and APIError where the runtime
        fails.
        """
        texts: list[str] = []
        last: dict[str, Any] = {}

        def receive(chunk: dict[str, Any]) -> bool:
            if "error" in chunk:
                last.update(chunk)
                return True
            chosen = chunk["choices"][0]
            if on_chosen:
                on_chosen(chosen)
            if chosen["text"]:
                texts.append(chosen["text"])
                if on_text:
                    on_text(chosen["text"])
            if chosen["finish_reason"]:
                last.update(chunk)
            return cancelled()

        body = {
            "prompt": list(prompt),
            "max_tokens": max_tokens,
            "stream": True,
            "return_progress": True,
            "cache_prompt": True,
            **options,
        }
        answer: dict[str, Any] | None = self._server.handle_completions(body, receive)
        error = last.get("error") or (answer or {}).get("error")
        if error:
            raise _runtime_error(error)
        if not last:
            if cancelled():
                raise Cancelled
            raise _runtime_error({"message": "it ended without a finish reason"})
        timings = last["timings"]
        return Generated(
            text="".join(texts),
            finish=last["choices"][0]["finish_reason"],
            prompt_tokens=len(prompt),
            cached=timings["cache_n"],
            generated=timings["predicted_n"],
        )

    def probe(self, prompt: Sequence[int], grammar: str, *, cancelled: Callable[[], bool]) -> int | None:
        """None where the runtime does not apply a JSON grammar: it ignores, without a word, one it cannot compile.

        Else how many tokens of `prompt` were cached. One token is asked for, with a word that begins no JSON made all
        but certain; the prompt stays evaluated for the request that follows.
        """
        word = self._special(" Zebra", False)[0]
        try:
            first = self.generate(
                prompt, max_tokens=1, cancelled=cancelled, grammar=grammar, temperature=0, logit_bias=[[word, 100]]
            )
        except APIError as error:
            if error.status == 400:
                return None
            raise
        return None if first.text.strip().startswith("Z") else first.cached

    def close(self) -> None:
        """Free the model's memory and stop its threads."""
        del self._server

    def _tokenize_special(self, text: str, begin: bool) -> tuple[int, ...]:
        body = {"content": text, "add_special": begin, "parse_special": True}
        return tuple(self._http("POST", "/tokenize", body)["tokens"])

    def _http(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        connection = http.client.HTTPConnection(*self._address, timeout=_HTTP_TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else dumps(body).encode(), headers)
            response = connection.getresponse()
            value = loads(response.read().decode())
        except OSError as error:
            raise _runtime_error({"message": f"its listener did not answer ({error})"}) from None
        finally:
            connection.close()
        if response.status != 200:
            raise _runtime_error(value.get("error") or {"code": response.status})
        return value


def default_threads() -> int:
    """One thread on one or two cores, else half of the cores and at most four: more only contend with each other."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(4, max(1, cores // 2))


def import_runtime() -> Any:
    """The package. Raises ConfigurationError where it is missing, or cannot be loaded."""
    check_processor()
    # Idle OpenMP threads otherwise spin and take the cores from the working ones; libgomp reads this as it loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import jinja2  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import xllamacpp  # pyright: ignore[reportMissingImports]  # an optional extra
    except ModuleNotFoundError as error:
        raise missing_extra("local", error, then=MODEL_TOO) from None
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            f"The runtime of the embedded provider cannot be loaded on this machine ({error})",
            hint="Reinstall it with `pollux-like local setup`, or name a server with base_url",
        ) from None
    return xllamacpp


def check_processor() -> None:
    """Refuse a processor that the runtime's wheel would crash on (illegal instruction). Raises ConfigurationError."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return
    try:
        flags = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return  # a sandbox without /proc: nothing is known against this processor
    missing = [name for name in ("avx2", "fma") if f" {name} " not in flags.replace("\n", " ")]
    if missing:
        raise ConfigurationError(
            f"The runtime of the embedded provider needs {' and '.join(missing)}, which this processor does not have",
            hint="Name an OpenAI-compatible server with base_url instead",
        )


def _runtime_error(error: dict[str, Any]) -> APIError:
    return APIError(
        f"The embedded model failed: {error.get('message') or error.get('type') or error.get('code')}",
        hint="Try again; if it fails again, open the engine anew",
        provider="local",
        status=error.get("code") if isinstance(error.get("code"), int) else None,
        type=error.get("type"),
    )
