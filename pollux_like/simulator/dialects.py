"""The vendor APIs that the simulator speaks. A new one is one module and one line here."""

from __future__ import annotations

from pollux_like.simulator.chat import Chat
from pollux_like.simulator.chat_flavours import FLAVOURS
from pollux_like.simulator.gemini import GenerateContent
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.messages import Messages
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses import Responses
from pollux_like.simulator.router import Router
from pollux_like.simulator.vllm import VLLM
from pollux_like.simulator.wire import Dialect


def dialects(ledger: Ledger, options: Options) -> tuple[Dialect, ...]:
    """All of them; the first that takes a request answers it."""
    return (
        Responses(ledger, options),
        Messages(ledger, options),
        GenerateContent(ledger, options),
        *(Chat(ledger, options, flavour) for flavour in FLAVOURS),
        VLLM(ledger, options),
        Router(ledger, options),
    )
