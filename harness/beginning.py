"""A new run: whether it can be carried out as asked, and what it is at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.errors import SettingsError
from harness.events import Event, Guidance, RunStarted
from harness.guidance import Policy, policies_named
from harness.journal import now
from harness.prompt import SYSTEM_PROMPT
from harness.state import RunState, Settings
from harness.stop import check_limits
from harness.tool import Tool
from harness.workspace import Workspace


def check_settings(
    settings: Settings, tools: Mapping[str, Tool], policies: Mapping[str, Policy]
) -> Workspace:
    """The workspace of a run with these settings.

    Raises `SettingsError` for what could not be carried out.
    """
    check_limits(settings)
    policies_named(settings.guidance, policies)
    for name in settings.tools:
        if name not in tools:
            raise SettingsError(
                f"There is no tool {name}. There are: {', '.join(tools)}. A tool of your own "
                "comes with --tools FILE.py, or from uitweg.toml."
            )
    try:
        return Workspace(settings.workspace)
    except OSError as error:
        raise SettingsError(f"The workspace cannot be used: {error}") from None


def new_run(
    run_id: str,
    task: str,
    settings: Settings,
    workspace: Workspace,
    policies: Sequence[Policy],
    parent: str | None,
) -> tuple[RunState, list[Event]]:
    """The run before its first turn, and the events that say so."""
    task = task.encode("utf-8", "replace").decode("utf-8")
    prompt = SYSTEM_PROMPT if settings.system_prompt is None else settings.system_prompt
    told: list[Event] = []
    for policy in policies:
        longer = policy.first_prompt(settings, workspace, prompt)
        if longer != prompt:
            added = " ".join(longer.removeprefix(prompt).split())
            detail = f"The first prompt says: {added}"
            told.append(Guidance(run_id=run_id, policy=policy.name, detail=detail))
        prompt = longer
    system = [{"role": "system", "content": prompt}] if prompt else []
    state = RunState(
        run_id=run_id,
        task=task,
        settings=settings,
        created_at=now(),
        parent_run_id=parent,
        messages=(*system, {"role": "user", "content": task}),
    )
    started = RunStarted(
        run_id=run_id,
        task=task,
        model=settings.model,
        workspace=settings.workspace,
        tools=settings.tools,
        guidance=settings.guidance,
        parent_run_id=parent,
    )
    return state, [started, *told]
