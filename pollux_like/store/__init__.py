"""The conversation store: conversations that survive crashes, races and years. See docs/store.md."""

from pollux_like.store.conversation import Conversation
from pollux_like.store.database import Database, Transaction
from pollux_like.store.effects import Effect, Effects
from pollux_like.store.inputs import Pending
from pollux_like.store.lifecycle import Match, Receipt, Report
from pollux_like.store.opening import open_store
from pollux_like.store.reading import Branch, Found, Overview, Page, Reader
from pollux_like.store.records import Policy, Shown
from pollux_like.store.rows import Summary
from pollux_like.store.schema import ddl
from pollux_like.store.store import ConversationStore

__all__ = [
    "Branch",
    "Conversation",
    "ConversationStore",
    "Database",
    "Effect",
    "Effects",
    "Found",
    "Match",
    "Overview",
    "Page",
    "Pending",
    "Policy",
    "Reader",
    "Receipt",
    "Report",
    "Shown",
    "Summary",
    "Transaction",
    "ddl",
    "open_store",
]
