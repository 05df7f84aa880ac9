"""Simulator: a strict loopback stand-in for the vendors' APIs, for tests of agents in any language.

    from pollux_like.simulator import Simulator
    from pollux_like.testing.script import say

    with Simulator() as sim:
        sim.reply(say("Hello"))
        ...  # point any vendor SDK at sim.base_url("openai") or sim.base_url("anthropic")

Needs the extra `simulator`. The rules it enforces stand in docs/simulator.md.
"""

from __future__ import annotations

from pollux_like.errors import missing_extra

try:
    import starlette  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as error:
    raise missing_extra("simulator", error) from None

from pollux_like.simulator.script_queue import Recorded
from pollux_like.simulator.server import Simulator, serve
from pollux_like.simulator.wire import Fault

__all__ = ["Fault", "Recorded", "Simulator", "serve"]
