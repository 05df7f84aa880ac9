"""The chat-completions dialect, for every provider that speaks it. What imports the SDK is in `client` alone."""

from .dialect import Dialect
from .parse import ChatParser, portable
from .policies import Reasoning
from .refusals import told
from .render import render

__all__ = ["ChatParser", "Dialect", "Reasoning", "portable", "render", "told"]
