"""The viewer: a page on loopback that shows the conversations of a store, and changes nothing. See docs/viewer.md."""

from pollux_like.errors import missing_extra

try:
    import starlette  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as error:
    raise missing_extra("viewer", error) from None

from pollux_like.viewer.guard import Access
from pollux_like.viewer.server import make_app, serve

__all__ = ["Access", "make_app", "serve"]
