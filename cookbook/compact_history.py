"""A long chat that is shortened at a completed boundary: old rounds become a summary, the last ones stay.

Problem: a conversation outgrows its window, and a cut in the wrong place orphans a tool result or loses a question.
Run: python -m cookbook run compact_history
The history here is portable: the application owns it. Opaque state is never edited, so a continuation is turned into
history by `handoff` first, and the reasoning in it is given up.
Success check: while a call is open the cut is refused. At the boundary the history shrinks from ten messages to
seven - a summary and the last two rounds, a call with its result among them - and the model is sent those and the
question.
Real model: replace `model.config` by `Config("openai", "gpt-5-nano")`, and count with `count_tokens` in place of `len`.
"""

from __future__ import annotations

from pollux_like import (
    Compacted,
    Config,
    ConfigurationError,
    Environment,
    Input,
    Message,
    ToolDeclaration,
    ToolResult,
    compact,
    handoff,
)
from pollux_like.sync import interact
from pollux_like.testing import Answer, Recorded, Scripted, answer, call, say

MOST_MESSAGES, KEEP_ROUNDS = 8, 2


def lookup(word: str) -> str:
    """Look a word up."""
    return f"{word} means something."


ENVIRONMENT = Environment(tools=[ToolDeclaration.from_function(lookup)])


def stand_in(request: Recorded) -> Answer:
    """What the model answers here: a summary where one is asked for, a call for a word, else words."""
    last = request.messages[-1]
    if last["role"] == "user" and last["content"].startswith("Sum up"):
        return answer(say("They spoke of the weather."))
    if last["role"] == "user" and last["content"].startswith("Look up"):
        return answer(call("lookup", {"word": last["content"].split()[-1]}, id=f"call_{len(request.messages)}"))
    return answer(say(f"Sent {len(request.messages)}: the first is {request.messages[0]['content']!r}."))


def groom(history: list[Message], config: Config) -> Compacted:
    """Replace all but the last rounds by a summary, which is asked for in a turn of its own."""
    cut = compact(history, keep_last=KEEP_ROUNDS)
    summary = interact(Environment(), Input("Sum up what was said so far.", history=cut.dropped), config)
    return compact(history, keep_last=KEEP_ROUNDS, summary=f"Summary of what came before: {summary.text}")


def main() -> None:
    """Four rounds, of which the third uses a tool; then the cut; then a question."""
    model = Scripted(*[stand_in] * 20)
    history: list[Message] = []
    for question in ("Is it cold?", "Is it wet?", "Look up sleet", "So I wear boots?"):
        output = interact(ENVIRONMENT, Input(question, history=history), model.config)
        if output.tool_calls:
            assert output.continuation is not None  # a turn with tool calls is always tracked
            try:
                compact(handoff(output.continuation).history, keep_last=1)
            except ConfigurationError as error:
                print(f"Not now: {error}")
            results = [ToolResult(wanted.id, lookup(**wanted.arguments_dict())) for wanted in output.tool_calls]
            history.extend(output.messages)
            output = interact(ENVIRONMENT, Input(continuation=output.continuation, tool_results=results), model.config)
        history.extend(output.messages)

    if len(history) > MOST_MESSAGES:
        before, groomed = len(history), groom(history, model.config)
        history = list(groomed.history)
        print(f"From {before} messages to {len(history)}: {[message.role for message in history]}")
    print(interact(ENVIRONMENT, Input("And a coat?", history=history), model.config).text)


if __name__ == "__main__":
    main()
