"""The one pairing rule: every tool call is answered exactly once, by id, right after the turn that made it.

Anthropic (`tool_result` blocks in the next message), OpenAI (`function_call_output` per `call_id`), chat completions
(one tool message per id) and Gemini (as many responses as calls) refuse the rest; here it is refused before any I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message, ToolCall

_REMEDY = 'Answer each call, a cancelled one with ToolResult(call_id, "cancelled", is_error=True)'


def pair(
    pending: Sequence[ToolCall], messages: Sequence[Message], *, where: str = "history"
) -> tuple[tuple[Message, ...], tuple[ToolCall, ...]]:
    """Check `messages` against the calls that are still open; return them with results in call order, and the calls
    that are open at the end.

    Raises ConfigurationError naming the unknown, repeated, orphaned or unanswered ids.
    """
    ordered: list[Message] = []
    open_calls = tuple(pending)
    results: dict[str, Message] = {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            _accept(message, f"{where}[{index}]", open_calls, results)
            if len(results) == len(open_calls):
                ordered.extend(results[call.id] for call in open_calls)
                open_calls, results = (), {}
            continue
        if open_calls:
            raise _unanswered(open_calls, results, f"before the {message.role} message {where}[{index}]")
        ordered.append(message)
        open_calls = message.tool_calls
    if results:
        raise _unanswered(open_calls, results, "and the others are")
    return tuple(ordered), open_calls


def _accept(message: Message, where: str, calls: Sequence[ToolCall], results: dict[str, Message]) -> None:
    call_id = message.tool_call_id or ""
    if call_id in results:
        raise ConfigurationError(f"{where} answers tool call {call_id!r} a second time", hint="Give each result once")
    if call_id not in {call.id for call in calls}:
        expected = ", ".join(repr(call.id) for call in calls) or "none"
        raise ConfigurationError(
            f"{where} answers tool call {call_id!r}, which is not open (open: {expected})",
            hint="Return results for exactly the calls of the turn before, by their ids",
        )
    results[call_id] = message


def _unanswered(calls: Sequence[ToolCall], results: dict[str, Message], where: str) -> ConfigurationError:
    missing = ", ".join(repr(call.id) for call in calls if call.id not in results)
    given = ", ".join(map(repr, results)) or "none"
    return ConfigurationError(f"tool calls {missing} are unanswered {where} (given: {given})", hint=_REMEDY)


def check_pending(calls: Sequence[ToolCall]) -> None:
    """Refuse to go on while calls are open."""
    if calls:
        raise ConfigurationError(
            f"tool calls {', '.join(repr(call.id) for call in calls)} wait for their results (given: none)",
            hint=_REMEDY,
        )
