"""Another process that takes turns: it gets saved state on a line and answers with saved state on a line."""

from __future__ import annotations

import json
import sys

import anyio
import table

from pollux_like import Continuation
from pollux_like.testing import CONVERSATIONS

NAMED = {conversation.name: conversation for conversation in CONVERSATIONS}


async def one(order: dict[str, object]) -> object:
    """Take one turn of a conversation from what was saved."""
    conversation = NAMED[str(order["conversation"])]
    target = next(target for target in table.TARGETS if target.name == order["target"])
    saved = order["continuation"]
    output = await table.take(
        table.environment(conversation),
        table.given(
            conversation, int(str(order["step"])), None if saved is None else Continuation.from_jsonable(saved)
        ),
        table.config(str(order["url"]), target),
        target.arguments(conversation),
        streamed=False,
    )
    return None if output.continuation is None else output.continuation.to_jsonable()


async def main() -> None:
    """Until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(await one(json.loads(line))), flush=True)


if __name__ == "__main__":
    anyio.run(main)
