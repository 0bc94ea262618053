"""The figures as a reader wants to see them: a table for each question, then every figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from harness.figures.compare import Figure

LEGEND = (
    "✓ as published   ✗ differs   without a mark: nothing was published, or the machine decides"
)

MONEY = ("cost", "run_cost", "extra_cost", "over", "last_turn")
TEXTS = ("answer", "ending", "status", "deleted")


class Cells:
    """Measured values by their path, as cells that say whether they are what was published."""

    def __init__(self, measured: Mapping[str, Any], figures: Iterable[Figure]) -> None:
        """`figures` are the comparisons of `measured`."""
        self._measured = measured
        self._figures = {figure.path: figure for figure in figures}

    def at(self, *path: str) -> Text:
        """The cell of one figure."""
        value: Any = self._measured
        for key in path:
            value = value[key]
        figure = self._figures.get(path)
        cell = Text(shown(value, path[-1]))
        if figure is not None and figure.exact:
            cell.append(" ✓" if figure.agrees else " ✗", style="green" if figure.agrees else "red")
        return cell

    def row(self, entry: Sequence[str], names: Iterable[str]) -> list[Text]:
        """The cells of some figures of one entry; an empty one for a figure that it has not."""
        value: Any = self._measured
        for key in entry:
            value = value[key]
        return [self.at(*entry, name) if name in value else Text("") for name in names]


def shown(value: Any, name: str = "") -> str:
    """A figure for people: money to the micro-dollar, times to a tenth, counts with commas."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, str):
        return value or "(none)"
    if isinstance(value, list):
        return ", ".join(shown(item) for item in value) or "(none)"
    if name in MONEY:
        return f"${value:.6f}"
    if "_ms" in name:
        return f"{value:,.1f} ms"
    return f"{value:,}"


def show(console: Console, measured: Mapping[str, Any], figures: Sequence[Figure]) -> None:
    """Print all tables."""
    cells = Cells(measured, figures)
    for table in (
        _plan(cells, measured), _limits(cells), _budget(cells), _errors(cells), _repeats(cells),
        _approvals(cells), _crash(cells), _cancel(cells), _times(measured),
    ):  # fmt: skip
        console.print(table)
        console.print()
    console.print(Text(LEGEND, style="dim"))
    console.print()
    console.print(all_figures(figures))


def _table(title: str, *columns: str, note: str = "") -> Table:
    table = Table(title=title, caption=note or None, title_justify="left", caption_justify="left")
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        justify: JustifyMethod = "left" if column in TEXTS else "right"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def _plan(cells: Cells, measured: Mapping[str, Any]) -> Table:
    table = _table(
        "A plain run, turn by turn", "turn", "prompt tokens", "completion tokens", "cost",
        "cost so far",
    )  # fmt: skip
    for number, turn in enumerate(measured["plan"]["by_turn"], start=1):
        row = (shown(turn["prompt"]), shown(turn["completion"]))
        money = (shown(turn["cost"], "cost"), shown(turn["run_cost"], "cost"))
        table.add_row(str(number), *row, *money)
    total = cells.row(["plan"], ("in", "out", "cost"))
    table.add_section()
    table.add_row("all", *total, "")
    return table


def _limits(cells: Cells) -> Table:
    entry = "runaway_by_turn_limit"
    ratio = shown(cells.at(entry, "cost_100_over_50").plain.split()[0])
    table = _table(
        "A model that never answers: what a turn limit saves", "turn limit", "turns",
        "prompt tokens", "completion tokens", "cost", "ending",
        note=f"100 turns cost {ratio} times as much as 50: each turn sends all before it again.",
    )  # fmt: skip
    for limit in ("8", "20", "50", "100"):
        row = cells.row([entry, limit], ("turns", "in", "out", "cost", "status"))
        table.add_row(limit, *row)
    return table


def _budget(cells: Cells) -> Table:
    table = _table(
        "The same model under a limit on money", "limit", "turns", "cost", "over the limit",
        "last turn", "ending",
        note="A limit on money holds to within one turn: what a turn costs is known after it.",
    )  # fmt: skip
    names = ("turns", "cost", "over", "last_turn", "status")
    table.add_row("$0.010", *cells.row(["runaway_by_budget", "0.010"], names))
    return table


def _errors(cells: Cells) -> Table:
    errors, permanent = "tool_error_policies", "permanent_error_at_cap_12"
    table = _table(
        "A tool fails: what the model is told, and what comes of it", "the model is told",
        "turns", "tool runs", "cost", "ending", "answer",
        note=(
            f"Told costs {cells.at(errors, 'told_cost_over_fatal_cost').plain} times fatal and "
            f"answers. An error that nothing can mend costs "
            f"{cells.at(permanent, 'over_recovering_run').plain} times the run that recovers, "
            "unless the tool says so."
        ),
    )  # fmt: skip
    names = ("turns", "tool_runs", "cost", "status", "answer")
    table.add_row("nothing: the run ends", *cells.row([errors, "fatal"], names))
    table.add_row("that it failed", *cells.row([errors, "vague"], names))
    table.add_row("what is wrong", *cells.row([errors, "told"], names))
    table.add_section()
    table.add_row("a permanent error, told each time", *cells.row([permanent], names))
    table.add_row("the same, known to be permanent", *cells.row([permanent, "known"], names))
    return table


