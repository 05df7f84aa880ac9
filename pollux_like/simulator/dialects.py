"""The vendor APIs that the simulator speaks, by path. A new one is one module and one line here."""

from __future__ import annotations

from pollux_like.simulator.chat import Chat
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.messages import Messages
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses import Responses
from pollux_like.simulator.wire import Dialect


def dialects(ledger: Ledger, options: Options) -> dict[str, Dialect]:
    """Each request path with the dialect that answers it."""
    spoken: tuple[Dialect, ...] = (Responses(ledger, options), Messages(ledger, options), Chat(ledger, options))
    return {path: dialect for dialect in spoken for path in dialect.paths}
