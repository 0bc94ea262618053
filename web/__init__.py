"""The page: a small Flask application over the harness's store and runner.

`create_app(config)` is the WSGI application, `serve(config)` serves it in the
background and returns a handle with `url` and `stop()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from web.config import ConfigError, PageConfig

if TYPE_CHECKING:
    from web.app import create_app
    from web.serving import Served, serve

__all__ = ["ConfigError", "PageConfig", "Served", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    """Imported when used, so that `PageConfig` alone costs nothing."""
    if name == "create_app":
        from web.app import create_app

        return create_app
    if name in ("Served", "serve"):
        from web import serving

        return getattr(serving, name)
    raise AttributeError(name)
