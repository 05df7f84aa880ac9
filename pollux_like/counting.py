"""Counting: how many input tokens a turn would have, by the provider's own count. Nothing is generated."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, Unpack

from pollux_like import api_errors, registry
from pollux_like.config import Config
from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError
from pollux_like.input import Input
from pollux_like.prepare import check_types, prepare
from pollux_like.provider import Counts, Reply
from pollux_like.registry import Connect
from pollux_like.send import Sending, send
from pollux_like.settings import Arguments, Settings


async def count_tokens(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> int:
    """Input tokens of the turn that `interact` would take with the same arguments: the whole conversation with its
    instructions, tools and sources.

    The turn is checked as `interact` checks it, and sent to the provider's endpoint for counting: OpenAI POST
    /v1/responses/input_tokens, Anthropic POST /v1/messages/count_tokens, Gemini models.countTokens; the embedded model
    counts with its own tokenizer. Raises ConfigurationError where the provider has no such endpoint (chat completions,
    OpenRouter, servers behind `local`), and like `interact` for the rest.
    """
    return await count(environment, input, config, registry.pooled, dict(arguments))


async def count(
    environment: Environment, input: Input, config: Config, connect: Connect, arguments: dict[str, Any]
) -> int:
    """A count over a given way of connecting."""
    settings = Settings.of(**arguments)
    check_types(environment, input, config)
    vendor = registry.vendor_of(config)
    if not isinstance(vendor, Counts):
        raise ConfigurationError(
            f"provider {config.provider!r} counts no tokens before a turn", hint="Read Output.usage after it"
        )
    wire = vendor.render_count(prepare(vendor, environment, input, config, settings, streaming=False).request)
    sending = Sending(wire, settings.timeout_s or config.timeout_s, config.max_attempts)
    connection = await connect(config)
    async with connection.limit, aclosing(send(sending, connection.adapter)) as items:
        async for item in items:
            if isinstance(item, Reply):
                return item.usage.input_tokens
    raise api_errors.unreadable(config.provider)
