"""A conversation that moves from one provider to another, with a report of what did not come along.

Problem: a provider is down or too dear; the talk has to go on with another one, and nobody may guess what was lost.
Run: python -m cookbook run switch_provider
The stand-in is a loopback server that speaks both wires and refuses what the real APIs refuse, so the second provider's
own rules are applied to what it is sent, ids of calls included.
Success check: the report names the sealed reasoning of each turn and nothing else. The new provider knows the question,
the call and its result; the state it returns is its own, and the old continuation still works with the old one.
Real model: drop `base_url` and `api_key`, and set OPENAI_API_KEY and ANTHROPIC_API_KEY.
"""

from __future__ import annotations

from pollux_like import Config, Continuation, Environment, Input, ToolDeclaration, ToolResult, handoff
from pollux_like.simulator import Simulator
from pollux_like.sync import interact
from pollux_like.testing import call, say, think


def lookup(order: str) -> str:
    """Look up an order."""
    return f"Order {order} is stalled at the hub."


ENVIRONMENT = Environment(instructions="Be brief.", tools=[ToolDeclaration.from_function(lookup)])


def begin(config: Config) -> Continuation:
    """A turn with a tool call, and its answer. Returns the state."""
    output = interact(ENVIRONMENT, Input("Where is order 4411?"), config, reasoning_effort="low")
    results = [ToolResult(wanted.id, lookup(**wanted.arguments_dict())) for wanted in output.tool_calls]
    turn = Input(continuation=output.continuation, tool_results=results)
    output = interact(ENVIRONMENT, turn, config, reasoning_effort="low")
    print(f"{config.provider}: {output.text}")
    assert output.continuation is not None  # what goes on from a continuation is tracked
    return output.continuation


def main() -> None:
    """Begin with OpenAI, go on with Anthropic, and go back to OpenAI's own state."""
    with Simulator() as sim:
        urls = sim.base_urls()
        openai = Config("openai", "gpt-5-nano", api_key="sim-key", base_url=urls["openai"])
        anthropic = Config("anthropic", "claude-haiku-4-5", api_key="sim-key", base_url=urls["anthropic"])

        sim.reply(think("I look it up."), call("lookup", {"order": "4411"}, id="call_1"))
        sim.reply(think("Tell them."), say("It is stalled at the hub."))
        state = begin(openai)

        moved = handoff(state)
        for loss in moved.losses:
            print(f"Lost: {loss}")

        sim.reply(say("Still at the hub."))
        output = interact(ENVIRONMENT, Input("And now?", history=moved.history), anthropic)
        assert output.continuation is not None  # history opts in
        print(f"{output.continuation.provider}: {output.text}")
        print("It was sent:", [message["role"] for message in sim.requests[-1].body["messages"]])

        sim.reply(say("As I said, at the hub."))
        output = interact(ENVIRONMENT, Input("And now?", continuation=state), openai, reasoning_effort="low")
        print(f"{openai.provider}: {output.text}")


if __name__ == "__main__":
    main()
