"""For tests of applications: a scripted model in the process, the words of its script, and a table of conversations."""

from pollux_like.testing.conversations import CONVERSATIONS, Conversation, Step
from pollux_like.testing.script import Answer, answer, call, compaction, redacted, refuse, say, server_tool, think
from pollux_like.testing.scripted import Recorded, Scripted

__all__ = [
    "CONVERSATIONS",
    "Answer",
    "Conversation",
    "Recorded",
    "Scripted",
    "Step",
    "answer",
    "call",
    "compaction",
    "redacted",
    "refuse",
    "say",
    "server_tool",
    "think",
]
