"""`uitweg experiment FILE`: tasks x providers x settings x repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def experiment(
    file: Annotated[Path, typer.Argument(help="The experiment file, such as six.toml.")],
    out: Annotated[
        Path | None, typer.Option(help="Where results go; without it, the data folder.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Only this provider.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="Only this setting.")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs of each kind, instead of the file's.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="The folder of an earlier one, to set this against.")
    ] = None,
) -> int:
    """Carry out an experiment and write table, JSON, CSV and an HTML report.

    Example: uitweg experiment experiments/six.toml --setting default

    What is done is kept: after Ctrl-C the same command goes on. The results are in the folder
    given by --out as results.json, results.csv and report.html.
    """
    import shlex
    import sys

    from harness.experiments.plan import read_plan
    from uitweg.experiments import carry_experiment

    plan = read_plan(file).only("task", task or [])
    plan = plan.only("provider", provider or []).only("setting", setting or [])
    if repeats is not None:
        plan = plan.model_copy(update={"repeats": repeats})
    command = shlex.join(["uitweg", *sys.argv[1:]])
    return carry_experiment(plan, out=out, against=against, command=command)