def _repeats(cells: Cells) -> Table:
    table = _table(
        "The same call twice", "case", "turns", "tool runs", "cost", "deleted",
        note=(
            f"The second read costs {cells.at('repeated_read', 'extra_cost').plain}, "
            f"{cells.at('repeated_read', 'extra').plain} more. Remembering saves: "
            f"{cells.at('repeated_read', 'dedupe_saves').plain}.\nA remembered deletion is one "
            "that did not happen: the file, written anew meanwhile, is still there."
        ),
    )  # fmt: skip
    names = ("turns", "tool_runs", "cost", "deleted")
    read, delete = "repeated_read", "repeated_delete"
    table.add_row("read, remembered", *cells.row([read, "remembered"], names))
    table.add_row("read, not remembered", *cells.row([read, "forgotten"], names))
    table.add_section()
    table.add_row("delete, everything remembered", *cells.row([delete, "cache_everything"], names))
    table.add_row("delete, only reads remembered", *cells.row([delete, "cache_reads_only"], names))
    return table


def _approvals(cells: Cells) -> Table:
    table = _table(
        "A deletion that waits for a person", "decision", "turns", "cost", "deleted", "answer",
        note=(
            f"It waits at {cells.at('approval', 'stopped', 'call').plain}.\nA refusal without "
            "words is not possible here: after one, the model reports what did not happen."
        ),
    )  # fmt: skip
    for title, name in (
        ("none yet", "stopped"),
        ("approve", "approve"),
        ("reject, with a reason", "reject_with_reason"),
        ("reject, with nothing", "reject_with_nothing"),
    ):
        names = ("turns", "cost", "deleted", "answer")
        table.add_row(title, *cells.row(["approval", name], names))
    return table


def _crash(cells: Cells) -> Table:
    entry = "crash_after_turn_2_of_plan"
    table = _table(
        "A process killed after two turns; another goes on", "", "turns", "cost", "messages",
        "status", "tool runs over both",
    )  # fmt: skip
    names = ("turns", "cost", "messages", "status", "tool_runs_over_both_processes")
    table.add_row("as it was found", *cells.row([entry, "restored"], names))
    table.add_row("finished", *cells.row([entry, "finished"], names))
    return table


def _cancel(cells: Cells) -> Table:
    entry = "cancel_scan_archive"
    table = _table(
        "Stop, pressed while a slow tool runs", "", "measured",
        note="Published: a scan of 3000 ms, Stop pressed at 1200 ms, stopped after 1202 ms.",
    )  # fmt: skip
    for title, name in (
        ("files in the archive", "files"),
        ("progress, every so many files", "progress_every_files"),
        ("the whole scan", "whole_scan_ms"),
        ("Stop pressed at", "stop_pressed_at_ms"),
        ("stopped after", "stopped_after_ms"),
        ("Stop took", "stop_took_ms"),
        ("files done by then", "done_when_stopped"),
    ):
        table.add_row(title, cells.at(entry, name))
    return table


def _times(measured: Mapping[str, Any]) -> Table:
    table = _table(
        "The provider's time, and the harness's", "provider's time a reply", "whole run",
        "times one reply", "harness",
        note=(
            "Three turns pay the provider's time three times. Harness: all that is not waiting "
            "for a reply, the store included.\nPublished for the harness: 15 ms for three turns."
        ),
    )  # fmt: skip
    for row in (measured["overhead"] | {"latency_ms": 0}, *measured["latency"][1:]):
        latency, whole = row["latency_ms"], row["whole_ms"]
        times = f"{whole / latency:.2f}" if latency else ""
        cells = (shown(whole, "_ms"), times, shown(row["harness_ms"], "_ms"))
        table.add_row(f"{latency} ms", *cells)
    return table


def all_figures(figures: Sequence[Figure]) -> Table:
    """Published beside measured, every figure."""
    table = Table(title="Every figure", title_justify="left")
    for column in ("figure", "published", "measured", ""):
        table.add_column(column, overflow="fold")
    before = ""
    for figure in figures:
        entry = figure.path[0]
        if entry != before and len(figure.path) > 1:
            table.add_section()
            table.add_row(Text(words(entry), style="bold"))
        before = entry
        mark = "time" if not figure.exact else "✓" if figure.agrees else "✗"
        inner = figure.path[1:] or figure.path
        cells = (shown(value, figure.path[-1]) for value in (figure.published, figure.measured))
        name = " · ".join(map(words, inner))
        table.add_row(f"  {name}", *cells, mark, style="" if figure.agrees else "red")
    return table


def words(name: str) -> str:
    """A figure's name for people."""
    return name.replace("_", " ")
