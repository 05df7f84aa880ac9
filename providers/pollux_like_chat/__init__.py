"""The chat-completions dialect: render and parse for every provider that speaks it. No client, no SDK, no policy."""

from .dialect import Dialect
from .parse import ChatParser, portable
from .refusals import told
from .render import render

__all__ = ["ChatParser", "Dialect", "portable", "render", "told"]
