"""Where this machine keeps what belongs to uitweg.

The platform's own places (platformdirs), each of which one variable overrides:

    data    runs and what a person would miss        UITWEG_DATA
    cache   models, built wheels: made again at need  UITWEG_CACHE
    config  settings a person wrote

Nothing is created here: `make` does that, when there is something to keep.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import PlatformDirs


def data(env: Mapping[str, str] = os.environ) -> Path:
    """The folder for runs."""
    return _chosen(env, "UITWEG_DATA", _dirs().user_data_path)


def cache(env: Mapping[str, str] = os.environ) -> Path:
    """The folder for what can be fetched or built again."""
    return _chosen(env, "UITWEG_CACHE", _dirs().user_cache_path)


def config() -> Path:
    """The folder for settings."""
    return _dirs().user_config_path


def models(env: Mapping[str, str] = os.environ) -> Path:
    """The folder for model files."""
    return cache(env) / "models"


def make(folder: Path) -> Path:
    """Create a folder that only its owner may read, where it is missing.

    Returns:
        The same folder.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _dirs() -> PlatformDirs:
    return PlatformDirs("uitweg", appauthor=False)


def _chosen(env: Mapping[str, str], name: str, usual: Path) -> Path:
    chosen = env.get(name)
    return Path(chosen).expanduser().absolute() if chosen else usual
