"""`uitweg doctor`: what is wrong here, and what an endpoint can do."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    base_url: Annotated[
        str | None, typer.Option(help="Try this endpoint, instead of the one in the settings.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Which of its models to try.")] = None,
) -> int:
    """Look at this machine, and try out what the model's endpoint can do.

    Example: uitweg doctor --base-url http://127.0.0.1:11434/v1

    Sends the endpoint four short requests. Exit codes: 0 nothing is wrong, 1 something is.
    """
    from uitweg.doctor.report import report

    return report(base_url, model)
