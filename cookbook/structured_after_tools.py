"""A structured answer at the end of a tool loop, asked for once more where it does not fit.

Problem: a program reads the answer, so it has to be a typed value - but only once the tools have run.
Run: python -m cookbook run structured_after_tools
`output=` may be given in every turn: a turn that ends in tool calls has no answer yet, and nothing is raised for it.
Success check: the turn with the call has no structured value. The first answer does not fit and is refused with the
whole turn at hand; the second is a `Report` object, and the tool ran once.
Real model: replace `config` by `Config("openai", "gpt-5-nano")`.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from pollux_like import Config, Environment, Input, Output, StructuredOutputError, ToolDeclaration, ToolResult
from pollux_like.simulator import Simulator
from pollux_like.sync import interact
from pollux_like.testing import call, say

MAX_TURNS, MAX_REPAIRS = 8, 2
ran: list[str] = []


class Report(BaseModel):
    """What the program wants to know of a city."""

    city: str
    celsius: float = Field(ge=-90, le=60)
    advice: str


def weather(city: str) -> dict[str, float]:
    """Get the weather of a city."""
    ran.append(city)
    return {"celsius": -3.0}


ENVIRONMENT = Environment(tools=[ToolDeclaration.from_function(weather)])


def turn_of(turn: Input, config: Config) -> Output:
    """One turn; where its answer does not fit, the model is told why, in the conversation itself."""
    for _ in range(MAX_REPAIRS):
        try:
            return interact(ENVIRONMENT, turn, config, output=Report)
        except StructuredOutputError as error:
            print(f"Does not fit: {error.text}")
            turn = Input(f"That does not fit: {error.message}. Answer again.", continuation=error.output.continuation)
    return interact(ENVIRONMENT, turn, config, output=Report)


def report(question: str, config: Config) -> Report:
    """The loop. Raises StructuredOutputError after the last repair, RuntimeError at the limit of turns."""
    turn = Input(question, history=[])
    for _ in range(MAX_TURNS):
        output = turn_of(turn, config)
        if isinstance(output.structured, Report):
            return output.structured
        print(f"{output.finish.status}, structured: {output.structured}")
        if not output.tool_calls:
            raise RuntimeError(f"there is no answer: {output.finish.status}")
        results = [
            ToolResult.from_value(call_id=wanted.id, value=weather(**wanted.arguments_dict()))
            for wanted in output.tool_calls
        ]
        turn = Input(continuation=output.continuation, tool_results=results)
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


def main() -> None:
    """Ask the stand-in, a loopback server with OpenAI's wire."""
    with Simulator() as sim:
        sim.reply(call("weather", {"city": "Oslo"}, id="call_1"))
        sim.reply(say('{"city": "Oslo", "celsius": 270.15, "advice": "Mind the units."}'))
        sim.reply(say('{"city": "Oslo", "celsius": -3.0, "advice": "Take a coat."}'))
        config = Config("openai", "gpt-5-nano", api_key="sim-key", base_url=sim.base_url("openai"))
        found = report("What should I wear in Oslo?", config)
        print(repr(found))
        print(f"The tool ran for: {', '.join(ran)}")


if __name__ == "__main__":
    main()
