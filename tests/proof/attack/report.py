"""docs/proof.md, out of the results of the suites."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HEAD = """\
# What was attacked, and what held

Written by `./scripts/prove`, which attacks the program as it is and counts; no figure here was
typed in. One suite: `./scripts/prove kills`. What was interrupted goes on with
`./scripts/prove --missing`. A small form of every suite is part of `./scripts/test`.

*Tried* is how many times it was tried, *held* how many times what the design promises was so.
"""


def write(target: Path, results: Path, suites: Iterable[str]) -> None:
    """Write the table of whatever long results are there."""
    suites = tuple(suites)
    found = [
        json.loads(path.read_text("utf-8"))
        for suite in suites
        if (path := results / f"{suite}.json").exists()
    ]
    done = [result for result in found if result["long"]]
    missing = [suite for suite in suites if suite not in {result["suite"] for result in done}]
    parts = [HEAD, *(_section(result) for result in done)]
    if missing:
        parts.append(f"Not run yet in the long form: {', '.join(missing)}.\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(parts), encoding="utf-8")


def _section(result: dict[str, Any]) -> str:
    lines = [
        f"## {result['title']}",
        "",
        f"`./scripts/prove {result['suite']}`, {result['seconds']:,.0f} s",
        "",
        "| what was tried | tried | held | |",
        "|---|--:|--:|---|",
    ]
    for row in result["rows"]:
        cells = [row["what"], f"{row['tried']:,}", f"{row['held']:,}", row["note"]]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    if result["problems"]:
        lines += ["", "Did not hold:", ""]
        lines += [f"- {problem}" for problem in result["problems"]]
    return "\n".join(lines) + "\n"
