"""Config: which provider, which model, how to reach it. Its repr never shows a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pollux_like import checks, plugins
from pollux_like.errors import ConfigurationError
from pollux_like.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Where conversations are sent.

    * `provider`: openai, anthropic, local, or any other installed provider; `model`: its model name.
    * `api_key`: else the provider's environment variable, such as `OPENAI_API_KEY`.
    * `base_url`: a proxy, gateway or self-hosted server; else `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL` and so on.
    * `client`: the application's own async SDK client (Azure, Bedrock, Vertex, proxies); key and URL are then its own.
      It is never closed here, and its retries are switched off per request.
    * `timeout_s`: longest silence of the provider in seconds, within which the next byte must come.
    * `max_attempts`: most HTTP requests per turn. `max_concurrency`: most turns under way at once.

    Raises ConfigurationError naming the field.
    """

    provider: str
    model: str | None = None
    api_key: str | None = field(default=None, repr=False, kw_only=True)
    base_url: str | None = field(default=None, kw_only=True)
    client: Any = field(default=None, repr=False, compare=False, kw_only=True)
    timeout_s: float = field(default=600.0, kw_only=True)
    max_attempts: int = field(default=3, kw_only=True)
    max_concurrency: int = field(default=100, kw_only=True)

    def __post_init__(self) -> None:
        checks.filled(self.provider, "Config.provider")
        if not plugins.known(self.provider):
            raise ConfigurationError(
                f"provider {self.provider[:40]!r} is unknown", hint=f"Use one of: {', '.join(plugins.names())}"
            )
        if self.model is not None:
            checks.filled(self.model, "Config.model")
        if self.api_key is not None:
            checks.key(self.api_key, "Config.api_key")
        if self.base_url is not None:
            checks.address(self.base_url, "Config.base_url")
        if self.client is not None and (self.api_key is not None or self.base_url is not None):
            raise ConfigurationError(
                "Config.client comes with its own key and address", hint="Leave api_key and base_url out"
            )
        checks.number(self.timeout_s, "Config.timeout_s", least=0.001, most=86_400)
        checks.whole(self.max_attempts, "Config.max_attempts", least=1, most=100)
        checks.whole(self.max_concurrency, "Config.max_concurrency", least=1)
