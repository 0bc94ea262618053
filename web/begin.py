"""The settings of a run that begins on the page."""

from __future__ import annotations

from pathlib import Path

from harness.state import Limits, Prices, Settings
from harness.tools import bundled_tools


def settings_for(
    *, base_url: str, model: str, workspace: Path, limits: Limits, prices: Prices
) -> Settings:
    """How a run of this model over this folder is carried out."""
    return Settings(
        base_url=base_url,
        model=model,
        workspace=str(workspace),
        tools=tuple(bundled_tools()),
        limits=limits,
        prices=prices,
    )
