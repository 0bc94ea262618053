"""Lists as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from harness.store.lists import RunSummary
from uitweg.text import money, one_line, safe

_TASK_CHARS = 60


def runs_table(runs: Iterable[RunSummary]) -> Table:
    """One row a run."""
    table = Table(box=None, pad_edge=False)
    for name in ("run", "began (UTC)", "ending", "model"):
        table.add_column(name, no_wrap=True)
    for name in ("turns", "tokens", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("task", no_wrap=True)
    for run in runs:
        ending = run.interruption_kind or run.status if run.status == "interrupted" else run.status
        table.add_row(
            Text(run.run_id),
            Text(run.created_at[:16].replace("T", " ")),
            Text(ending),
            Text(safe(run.model)),
            str(run.turns),
            f"{run.prompt_tokens + run.completion_tokens:,}",
            "unknown" if run.cost_usd is None else money(run.cost_usd),
            Text(one_line(run.task, _TASK_CHARS)),
        )
    return table


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of texts as lines with columns, never broken and never cut; the last is left ragged."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()
