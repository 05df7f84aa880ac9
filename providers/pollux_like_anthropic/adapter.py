"""The only file that imports the Anthropic SDK, and only when a conversation connects."""

from __future__ import annotations

import inspect
import os

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError, missing_extra
from pollux_like.sdk import SDKAdapter


def connect(config: Config) -> SDKAdapter:
    """A client for the config. Raises ConfigurationError for a missing package or key."""
    try:
        import anthropic
    except ModuleNotFoundError as error:
        raise missing_extra("anthropic", error) from None
    if config.client is not None:
        if not inspect.iscoroutinefunction(
            getattr(config.client, "post", None)
        ):  # Bedrock and Vertex are no subclasses
            raise ConfigurationError(
                f"Config.client is {type(config.client).__name__}", hint="Give an anthropic.AsyncAnthropic client"
            )
        exact = type(config.client) is anthropic.AsyncAnthropic
        return SDKAdapter("anthropic", anthropic, config.client, owned=False, exact=exact)
    key = config.api_key or os.environ.get("ANTHROPIC_API_KEY")
    if not key:
        raise ConfigurationError("no key for anthropic is set", hint="Set ANTHROPIC_API_KEY, or give Config.api_key")
    checks.key(key, "ANTHROPIC_API_KEY")
    if config.base_url is None and os.environ.get("ANTHROPIC_BASE_URL"):
        checks.address(os.environ["ANTHROPIC_BASE_URL"], "ANTHROPIC_BASE_URL")
    client = anthropic.AsyncAnthropic(api_key=key, base_url=config.base_url, max_retries=0)
    return SDKAdapter("anthropic", anthropic, client, owned=True, exact=True)
