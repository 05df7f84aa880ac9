"""What the checks share: an environment, tenants, expected errors, ready conversations."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pollux_like.environment import Environment
from pollux_like.errors import ConfigurationError, PolluxLikeError
from pollux_like.input import Input
from pollux_like.store import Conversation, ConversationStore
from pollux_like.testing.script import say
from pollux_like.testing.scripted import Scripted
from pollux_like.tools import ToolDeclaration

Factory = Callable[..., ConversationStore]
Failure = TypeVar("Failure", bound=PolluxLikeError)

ENV = Environment(instructions="Be brief.", tools=[ToolDeclaration("book", "Book a seat")])


def scope() -> str:
    """A tenant that nobody else has."""
    return f"conformance-{uuid.uuid4().hex}"


async def refused(kind: type[Failure], made: Awaitable[object]) -> Failure:
    """The error that it raises, of exactly that kind."""
    try:
        await made
    except PolluxLikeError as error:
        if not isinstance(error, kind):
            raise AssertionError(f"{type(error).__name__} instead of {kind.__name__}") from error
        return error
    raise AssertionError(f"no {kind.__name__}")


async def talked(store: ConversationStore, tenant: str, *said: str, id: str | None = None) -> Conversation:
    """A conversation of one turn per word; the model repeats it."""
    conversation = await store.create(id, scope=tenant)
    model = Scripted(*([say(f"You said {word}")] for word in said))
    for word in said:
        await conversation.interact(ENV, Input(word), model.config)
    return conversation


async def searched(store: ConversationStore, tenant: str, words: str) -> list[str] | None:
    """The ids of the conversations that a search finds; None in a sealed store, which refuses it."""
    if store.policy.sealer is not None:
        await refused(ConfigurationError, store.search(words, scope=tenant))
        return None
    return [match.id for match in await store.search(words, scope=tenant)]


async def texts(conversation: Conversation) -> list[str]:
    """The contents of its transcript."""
    return [message.content for shown in await conversation.transcript() for message in shown.messages]
