"""The client of OpenAI's SDK, made only when a conversation connects."""

from __future__ import annotations

from pollux_like_chat.client import connected

from pollux_like.config import Config
from pollux_like.sdk import SDKAdapter

from . import vendor


def connect(config: Config) -> SDKAdapter:
    """A client for the config. Raises ConfigurationError for a missing package or key."""
    variables = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
    base_url = vendor.endpoint(config)
    return connected(config, SDKAdapter, "openai", base_url=base_url, variables=variables, extra="openai")
