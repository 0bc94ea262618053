"""One new task, from the command line to its ending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from harness.errors import SettingsError
from harness.provider import Endpoint, endpoint_from_environment
from uitweg.carry import carry, open_store
from uitweg.choose import choose_model, new_settings
from uitweg.hosting import model_server


def carry_task(
    task: str,
    *,
    endpoint: Endpoint | None = None,
    workspace: Path | None = None,
    model: str | None = None,
    profile: str = "default",
    as_json: bool = False,
    limits: dict[str, Any] | None = None,
    prices: tuple[str | None, str | None] = (None, None),
) -> int:
    """Carry out a task and return the exit code of its ending.

    The endpoint is the environment's where none is given. The bundled server is started for the
    task where no endpoint is named and nobody listens at the usual one.
    """
    if not task.strip():
        raise SettingsError("The task is empty. Say in words what to do.")
    endpoint = endpoint or endpoint_from_environment()
    with model_server(endpoint, model or endpoint.model, Console(stderr=as_json)):
        settings = new_settings(
            endpoint=endpoint,
            model=choose_model(endpoint, model),
            workspace=workspace,
            limits=limits or {},
            profile=profile,
            prices=prices,
        )
        with open_store() as store:
            return carry(
                store,
                lambda runner, options: runner.start(task, settings, **options),
                as_json=as_json,
            )
