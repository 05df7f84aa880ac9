"""A client of the OpenAI SDK for a config: the only file that imports it, and only when a conversation connects."""

from __future__ import annotations

import os
from typing import TypeVar

from pollux_like import checks
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError, missing_extra
from pollux_like.sdk import SDKAdapter

Made = TypeVar("Made", bound=SDKAdapter)


def connected(
    config: Config, adapter: type[Made], provider: str, *, base_url: str, variables: tuple[str, str] | None, extra: str
) -> Made:
    """An adapter of that class over the config's own client, or over one for `base_url`.

    `variables` name the key and the address in the environment; None: no key is needed. `extra` brings the SDK. An
    OpenAI account's organisation and project go to OpenAI only. Raises ConfigurationError for a missing package or key.
    """
    try:
        import openai
    except ModuleNotFoundError as error:
        raise missing_extra(extra, error) from None
    if config.client is not None:
        if not isinstance(config.client, openai.AsyncOpenAI):
            raise ConfigurationError(
                f"Config.client is {type(config.client).__name__}", hint="Give an openai.AsyncOpenAI client"
            )
        exact = type(config.client) is openai.AsyncOpenAI
        return adapter(provider, openai, config.client, owned=False, exact=exact)
    key = config.api_key or "none" if variables is None else _key(config, provider, *variables)
    client = openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0)
    if provider != "openai":
        client.organization = client.project = None
    return adapter(provider, openai, client, owned=True, exact=True)


def _key(config: Config, provider: str, variable: str, address: str) -> str:
    key = config.api_key or os.environ.get(variable)
    if not key:
        raise ConfigurationError(f"no key for {provider} is set", hint=f"Set {variable}, or give Config.api_key")
    if config.base_url is None and os.environ.get(address):
        checks.address(os.environ[address], address)
    return checks.key(key, variable)
