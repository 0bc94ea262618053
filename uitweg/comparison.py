"""Comparisons on the terminal: of two runs, and of two experiments."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.compare import Comparison, Figure, Row, Step
from harness.experiments.contrast import Contrast
from uitweg.text import one_line, safe

_SHOWN = 300
_ANSWER = 100


def show_comparison(console: Console, result: Comparison) -> None:
    """The figures of two runs, then the first step where they part."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column(Text(result.left_run_id), overflow="fold")
    table.add_column(Text(result.right_run_id), overflow="fold")
    table.add_column("")
    for row in result.rows:
        left, right = _figure(row.left, row.unit), _figure(row.right, row.unit)
        table.add_row(row.name, Text(left), Text(right), _difference(row))
    console.print(table)
    console.print()
    parting = result.parting
    if parting is None:
        console.print("Every step is the same.")
        return
    same = f"The first {parting.index} steps are the same." if parting.index else ""
    console.print(f"{same} They part at step {parting.index + 1}:".strip())
    _show_step(console, result.left_run_id, parting.left)
    _show_step(console, result.right_run_id, parting.right)


def _show_step(console: Console, run_id: str, step: Step | None) -> None:
    if step is None:
        console.print(Text(f"  {run_id}: had ended"))
        return
    detail = one_line(step.detail, _SHOWN)
    words = f"  {run_id}, turn {step.turn}: {safe(step.title)}"
    console.print(Text(f"{words}: {detail}" if detail else words), soft_wrap=True)


def _figure(value: Figure, unit: str) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return safe(value)
    if unit == "US$":
        return f"${value:.6f}"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return f"{shown} {unit}".strip() if unit == "s" else shown


def _difference(row: Row) -> str:
    difference = row.difference
    if row.same:
        return "same"
    if difference is None:
        return "differs"
    return f"{difference:+,.6g}"


def contrast_tables(contrast: Contrast) -> list[Table]:
    """Two experiments: a row a cell, then a row a run that changed."""
    cells = Table(box=None, pad_edge=False)
    for name in ("provider", "setting", "right before", "right after"):
        cells.add_column(name)
    for name in ("better", "worse", "p", "time before", "time after"):
        cells.add_column(name, justify="right")
    for line in contrast.lines:
        cells.add_row(
            line.provider,
            line.setting,
            str(line.before),
            str(line.after),
            str(line.better),
            str(line.worse),
            f"{line.p:.3f}",
            f"{line.seconds_before:.1f} s",
            f"{line.seconds_after:.1f} s",
        )
    changes = Table(box=None, pad_edge=False)
    for name in ("changed", "how", "answer before", "answer after"):
        changes.add_column(name, overflow="fold")
    for change in contrast.changes:
        changes.add_row(
            Text(change.key),
            change.what,
            Text(one_line(change.before.answer, _ANSWER)),
            Text(one_line(change.after.answer, _ANSWER)),
        )
    return [cells, changes] if contrast.changes else [cells]
