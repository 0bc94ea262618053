"""The report: one HTML file that needs nothing else, with the runs it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.compare import Step, steps_of
from harness.events import Event
from harness.experiments.cells import Summary, summaries
from harness.experiments.contrast import Contrast
from harness.experiments.plan import Experiment
from harness.experiments.plots import Bar, Interval, Strip, bars, intervals, strips
from harness.experiments.results import Result
from harness.experiments.statistics import median
from harness.state import RunState

Load = Callable[[str], tuple[RunState, Iterable[Event]]]
"""A run and its events by its id; raises `KeyError` when the store no longer has it."""

LONGEST_DETAIL = 4000
"""Characters of one step that are shown in the report; the store has the whole."""


@dataclass(frozen=True, slots=True)
class RunShown:
    """A run as the report shows it: its result and its steps, without them when they are lost."""

    result: Result
    task: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A line of the table of tasks: the results of each cell, in the order of the columns."""

    id: str
    task: str
    expected: str
    cells: tuple[tuple[Result, ...], ...]


def report(
    plan: Experiment,
    results: Sequence[Result],
    load: Load,
    *,
    command: str,
    made_at: str,
    against: Contrast | None = None,
) -> str:
    """The report as HTML.

    Args:
        plan: The experiment.
        results: Its results so far.
        load: Gives the runs they rest on.
        command: The command that made it, for the reader to repeat.
        made_at: The time it was made, in words.
        against: A comparison with an earlier experiment, shown when given.
    """
    cells = summaries(results)
    environment = Environment(
        loader=PackageLoader("harness.experiments", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        plan=plan,
        cells=cells,
        label=_label,
        plots=_plots(cells),
        rows=_rows(plan, cells),
        runs=_runs(plan, results, load),
        longest=LONGEST_DETAIL,
        command=command,
        made_at=made_at,
        against=against,
    )


def _label(cell: Summary) -> str:
    return f"{cell.provider}, {cell.setting}"


def _rows(plan: Experiment, cells: Sequence[Summary]) -> list[TaskRow]:
    return [
        TaskRow(
            task.id,
            task.task,
            ", ".join(_expected(task.judge.model_dump(exclude_defaults=True))),
            tuple(tuple(r for r in cell.results if r.task == task.id) for cell in cells),
        )
        for task in plan.task
    ]


def _expected(rule: Mapping[str, Any]) -> Iterable[str]:
    """What makes the task right, in words."""
    for name, value in rule.items():
        if name == "unanswerable":
            yield "the files do not say: says so, or is marked"
        elif isinstance(value, tuple):
            yield f"{name} {', '.join(value)}"
        else:
            yield f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _runs(plan: Experiment, results: Sequence[Result], load: Load) -> list[RunShown]:
    tasks = {task.id: task.task for task in plan.task}
    return [RunShown(r, tasks.get(r.task, ""), _steps(r.run_id, load)) for r in results]


def _steps(run_id: str, load: Load) -> tuple[Step, ...]:
    try:
        run, events = load(run_id)
    except KeyError:
        return ()
    return steps_of(run.calls, events)


def _plots(cells: Sequence[Summary]) -> dict[str, object]:
    """Title to plot, in the order in which they are shown."""
    return {
        "Right answers, with the 95% confidence interval": intervals(
            [
                Interval(_label(c), c.score.value, c.score.low, c.score.high, f"{c.score}")
                for c in cells
            ],
            "right answers",
        ),
        "Endings": bars([_endings(c) for c in cells], "endings"),
        "Turns per run": strips(
            [_strip(c, [float(r.turns) for r in c.results]) for c in cells], "turns"
        ),
        "Tokens: prompt from the cache, prompt, completion": bars(
            [_tokens(c) for c in cells], "tokens"
        ),
        "Cost": bars([_cost(c) for c in cells], "cost", " US$"),
        "Time per turn": strips(
            [_strip(c, [s for r in c.results for s in r.turn_seconds], " s") for c in cells],
            "seconds per turn",
            " s",
        ),
        "Time per run": strips(
            [_strip(c, [r.seconds for r in c.results], " s") for c in cells],
            "seconds per run",
            " s",
        ),
    }


def _endings(cell: Summary) -> Bar:
    parts = tuple((f"ending-{name}", name, float(n)) for name, n in cell.endings.items())
    shown = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in cell.endings.items())
    return Bar(_label(cell), parts, shown)


def _tokens(cell: Summary) -> Bar:
    parts = (
        ("cached", "prompt tokens from the cache", float(cell.cached_tokens)),
        ("prompt", "other prompt tokens", float(cell.prompt_tokens - cell.cached_tokens)),
        ("completion", "completion tokens", float(cell.completion_tokens)),
    )
    return Bar(_label(cell), parts, f"{cell.prompt_tokens} + {cell.completion_tokens}")


def _cost(cell: Summary) -> Bar:
    if cell.cost_usd is None:
        return Bar(_label(cell), (), "unknown")
    return Bar(_label(cell), (("prompt", "cost", cell.cost_usd),), f"US$ {cell.cost_usd:.6f}")


def _strip(cell: Summary, values: list[float], unit: str = "") -> Strip:
    middle = median(values)
    shown = "none" if middle is None else f"median {middle:.3g}{unit}"
    return Strip(_label(cell), tuple(values), middle, shown)
