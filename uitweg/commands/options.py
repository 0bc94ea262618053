"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunId = Annotated[str, typer.Argument(help="The run, or the beginning of its id.")]
Workspace = Annotated[
    Path | None, typer.Option(help="The folder to work on; without it, the demo's.")
]
Tools = Annotated[
    list[str] | None,
    typer.Option(help="A Python file or module with tools of yours; may be repeated."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one closing object; the trace goes to stderr.")
]
