"""Conversations of blocks: messages with their placement rules, providers' formats, and the flat prompt.

Task data, served and read over HTTP. What the kernel keeps between turns is `pollux_like.Message`: another thing.
"""

from pollux_like.conversation.blocks import (
    BLOCK_TYPES,
    Content,
    ImageBlock,
    JSONObject,
    Message,
    MessageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from pollux_like.conversation.decode import Decoded, decode_message, decode_messages
from pollux_like.conversation.flatten import flatten
from pollux_like.conversation.formats import FORMATS, Format, convert
from pollux_like.conversation.tools import ToolSpec, convert_tools

__all__ = [
    "BLOCK_TYPES",
    "FORMATS",
    "Content",
    "Decoded",
    "Format",
    "ImageBlock",
    "JSONObject",
    "Message",
    "MessageBlock",
    "ReasoningBlock",
    "TextBlock",
    "ToolCallBlock",
    "ToolResultBlock",
    "ToolSpec",
    "convert",
    "convert_tools",
    "decode_message",
    "decode_messages",
    "flatten",
]
