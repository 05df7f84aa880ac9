"""Adoption: what another server issued in a recorded exchange, made known as if it were issued here."""

from __future__ import annotations

from typing import Any

from pollux_like.simulator.gemini_contents import adopt_parts
from pollux_like.simulator.gemini_fields import read
from pollux_like.simulator.ledger import Ledger, family
from pollux_like.simulator.messages_thinking import SIGNED, adopt_block
from pollux_like.simulator.responses import remember
from pollux_like.simulator.responses_items import as_items
from pollux_like.simulator.router_details import adopt_details, remember_calls
from pollux_like.simulator.shapes import as_object, as_objects


def adopt_exchange(ledger: Ledger, request: dict[str, Any], response: dict[str, Any]) -> None:
    """Make the signatures, blobs, ids and the response of one exchange known.

    What is bound to a conversation's prefix is not: a recorded blob says nothing about it.
    """
    if response.get("type") == "message":
        for block in response["content"]:
            if block["type"] in SIGNED:
                adopt_block(ledger, block)
        return
    if "candidates" in response:
        contents, _ = read({"contents": [one["content"] for one in response["candidates"] if one.get("content")]})
        for content in contents["contents"]:
            adopt_parts(ledger, content.get("parts", []), str(response.get("modelVersion", "")))
        return
    for choice in as_objects(response.get("choices")):
        message = as_object(choice.get("message"))
        adopt_details(ledger, str(request.get("model", "")), as_objects(message.get("reasoning_details")))
        remember_calls(ledger, message)
    if response.get("object") != "response":
        return
    for item in response["output"]:
        adopt_item(ledger, item, str(response.get("model", "")))
    previous = ledger.responses.get(str(request.get("previous_response_id")))
    before = [*previous.context, *previous.body["output"]] if previous else []
    context = [*before, *as_items(request.get("input"))]
    remember(ledger, response, context, stored=request.get("store") is not False)


def adopt_item(ledger: Ledger, item: dict[str, Any], model: str) -> None:
    """Make one item's blob known; a stream's `.done` item has another blob than the final body."""
    blob = item.get("encrypted_content")
    if item.get("type") in ("reasoning", "compaction") and blob is not None:
        ledger.adopt(blob, {"k": item["type"], "i": item["id"], "m": family(model)})
