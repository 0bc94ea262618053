"""One new task, from the command line to its ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.errors import SettingsError
from harness.provider import Endpoint, choose_model
from uitweg.carry import carry, new_runner, open_store
from uitweg.choose import new_settings, read_prices
from uitweg.config import read_config
from uitweg.hosting import model_server
from uitweg.own import flags, own_tools


def carry_task(
    task: str,
    *,
    endpoint: Endpoint | None = None,
    workspace: Path | None = None,
    model: str | None = None,
    profile: str | None = None,
    as_json: bool = False,
    limits: dict[str, Any] | None = None,
    prices: tuple[str | None, str | None] = (None, None),
    tools: Sequence[str] = (),
) -> int:
    """Carry out a task and return the exit code of its ending.

    What is not given is as in the person's settings. The bundled server is started for the
    task where no endpoint is named and nobody listens at the usual one.
    """
    if not task.strip():
        raise SettingsError("The task is empty. Say in words what to do.")
    held = read_config()
    config, endpoint = held.config, endpoint or held.endpoint
    with (
        own_tools(config, tools) as own,
        model_server(endpoint, model or endpoint.model, Console(stderr=as_json)),
    ):
        settings = new_settings(
            endpoint=endpoint,
            model=choose_model(endpoint, model),
            workspace=workspace or config.workspace,
            limits=config.limits.model_dump(exclude_unset=True) | (limits or {}),
            profile=profile or config.profile,
            prices=read_prices(config.prices, *prices),
            own=own,
        )
        with open_store() as store:
            return carry(
                new_runner(store, endpoint, own),
                lambda runner, options: runner.start(task, settings, **options),
                as_json=as_json,
                flags=flags(tools),
            )
