"""`uitweg run TASK`: carry one task to its ending."""

from __future__ import annotations

from typing import Annotated

import typer

from uitweg.commands.options import AsJson, Tools, Workspace


def run(
    task: Annotated[str, typer.Argument(help="What to do, in words.")],
    workspace: Workspace = None,
    model: Annotated[str | None, typer.Option(help="Which model; without it, LLM_MODEL.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="The plain loop: the same as --profile none.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(help="How the harness helps the model: default, none, evidence, small."),
    ] = None,
    tools: Tools = None,
    json: AsJson = False,
    max_turns: Annotated[int | None, typer.Option(min=1, help="Model replies at most.")] = None,
    max_cost: Annotated[
        str | None,
        typer.Option(help="US dollars at most; can be exceeded by one turn.", metavar="USD"),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens at most; can be exceeded by one turn.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds at most.")] = None,
    max_repeats: Annotated[
        int | None, typer.Option(min=2, help="Stop when one call came so often in a row.")
    ] = None,
    price_in: Annotated[
        str | None, typer.Option(help="US dollars per million prompt tokens.", metavar="USD")
    ] = None,
    price_out: Annotated[
        str | None, typer.Option(help="US dollars per million completion tokens.", metavar="USD")
    ] = None,
) -> int:
    """Carry out one task and print what happens.

    Example: uitweg run "Read notes.txt and tell me what it says."

    The model is the one at LLM_BASE_URL; where that is not set, the bundled server is used, and
    started when it does not listen yet. What no option says is as `uitweg config` shows it.

    Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 turn limit, 4 budget, 5 waits for a person,
    6 another stop condition, 130 cancelled.
    """
    from uitweg.choose import limits_from, read_cost
    from uitweg.task import carry_task

    limits = limits_from(
        max_turns=max_turns,
        max_cost_usd=read_cost(max_cost),
        max_total_tokens=max_tokens,
        max_seconds=max_seconds,
        max_repeats=max_repeats,
    )
    return carry_task(
        task,
        workspace=workspace,
        model=model,
        profile="none" if plain else profile,
        as_json=json,
        limits=limits,
        prices=(price_in, price_out),
        tools=tools or (),
    )
