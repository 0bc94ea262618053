"""`uitweg resume RUN_ID`: go on with a run that was interrupted or reached a limit."""

from __future__ import annotations

from typing import Annotated

import typer

from uitweg.commands.options import AsJson, RunId, Tools


def resume(
    run_id: RunId,
    max_turns: Annotated[int | None, typer.Option(min=1, help="The new turn limit.")] = None,
    max_cost: Annotated[
        str | None, typer.Option(help="The new limit in US dollars.", metavar="USD")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="The new token limit.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="The new limit in seconds.")] = None,
    max_repeats: Annotated[
        int | None, typer.Option(min=2, help="The new limit on repeats of one call.")
    ] = None,
    tools: Tools = None,
    json: AsJson = False,
) -> int:
    """Go on with a run from where it stopped.

    Limits are for the whole run, from its first turn.

    Example: uitweg resume 3f2a91c04b7d --max-turns 40
    """
    from uitweg.choose import limits_from, read_cost
    from uitweg.going_on import go_on

    limits = limits_from(
        max_turns=max_turns,
        max_cost_usd=read_cost(max_cost),
        max_total_tokens=max_tokens,
        max_seconds=max_seconds,
        max_repeats=max_repeats,
    )
    return go_on(run_id, limits=limits, as_json=json, given=tools or ())
