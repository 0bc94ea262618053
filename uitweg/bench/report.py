"""Results as tables: for the terminal, and in Markdown for a document."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uitweg.bench.cases import Measured

OURS = "uitweg"


def table(results: Mapping[str, Measured]) -> list[str]:
    """A row a case: the median of every server, and ours beside the best peer's.

    The ratio is so put that more than 1 is better for us, whatever the unit.
    """
    servers = list({name: None for measured in results.values() for name in measured.rounds})
    rows = [["", *servers, "ratio"]] if len(servers) > 1 else [["", *servers]]
    for measured in results.values():
        figures = [_figure(measured, name) for name in servers]
        ratio = [_ratio(measured)] if len(servers) > 1 else []
        rows.append([measured.title, *figures, *ratio])
    return markdown(rows)


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table that is also readable as it is."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def machine(threads: int) -> str:
    """The machine in one line."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name}, {threads} threads, {platform.system()}, Python {platform.python_version()}"


def save(path: Path, what: Mapping[str, Any], results: Mapping[str, Measured]) -> None:
    """Every figure of every round, as JSON."""
    cases = {
        name: {"title": measured.title, "unit": measured.unit, "rounds": measured.rounds}
        for name, measured in results.items()
    }
    path.write_text(json.dumps({**what, "cases": cases}, indent=2) + "\n", encoding="utf-8")


def _figure(measured: Measured, server: str) -> str:
    """A server that was never asked did not fail."""
    if server not in measured.rounds:
        return "not measured"
    middle = measured.median(server)
    return "fails" if middle is None else f"{middle:.1f} {measured.unit}"


def _ratio(measured: Measured) -> str:
    medians = {name: measured.median(name) for name in measured.rounds}
    ours = medians.pop(OURS)
    peers = [figure for figure in medians.values() if figure is not None]
    if ours is None or not peers:
        return ""
    best = max(peers) if measured.more_is_better else min(peers)
    return f"{ours / best if measured.more_is_better else best / ours:.2f}"
