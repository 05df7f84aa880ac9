"""The page's request, and what several tests share."""

from __future__ import annotations

import json
from typing import Any

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi, I'd like to file an inpatient claim"},
    {"role": "assistant", "content": "Sure, could you give me the policy number and the policyholder's name?"},
    {"role": "user", "content": "3201456789012345 under the name Andi Pratama"},
]
SCHEMA: dict[str, Any] = {
    "policy_number": {"type": "string", "extract": True, "nullable": True},
    "reply": {"type": "string", "free_form": True, "depends_on": ["policy_number"]},
}


def events(text: str) -> list[tuple[str, Any]]:
    """Server-sent events as (name, data)."""
    found = []
    for block in text.split("\n\n"):
        if block.strip():
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found
