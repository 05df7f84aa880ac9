"""A chat whose whole state is a sealed cookie, which the browser can neither read nor change; the server keeps nothing.

Problem: a conversation per visitor, without a database and without trust in what a browser sends back.
Run: python -m cookbook run sealed_cookie 8000
Then curl -c jar -b jar -H "x-user: sean" -d "I am Sean." http://127.0.0.1:8000/say, and again with other words.
SEALING_KEYS holds the keys, the current one first, separated by commas; without it a key is made that lives as long as
the process. Browsers keep about 4,000 characters per cookie, which is some ten turns: longer chats belong into a store.
Success check: the second answer knows the first turn. A cookie that was changed, has expired or belongs to another user
gets a 400 and is deleted. It may be sent twice, though: a visitor can go back to an older state of the own chat.
Real model: replace `Scripted(stand_in).config` by `Config("openai", "gpt-5-nano")`.
"""

from __future__ import annotations

import os
import sys

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pollux_like import ContinuationError, ContinuationSealer, Environment, Input, interact
from pollux_like.testing import Answer, Recorded, Scripted, answer, say

COOKIE = "talk"
MOST_CHARACTERS = 3_900
HOUR_S = 3_600
ENVIRONMENT = Environment(instructions="Answer in one sentence.")


def stand_in(request: Recorded) -> Answer:
    """What the model answers here."""
    count = len(request.messages)
    return answer(say(f"Message {count}; the first was: {request.messages[0]['content']}"))


def context(request: Request) -> dict[str, str]:
    """What a cookie is bound to. A real application takes the user from its login."""
    return {"user": request.headers.get("x-user", ""), "environment": ENVIRONMENT.fingerprint(provider="scripted")}


def application(sealer: ContinuationSealer) -> Starlette:
    """One route: a message in the body, the answer as JSON, the state in the cookie."""

    async def said(request: Request) -> Response:
        token = request.cookies.get(COOKIE)
        text = (await request.body()).decode("utf-8", "replace")
        if not text.strip():
            return JSONResponse({"error": "Say something."}, 400)
        try:
            state = sealer.unseal(token, context=context(request)) if token else None
        except ContinuationError:
            refused = JSONResponse({"error": "This chat has ended. Begin a new one."}, 400)
            refused.delete_cookie(COOKIE)
            return refused
        turn = Input(text, history=[]) if state is None else Input(text, continuation=state)
        output = await interact(ENVIRONMENT, turn, Scripted(stand_in).config)
        assert output.continuation is not None  # history=[] and a continuation both opt into tracking
        sealed = sealer.seal(output.continuation, context=context(request), ttl_s=HOUR_S)
        if len(sealed) > MOST_CHARACTERS:
            return JSONResponse({"text": output.text, "error": "This chat is full; the last turn is not kept."})
        reply = JSONResponse({"text": output.text})
        reply.set_cookie(COOKIE, sealed, max_age=HOUR_S, httponly=True, samesite="strict",
                         secure=request.url.scheme == "https")  # fmt: skip
        return reply

    return Starlette(routes=[Route("/say", said, methods=["POST"])])


def main(arguments: list[str]) -> None:
    """Serve on loopback until interrupted."""
    import uvicorn

    given = os.environ.get("SEALING_KEYS")
    sealer = ContinuationSealer(given.split(",") if given else [ContinuationSealer.new_key()])
    uvicorn.run(application(sealer), host="127.0.0.1", port=int(arguments[0]) if arguments else 8000)


if __name__ == "__main__":
    main(sys.argv[1:])
