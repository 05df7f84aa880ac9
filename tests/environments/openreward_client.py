"""Run by a Python that has the `openreward` package: an episode against the server of argv[1], printed as JSON."""

import json
import sys

from openreward import OpenReward
from openreward.api.errors import ToolCallError, ToolFailed

base_url, text = sys.argv[1], json.loads(sys.stdin.read())
environment = OpenReward().environments.get("harbour", base_url=base_url, variant="harbour")
said = {"splits": environment.list_splits(), "number": environment.num_tasks("train")}
task = environment.list_tasks("train")[0]
said["id"] = task.task_spec["id"]


def refused(session, name, given):
    try:
        session.call_tool(name, given)
    except ToolCallError as error:
        return error.reason
    return None


def of(output):
    return {
        "texts": [block.text for block in output.blocks if hasattr(block, "text")],
        "reward": output.reward,
        "finished": output.finished,
        "metadata": output.metadata,
    }


with environment.session(task=task) as session:
    for form in ("openai", "openrouter", "anthropic"):
        said[form] = session.get_messages(format=form)
    said["messages"] = [[message.role, [block.type for block in message.blocks]] for message in session.get_messages()]
    said["prompt"] = [block.text for block in session.get_prompt()]
    said["tools"] = [tool.name for tool in session.list_tools()]
    for form in ("openai", "openrouter", "anthropic", "google"):
        session.list_tools(format=form)
    said["board"] = of(session.call_tool("board", {"pier": 4}))
    said["echo"] = of(session.call_tool("echo", {"text": text}))
    said["refusals"] = [
        refused(session, "nothing", {}),
        refused(session, "board", {}),
        refused(session, "lighthouse", {}),
    ]
    said["scores"] = [score.reward for score in session.score_group([session.get_messages()])]
    said["terminal"] = session.terminal_tool().arg
    said["answer"] = of(session.call_terminal_tool("It sails at 10:10"))
    said["after"] = refused(session, "board", {"pier": 1})
with environment.session(split="train", index=1) as session:
    try:
        session.call_tool("storm", {})
    except ToolFailed as error:
        said["failed"] = str(error)
with environment.session(task=environment.get_task("train", 2)) as session:
    said["sail"] = of(session.call_tool("sail", {}))
print(json.dumps(said))
