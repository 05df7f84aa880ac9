"""What ten typed fields cost together, and field by field without a shared prefix, by the embedded model's own counters.

    python -m benchmarks.typed_cost

Field by field, every request begins with another line, so that nothing of it is in the engine's cache.
"""

from __future__ import annotations

import json
import time
from typing import Any

import anyio

from pollux_like.engine import Engine
from pollux_like.typed import TypedAnswer, open_engine, typed

MESSAGES = 88
ALONE = 3
"""How many of the fields are read by themselves; the figure of all is that of these, scaled: each costs a prefix."""
TEXT = (
    "My flight to Lisbon on the 14th was cancelled at the gate, and I was told to wait for the next one, which left nine "
    "hours later. I paid for a room and two meals, and I have kept the receipts, {number} in all, for claim {number}."
)
ANSWER = "Thank you, I have noted number {number}. Is there anything else that belongs to the claim?"
SCHEMA: dict[str, Any] = {
    f"{name}_{number}": field
    for number in (1, 2)
    for name, field in {
        "was_cancelled": {"type": "bool"},
        "has_receipts": {"type": "bool"},
        "is_polite": {"type": "bool"},
        "city": {"type": "enum", "options": ["Lisbon", "Oslo", "Rome"]},
        "status": {"type": "enum", "options": ["open", "closed", "waiting"]},
    }.items()
}


def conversation() -> list[dict[str, str]]:
    """About 4,000 tokens; the exact count stands in the result."""
    said: list[dict[str, str]] = []
    for number in range(MESSAGES // 2):
        said.append({"role": "user", "content": TEXT.format(number=number)})
        said.append({"role": "assistant", "content": ANSWER.format(number=number)})
    return [*said, {"role": "user", "content": "That is all."}]


async def asked(engine: Engine, schema: dict[str, Any], line: str) -> tuple[TypedAnswer, dict[str, float]]:
    """An answer; tokens evaluated, seconds."""
    began = time.perf_counter()
    answer = await typed(conversation(), schema, system=line, engine=engine)
    took = time.perf_counter() - began
    tokens = answer.usage.evaluated_tokens
    assert tokens is not None
    failed = [name for name, field in answer.fields.items() if field.error is not None]
    assert not failed, f"fields failed: {failed}"
    return answer, {"tokens": tokens, "wall": took}


async def measure() -> list[tuple[str, str, str, dict[str, float]]]:
    """Samples: together, alone."""
    engine = await open_engine()
    try:
        answer, together = await asked(engine, SCHEMA, "Claims desk 0.")
        together["prefix"] = answer.usage.prefix_tokens or 0
        alone = {"tokens": 0.0, "wall": 0.0}
        for number, name in enumerate(list(SCHEMA)[:: len(SCHEMA) // ALONE][:ALONE], 1):
            _, found = await asked(engine, {name: SCHEMA[name]}, f"Claims desk {number}.")
            alone = {measure: value + found[measure] * len(SCHEMA) / ALONE for measure, value in alone.items()}
    finally:
        await engine.aclose()
    return [("typed", "embedded model", "ours", together), ("typed", "embedded model", "alone", alone)]


if __name__ == "__main__":
    print(json.dumps(anyio.run(measure)))
