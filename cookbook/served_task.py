"""A task whose prompt is a conversation, served over HTTP and played with three providers.

Problem: the same conversation task has to be put before models of several providers, and graded the same way.
Run: python -m cookbook run served_task
The task server listens on loopback, with the protocol of OpenReward. The models are a loopback server too, with the
wires of OpenAI, Anthropic and Gemini; it refuses what the real APIs refuse.
Success check: each provider gets the same conversation in its own form, calls the tool, answers, and is graded by the
terminal tool: three episodes with reward 1.1. The wrong answer that is played last gets 0.1.
Real model: leave `api_key` and `base_url` out of the configs, and set each provider's key.
"""

from __future__ import annotations

from pydantic import BaseModel

from pollux_like import Config
from pollux_like.environments import (
    Environment,
    Episode,
    JSONObject,
    Message,
    Server,
    TextBlock,
    ToolOutput,
    run_episode_sync,
    terminal,
    tool,
)
from pollux_like.environments import EnvironmentClient as Client
from pollux_like.simulator import Simulator
from pollux_like.testing import call, say

MODELS = {"openai": "gpt-5-nano", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}


class Order(BaseModel):
    """Which order."""

    id: str


class Answer(BaseModel):
    """What the model said last."""

    text: str


class Support(Environment):
    """A support chat that stands at the customer's second message."""

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        """One task, its conversation in the shape of `Message`."""
        said = [
            ("system", "You are a support agent for Acme."),
            ("user", "My order #4411 hasn't arrived."),
            ("assistant", "I am sorry. Shall I look it up?"),
            ("user", "Yes, please."),
        ]
        turns = [{"role": role, "blocks": [{"type": "text", "text": text}]} for role, text in said]
        return [{"conversation": turns}]

    def get_messages(self) -> list[Message]:
        """The prompt."""
        return [Message.model_validate(message) for message in self.task_spec["conversation"]]

    @tool
    def lookup_order(self, args: Order) -> ToolOutput:
        """Look up an order by its id."""
        found = "stalled at the hub" if args.id == "4411" else "unknown"
        return ToolOutput(blocks=[TextBlock(text=found)], reward=0.1 if args.id == "4411" else 0.0)

    @terminal
    @tool
    def submit(self, args: Answer) -> ToolOutput:
        """Grade the reply."""
        return ToolOutput(blocks=[], reward=float("hub" in args.text), finished=True)


def play(client: Client, config: Config) -> Episode:
    """One episode in a session of its own."""
    (task,) = client.list_tasks("train")
    with client.session(task=task) as session:
        return run_episode_sync(session, config, max_turns=8)


def main() -> None:
    """Serve the task, and play it with each provider."""
    with Simulator() as sim:
        server = Server([Support]).start()
        try:
            client = Client(server.base_url)
            for provider, model in MODELS.items():
                config = Config(provider, model, api_key="sim-key", base_url=sim.base_url(provider))
                sim.reply(call("lookup_order", {"id": "4411"}, id="call_1"))
                sim.reply(say("It is stalled at the hub."))
                episode = play(client, config)
                members = sim.requests[-1].body.keys() & {"input", "messages", "contents"}
                print(f"{provider}: {episode.stopped}, reward {episode.reward:g}, sent as {', '.join(members)}")
            sim.reply(call("lookup_order", {"id": "4411"}, id="call_1"))
            sim.reply(say("I do not know."))
            print(f"A wrong answer: reward {play(client, config).reward:g}")
            client.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
