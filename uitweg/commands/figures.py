"""`uitweg figures`: every published figure that needs no real model, made again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from harness.figures.compare import Figure, compare
from harness.figures.lab import Lab
from harness.figures.produce import produce
from uitweg.figure_tables import show

WIDTH = 120
"""Columns where the output is no terminal."""


class NoServer(Exception):
    """The scripted provider did not start; the text says why."""


def figures(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead.")] = False,
) -> int:
    """Make the published figures again, and print published beside measured.

    Starts the scripted provider as a process of its own on a free port. Exits with 1 when a
    figure that tokens decide differs. Takes about half a minute.
    """
    measured = _measure(Console(stderr=True))
    compared = compare(measured)
    wrong = [figure for figure in compared if not figure.agrees]
    if as_json:
        result = {
            "agrees": not wrong,
            "figures": [figure.as_json() for figure in compared],
            "measured": measured,
        }
        typer.echo(json.dumps(result, ensure_ascii=False))
    else:
        console = Console()
        if not console.is_terminal:
            console = Console(width=WIDTH)
        show(console, measured, compared)
        console.print(_summary(compared, wrong))
    return 1 if wrong else 0


def _summary(compared: list[Figure], wrong: list[Figure]) -> str:
    exact = sum(figure.exact for figure in compared)
    times = len(compared) - exact
    return (
        f"{exact - len(wrong)} of {exact} figures that tokens decide agree; "
        f"{times} are times of this machine."
    )


def _measure(console: Console) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="uitweg-figures-") as folder,
        scripted_server() as base_url,
        console.status("starting") as status,
    ):
        lab = Lab(base_url, Path(folder))
        try:
            return asyncio.run(produce(lab, lambda part: status.update(f"making {part}")))
        finally:
            lab.close()


@contextmanager
def scripted_server() -> Iterator[str]:
    """The scripted provider as a process on a free port, ended at the end; gives its base URL."""
    command = [sys.executable, "-m", "uitweg", "serve", "--scripted", "--port", "0"]
    process = subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        line = process.stdout.readline()
        if not line.startswith("Listening on "):
            process.kill()
            said = line + process.communicate()[1]
            raise NoServer(f"The scripted provider did not start: {said.strip() or 'no output'}")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.communicate()
