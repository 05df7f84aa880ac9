"""`pollux-like chat --store`: a conversation that lives in a store."""

from __future__ import annotations

import uuid

from pollux_like import checks
from pollux_like.cli import chat
from pollux_like.cli.console import asked, emit, errors, plain, put
from pollux_like.cli.stores import opened
from pollux_like.config import Config
from pollux_like.environment import Environment
from pollux_like.errors import ConflictError, PolluxLikeError, UnknownConversationError
from pollux_like.input import Input
from pollux_like.store.sync import Conversation


def run(this: chat.Asked, url: str, talk: str, scope: str, take_up: bool | None) -> None:
    """Durable: each input and each answer is in the store when it is shown."""
    checks.filled(talk, "--talk")
    environment = Environment(instructions=this.instructions)
    with opened(url, making=True) as store:
        try:
            conversation = store.load(talk, scope=scope)
        except UnknownConversationError:
            conversation = store.create(talk, scope=scope)
        config = chat.choose(this, conversation.continuation)
        chat.announce(this, config)
        _settle(this, conversation, environment, config, take_up)
        for line in chat.lines(this):
            try:
                with conversation.stream(
                    environment, Input(line), config, key=uuid.uuid4().hex, max_tokens=this.max_tokens
                ) as events:
                    chat.shown(this, config, events)
            except PolluxLikeError as error:
                chat.failed(this, error)
                if isinstance(error, ConflictError):  # the next line goes on from what the other writer added
                    conversation = store.load(talk, scope=scope)


def _settle(
    this: chat.Asked, conversation: Conversation, environment: Environment, config: Config, take_up: bool | None
) -> None:
    """Take up or give up an input that has no answer, as was said or as the person at the terminal says."""
    pending, state = conversation.pending, conversation.continuation
    if pending is None:
        if state is not None and state.paused:  # the model is not done, and nobody has to be asked
            chat.whole(this, conversation.resume(environment, config, max_tokens=this.max_tokens))
        return
    if this.as_json:
        emit({"type": "pending", "pending": pending.to_jsonable()})
    else:
        put(("No answer came to: ", "yellow"), plain(pending.content or "tool results"), to=errors)
    if take_up is None:
        take_up = asked("Send it again?", "Give --take-up to send it again, or --give-up")
    if not take_up:
        conversation.discard_pending()
    elif pending.key is None:
        chat.whole(this, conversation.resume(environment, config, max_tokens=this.max_tokens))
    else:
        with conversation.stream(
            environment, pending.input((), state), config, key=pending.key, max_tokens=this.max_tokens
        ) as events:
            chat.shown(this, config, events)
