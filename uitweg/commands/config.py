"""`uitweg config`: the settings that hold, and where each comes from."""

from __future__ import annotations

from typing import Annotated

import typer


def config(
    trust: Annotated[
        bool, typer.Option("--trust", help="Let this folder's uitweg.toml do what it says.")
    ] = False,
) -> int:
    """Show every setting, its value and where that comes from. docs/settings.md explains them.

    Example: uitweg config
    """
    from uitweg.settings_shown import show_config, trust_project

    if trust:
        return trust_project()
    return show_config()
