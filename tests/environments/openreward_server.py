"""Run by a Python that has the `openreward` package: its own server with a harbour, on the port of argv[1]."""

import sys

from openreward.environments import Environment, Server, TextBlock, ToolOutput, tool
from pydantic import BaseModel

try:
    from openreward.environments import Message, ReasoningBlock, ToolCallBlock, ToolResultBlock, terminal
except ImportError:  # before 0.1.157
    Message = None


class Pier(BaseModel):
    pier: int


class Said(BaseModel):
    text: str


class Base(Environment):
    def __init__(self, task_spec=None, secrets=None):
        super().__init__(task_spec or {})
        self.secrets = secrets or {}

    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def list_tasks(cls, split):
        return [{"id": "harbour-1"}, {"id": "harbour-2"}]

    @tool
    def board(self, args: Pier) -> ToolOutput:
        """Read the board of a pier."""
        return ToolOutput(blocks=[TextBlock(text=f"pier {args.pier}: late")], reward=0.25, finished=False)

    @tool
    def echo(self, args: Said) -> ToolOutput:
        """Say the same."""
        return ToolOutput(blocks=[TextBlock(text=args.text)], reward=0.0, finished=False)

    @tool
    def secret(self) -> ToolOutput:
        """Tell the length of a secret."""
        return ToolOutput(blocks=[TextBlock(text=str(len(self.secrets.get("pass", ""))))], reward=0.0, finished=False)

    @tool
    def storm(self) -> ToolOutput:
        """Fail."""
        raise RuntimeError("a storm")

    @tool
    def sail(self) -> ToolOutput:
        """End the episode."""
        return ToolOutput(blocks=[TextBlock(text="sailed")], reward=1.0, finished=True)


if Message is None:

    class Harbour(Base):
        def get_prompt(self):
            return [TextBlock(text="Is the ferry late?"), TextBlock(text="  Say so.")]

else:

    class Harbour(Base):
        def get_messages(self):
            return [
                Message(role="system", blocks=[TextBlock(text="You work at the harbour.")]),
                Message(role="user", blocks=[TextBlock(text="Is the ferry late?")]),
                Message(
                    role="assistant",
                    blocks=[
                        ReasoningBlock(text="The board knows."),
                        ToolCallBlock(id="f1", name="board", input={"pier": 4}),
                    ],
                ),
                Message(role="user", blocks=[ToolResultBlock(tool_call_id="f1", blocks=[TextBlock(text="10 min")])]),
            ]

        @terminal
        @tool
        def answer(self, args: Said) -> ToolOutput:
            """Take the answer."""
            return ToolOutput(blocks=[], reward=1.0 if "10" in args.text else 0.0, finished=True)


Server([Harbour]).run(host="127.0.0.1", port=int(sys.argv[1]))
