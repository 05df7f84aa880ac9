"""What the library says about itself: one logger, silent until the application listens. Never content, never keys."""

from __future__ import annotations

import logging

logger = logging.getLogger("pollux_like")
logger.addHandler(logging.NullHandler())
