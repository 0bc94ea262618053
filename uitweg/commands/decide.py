"""`uitweg approve` and `uitweg reject`: what a person says about the call that a run waits for."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any

import typer

from uitweg.commands.options import AsJson, RunId, Tools


def approve(
    run_id: RunId,
    args: Annotated[
        str | None, typer.Option(help="Run it with these arguments instead.", metavar="JSON")
    ] = None,
    happened: Annotated[
        bool, typer.Option("--happened", help="For a call in doubt: it took effect.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="For a call in doubt: run it once more.")
    ] = False,
    tools: Tools = None,
    json: AsJson = False,
) -> int:
    """Let the call run that a run waits for, and go on with the run.

    Example: uitweg approve 3f2a91c04b7d
    """
    from uitweg.going_on import decide

    if (args is not None) + happened + again > 1:
        raise typer.BadParameter("Give only one of --args, --happened and --again.")
    edited = None if args is None else _object(args)
    action = "happened" if happened else "run_again" if again else "edit" if args else "approve"
    return decide(run_id, action, args=edited, as_json=json, given=tools or ())


def reject(
    run_id: RunId,
    reason: Annotated[str, typer.Option(help="Why not: the model is told.", metavar="TEXT")],
    tools: Tools = None,
    json: AsJson = False,
) -> int:
    """Refuse the call that a run waits for, and go on with the run.

    Example: uitweg reject 3f2a91c04b7d --reason "That log is still needed."
    """
    from uitweg.going_on import decide

    return decide(run_id, "reject", reason=reason, as_json=json, given=tools or ())


def _object(text: str) -> dict[str, Any]:
    try:
        value = json_text.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--args is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter('--args must be a JSON object, such as {"path": "notes.txt"}.')
    return value
