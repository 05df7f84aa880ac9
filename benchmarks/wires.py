"""The four wires by hand: canned answers for the server, and bodies for the contenders without an SDK. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.work import (
    ABOUT,
    ANSWER,
    ARGUMENTS,
    INSTRUCTIONS,
    MAX_TOKENS,
    MODELS,
    QUESTION,
    RESULT,
    SCHEMA,
    TOOL,
    piece,
    streamed,
)

NUMBER = "000000000000"
"""Stands in canned answers where each answer has a number of its own, of as many digits."""
_RESULTS = {"responses": b'"function_call_output"', "chat": b'"tool_call_id"', "anthropic": b'"tool_result"',
            "gemini": b'"functionResponse"'}  # fmt: skip
"""What stands in a request once for each tool result. Gemini takes it in snake case too."""
HISTORY = {"responses": "input", "chat": "messages", "anthropic": "messages", "gemini": "contents"}


def results_in(wire: str, body: bytes) -> int:
    """How many tool results a request holds."""
    found = body.count(_RESULTS[wire])
    return found or (body.count(b'"function_response"') if wire == "gemini" else 0)


def compact(value: object) -> str:
    """JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_answer(wire: str, text: str = ANSWER) -> dict[str, Any]:
    """A complete answer of text."""
    match wire:
        case "responses":
            content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
            item = {"id": f"msg_{NUMBER}", "type": "message", "status": "completed", "role": "assistant"}
            return _response([{**item, "content": content}])
        case "chat":
            return _completion({"role": "assistant", "content": text, "refusal": None, "annotations": []}, "stop")
        case "anthropic":
            return _message([{"type": "text", "text": text}], "end_turn")
        case _:
            return _generated([{"text": text}])


def call_answer(wire: str) -> dict[str, Any]:
    """A complete answer that calls the tool."""
    match wire:
        case "responses":
            call = {"id": f"fc_{NUMBER}", "call_id": f"call_{NUMBER}", "type": "function_call", "status": "completed"}
            return _response([{**call, "name": TOOL, "arguments": compact(ARGUMENTS)}])
        case "chat":
            call = {"id": f"call_{NUMBER}", "type": "function"}
            calls = [{**call, "function": {"name": TOOL, "arguments": compact(ARGUMENTS)}}]
            return _completion(
                {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}, "tool_calls"
            )
        case "anthropic":
            said = {"type": "text", "text": "I look up the weather."}
            return _message(
                [said, {"type": "tool_use", "id": f"toolu_{NUMBER}", "name": TOOL, "input": ARGUMENTS}], "tool_use"
            )
        case _:
            call = {"id": f"call_{NUMBER}", "name": TOOL, "args": ARGUMENTS}
            return _generated([{"functionCall": call, "thoughtSignature": "c2lnbmF0dXJl" * 8}])


