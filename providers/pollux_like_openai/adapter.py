"""The only file that imports the OpenAI SDK, and only when a conversation connects."""

from __future__ import annotations

import os

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError
from pollux_like.sdk import SDKAdapter


def connect(config: Config) -> SDKAdapter:
    """A client for the config. Raises ConfigurationError for a missing package or key."""
    try:
        import openai
    except ModuleNotFoundError:
        raise ConfigurationError(
            "the package openai is not installed", hint='Run: pip install "pollux-like[openai]"'
        ) from None
    if config.client is not None:
        if not isinstance(config.client, openai.AsyncOpenAI):
            raise ConfigurationError(
                f"Config.client is {type(config.client).__name__}", hint="Give an openai.AsyncOpenAI client"
            )
        exact = type(config.client) is openai.AsyncOpenAI
        return SDKAdapter("openai", openai, config.client, owned=False, exact=exact)
    key = config.api_key or os.environ.get("OPENAI_API_KEY")
    if not key:
        raise ConfigurationError("no key for openai is set", hint="Set OPENAI_API_KEY, or give Config.api_key")
    checks.key(key, "OPENAI_API_KEY")
    if config.base_url is None and os.environ.get("OPENAI_BASE_URL"):
        checks.address(os.environ["OPENAI_BASE_URL"], "OPENAI_BASE_URL")
    client = openai.AsyncOpenAI(api_key=key, base_url=config.base_url, max_retries=0)
    return SDKAdapter("openai", openai, client, owned=True, exact=True)
