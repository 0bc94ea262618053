"""The settings of a run that begins on the page."""

from __future__ import annotations

from pathlib import Path

from harness.demo import copy_demo
from harness.errors import SettingsError
from harness.provider import OfferedModel, find_model, offered_models
from harness.state import Limits, Settings
from harness.tools import DEFAULT_TOOLS
from web.config import PageConfig
from web.endpoints import Place

ASK_SECONDS = 3.0
"""How long a start waits for the server to say what it has."""


def settings_for(
    config: PageConfig, place: Place, model: str, workspace: str, limits: Limits
) -> Settings:
    """How a run of this model of this server over this folder is carried out.

    Raises `SettingsError`, or a `ProviderFailed` where the server does not answer.
    """
    offered = find_model(offered_models(place.base_url, place.api_key, ASK_SECONDS), model)
    return of(offered, place.base_url, folder_named(config, workspace), limits, config)


def of(
    offered: OfferedModel, base_url: str, folder: Path, limits: Limits, config: PageConfig
) -> Settings:
    """The settings for an offered model: its tools and the person's, its prices and guidance.

    A scripted model keeps its own prices and the plain loop: any other would leave its script.
    """
    said = {} if offered.scripted else config.prices.model_dump(exclude_none=True)
    return Settings(
        base_url=base_url,
        model=offered.name,
        workspace=str(folder),
        tools=(*(offered.tools or DEFAULT_TOOLS), *config.tools),
        limits=limits,
        prices=offered.prices.model_copy(update=said),
        guidance=offered.policies(config.profile),
    )


def folder_named(config: PageConfig, text: str) -> Path:
    """The workspace of the form. Raises `SettingsError` for what is no folder."""
    try:
        folder = Path(text.strip() or config.folder).expanduser().absolute()
        if config.workspace is None and folder == config.folder.absolute():
            copy_demo(folder)
        if folder.is_dir():
            return folder
    except (OSError, RuntimeError) as error:  # a name that is too long, or nobody's home
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"The workspace {_short(text)} cannot be used: {why}.") from None
    raise SettingsError(f"The workspace {_short(str(folder))} is no folder. Name one that exists.")


def _short(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "…"