def events(wire: str, deltas: int) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """An answer of that many deltas: (event name, data)."""
    whole, said = streamed(deltas), map(piece, range(deltas))
    match wire:
        case "responses":
            item = text_answer(wire, whole)["output"][0]
            at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            empty = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
            steps = [{"type": "response.created", "response": {**_response([]), "status": "in_progress"}}]
            steps += [{"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}]
            steps += [{"type": "response.content_part.added", **at, "part": empty}]
            steps += [{"type": "response.output_text.delta", **at, "delta": one, "logprobs": []} for one in said]
            steps += [{"type": "response.output_text.done", **at, "text": whole, "logprobs": []}]
            steps += [{"type": "response.content_part.done", **at, "part": {**empty, "text": whole}}]
            steps += [{"type": "response.output_item.done", "output_index": 0, "item": item}]
            steps += [{"type": "response.completed", "response": _response([item])}]
            for number, step in enumerate(steps):
                yield step["type"], {**step, "sequence_number": number}
        case "chat":
            chunk = {"id": f"chatcmpl-{NUMBER}", "object": "chat.completion.chunk", "created": 1_790_000_000,
                     "model": MODELS[wire]}  # fmt: skip
            usage = text_answer(wire)["usage"]
            yield None, {**chunk, "choices": [_choice({"role": "assistant", "content": ""})]}
            for one in said:
                yield None, {**chunk, "choices": [_choice({"content": one})]}
            yield None, {**chunk, "choices": [_choice({}, "stop")]}
            yield None, {**chunk, "choices": [], "usage": usage}
        case "anthropic":
            start = {**_message([], None), "stop_reason": None}
            yield "message_start", {"type": "message_start", "message": start}
            block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            yield "content_block_start", block
            for one in said:
                delta = {"type": "text_delta", "text": one}
                yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": 0}
            end = {"stop_reason": "end_turn", "stop_sequence": None}
            yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": deltas}}
            yield "message_stop", {"type": "message_stop"}
        case _:
            for number, one in enumerate(said):
                part = _generated([{"text": one}])
                if number < deltas - 1:
                    del part["candidates"][0]["finishReason"]
                yield None, part


def sse(wire: str, deltas: int) -> Iterator[str]:
    """The same as server-sent events."""
    for name, data in events(wire, deltas):
        yield (f"event: {name}\n" if name else "") + f"data: {compact(data)}\n\n"
    if wire == "chat":
        yield "data: [DONE]\n\n"


def body(wire: str, history: list[Any], *, streaming: bool = False) -> dict[str, Any]:
    """A request, as one who writes it by hand would."""
    parameters = {"name": TOOL, "description": ABOUT}
    head: dict[str, Any] = {"model": MODELS[wire]}
    match wire:
        case "responses":
            tools = [{"type": "function", **parameters, "parameters": SCHEMA, "strict": True}]
            head |= {"instructions": INSTRUCTIONS, "input": history, "tools": tools, "store": False}
        case "chat":
            tools = [{"type": "function", "function": {**parameters, "parameters": SCHEMA, "strict": True}}]
            head |= {"messages": [{"role": "developer", "content": INSTRUCTIONS}, *history], "tools": tools}
        case "anthropic":
            tools = [{**parameters, "input_schema": SCHEMA}]
            head |= {"max_tokens": MAX_TOKENS, "system": INSTRUCTIONS, "messages": history, "tools": tools}
        case _:
            tools = [{"functionDeclarations": [{**parameters, "parametersJsonSchema": SCHEMA}]}]
            system = {"parts": [{"text": INSTRUCTIONS}]}
            return {"systemInstruction": system, "contents": history, "tools": tools}
    return {**head, "stream": True} if streaming else head


def asked(wire: str) -> list[Any]:
    """A history of one question."""
    return [
        {"role": "user", "parts": [{"text": QUESTION}]} if wire == "gemini" else {"role": "user", "content": QUESTION}
    ]


def grown(wire: str, history: list[Any], answer: dict[str, Any]) -> bool:
    """Add an answer to the history, with the results of its calls. False where it called nothing."""
    match wire:
        case "responses":
            history += answer["output"]
            ids = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
            history += [{"type": "function_call_output", "call_id": one, "output": RESULT} for one in ids]
        case "chat":
            said = answer["choices"][0]["message"]
            ids = [call["id"] for call in said.get("tool_calls") or ()]
            history += [said, *({"role": "tool", "tool_call_id": one, "content": RESULT} for one in ids)]
        case "anthropic":
            history.append({"role": "assistant", "content": answer["content"]})
            ids = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": one, "content": RESULT} for one in ids]
            history += [{"role": "user", "content": results}] if results else []
        case _:
            content = answer["candidates"][0]["content"]
            ids = [part["functionCall"]["id"] for part in content["parts"] if "functionCall" in part]
            parts = [{"functionResponse": {"id": one, "name": TOOL, "response": {"output": RESULT}}} for one in ids]
            history += [content, *([{"role": "user", "parts": parts}] if parts else [])]
    return bool(ids)


def text_of(wire: str, answer: dict[str, Any]) -> str:
    """The text of an answer."""
    match wire:
        case "responses":
            return "".join(c["text"] for item in answer["output"] if item["type"] == "message" for c in item["content"])
        case "chat":
            return answer["choices"][0]["message"]["content"] or ""
        case "anthropic":
            return "".join(block.get("text", "") for block in answer["content"])
        case _:
            return "".join(part.get("text", "") for part in answer["candidates"][0]["content"]["parts"])


def text_in(wire: str, line: str) -> str:
    """The text in one line of an event stream."""
    if not line.startswith("data: {"):
        return ""
    data = json.loads(line[6:])
    match wire:
        case "responses":
            return data["delta"] if data["type"] == "response.output_text.delta" else ""
        case "chat":
            return (data["choices"][0]["delta"].get("content") or "") if data["choices"] else ""
        case "anthropic":
            return data["delta"]["text"] if data["type"] == "content_block_delta" else ""
        case _:
            return text_of(wire, data)


def _response(output: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": 40, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 40,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 80}  # fmt: skip
    return {
        "id": f"resp_{NUMBER}", "object": "response", "created_at": 1_790_000_000, "status": "completed", "error": None,
        "incomplete_details": None, "instructions": None, "max_output_tokens": None, "model": MODELS["responses"],
        "output": output, "parallel_tool_calls": True, "previous_response_id": None, "store": False,
        "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [], "top_p": 1.0, "truncation": "disabled", "usage": usage, "metadata": {},
    }  # fmt: skip


def _completion(message: dict[str, Any], reason: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 40, "completion_tokens": 40, "total_tokens": 80}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {"id": f"chatcmpl-{NUMBER}", "object": "chat.completion", "created": 1_790_000_000,
            "model": MODELS["chat"], "choices": [choice], "usage": usage}  # fmt: skip


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _message(content: list[Any], reason: str | None) -> dict[str, Any]:
    return {"id": f"msg_{NUMBER}", "type": "message", "role": "assistant", "model": MODELS["anthropic"],
            "content": content, "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 40, "output_tokens": 40}}  # fmt: skip


def _generated(parts: list[Any]) -> dict[str, Any]:
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 40, "candidatesTokenCount": 40, "totalTokenCount": 80}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODELS["gemini"],
            "responseId": f"r{NUMBER}"}  # fmt: skip
