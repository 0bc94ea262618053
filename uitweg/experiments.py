"""An experiment from its file to its report, on the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from harness.cancel import CancelToken
from harness.events import Event
from harness.experiments import results as kept
from harness.experiments.carry import Endpoint, carry, results_file
from harness.experiments.carry import Progress as Where
from harness.experiments.cells import summaries
from harness.experiments.contrast import Contrast, contrast
from harness.experiments.plan import Experiment, PlanError, Provider, Task
from harness.experiments.report import report
from harness.experiments.results import Result
from harness.provider import Endpoint as Address
from harness.provider import OfferedModel, choose_model, find_model, offered_models
from harness.provider.endpoint import normal_base_url
from harness.runner import Runner
from harness.state import RunState
from harness.store import Store
from harness.tools import DEFAULT_TOOLS
from local import folders
from uitweg.carry import open_store
from uitweg.comparison import contrast_tables
from uitweg.config import read_config
from uitweg.following import stored_events
from uitweg.hosting import free_port, hosted, local_url, model_server, wait_until_ready
from uitweg.stopping import stopped_by_signals
from uitweg.text import safe

LEGEND = (
    "unmarked: answers to what the files do not say, without a mark. turns: mean of a run. "
    "turn: median time. all: time of all runs."
)

_ALIVE_SECONDS = 5.0


def carry_experiment(
    plan: Experiment, *, out: Path | None, against: Path | None, command: str
) -> int:
    """Carry out what is not done yet, show the table and write the results. Gives the exit code.

    Args:
        plan: The experiment.
        out: The folder of its results; `None` is one in the data folder.
        against: The folder of an earlier experiment to set this one against.
        command: How it was called, for the report.
    """
    folder = out or folders.make(folders.data()) / "experiments" / plan.name
    earlier = None if against is None else _earlier(against)
    console = Console()
    with ExitStack() as stack:
        endpoints = {
            p.name: stack.enter_context(_endpoint(p, plan, console)) for p in plan.provider
        }
        store = stack.enter_context(open_store())
        token = CancelToken()
        results = asyncio.run(_carried(plan, endpoints, store, folder, console, token))
        compared = None if earlier is None else contrast(earlier, results)
        _write(plan, results, store, folder, command, compared)
    console.print(summary_table(results))
    console.print(LEGEND, style="dim")
    for table in contrast_tables(compared) if compared else ():
        console.print()
        console.print(table)
    if token.cancelled:
        console.print("\nStopped. What is done is kept: the same command goes on.")
        return 130
    console.print(f"\nThe report: {folder / 'report.html'}", soft_wrap=True, highlight=False)
    return 0


def _earlier(folder: Path) -> list[Result]:
    results = kept.read(results_file(folder))
    if not results:
        raise PlanError(f"{folder} holds no results of an experiment.")
    return results


@contextmanager
def _endpoint(provider: Provider, plan: Experiment, console: Console) -> Iterator[Endpoint]:
    """The provider, reachable for the time of the block."""
    if provider.server == "scripted":
        with _scripted(provider, plan.folder, console) as base_url:
            yield _found(Address(base_url, named=True), provider, plan)
        return
    address = read_config().endpoint
    if provider.server != "default":
        base_url = normal_base_url(provider.server)
        address = Address(base_url, address.key_for(base_url), named=True)
    with model_server(address, provider.model or address.model, console):
        yield _found(address, provider, plan)


@contextmanager
def _scripted(provider: Provider, folder: Path, console: Console) -> Iterator[str]:
    """A scripted server of its own, with the recordings of the file; its base URL."""
    port = free_port()
    files = [str(path) for path in _recordings(provider.recordings, folder)]
    with hosted("serve", "--scripted", *files, "--port", str(port)) as process:
        wait_until_ready(local_url(port), console, process)
        yield local_url(port)


def _recordings(names: Iterable[str], folder: Path) -> list[Path]:
    """The files that are named, and those in the folders that are named."""
    found: list[Path] = []
    for name in names:
        path = folder / name
        if not path.exists():
            raise PlanError(f"There is no recording {path}.")
        found += sorted(path.glob("*.toml")) if path.is_dir() else [path]
    return found


def _found(address: Address, provider: Provider, plan: Experiment) -> Endpoint:
    """What the endpoint says of its models, as the experiment needs it."""
    offered = offered_models(address.base_url, address.api_key)
    models = {task.id: _model(address, provider, task, offered) for task in plan.task}
    first = next(iter(models.values()))

    return Endpoint(
        base_url=address.base_url,
        model_of=lambda task: models[task.id].name,
        prices=first.prices,
        policies=first.policies,
        answers=lambda: _answers(address.base_url),
    )


def _model(
    address: Address, provider: Provider, task: Task, offered: list[OfferedModel]
) -> OfferedModel:
    wanted = provider.model_for(task)
    return find_model(offered, wanted) if wanted else choose_model(address, None)


def _answers(base_url: str) -> bool:
    """Whether anybody listens there; what they say does not count."""
    try:
        httpx.get(f"{base_url}/models", timeout=_ALIVE_SECONDS, trust_env=False)
    except httpx.TransportError:
        return False
    return True


async def _carried(
    plan: Experiment,
    endpoints: dict[str, Endpoint],
    store: Store,
    folder: Path,
    console: Console,
    token: CancelToken,
) -> list[Result]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=console) as progress:
        bar = progress.add_task(plan.name, total=None, left="")

        def show(where: Where) -> None:
            if where.last is not None:
                progress.console.print(_line(where.last), soft_wrap=True)
            progress.update(bar, completed=where.done, total=where.total, left=_left(where))

        # No standing rules: what may run is what the file says.
        async with Runner(store) as runner:
            with stopped_by_signals(token):
                return await carry(
                    plan,
                    endpoints,
                    runner,
                    lambda run_id: stored_events(store, run_id),
                    DEFAULT_TOOLS,
                    folder,
                    show,
                    token,
                )


def _line(result: Result) -> Text:
    word = "right" if result.right else "wrong"
    answer = safe(" ".join(result.answer.split())) or result.status.replace("_", " ")
    mark = " (marked as unsupported)" if result.unsupported else ""
    return Text(f"{word}  {result.key}  {result.seconds:.1f} s  {answer[:100]}{mark}")


def _left(where: Where) -> str:
    if where.seconds_left is None or where.next is None:
        return ""
    minutes, seconds = divmod(round(where.seconds_left), 60)
    return f"{minutes}:{seconds:02} left, now {where.next.key}"


def summary_table(results: Iterable[Result]) -> Table:
    """One row a provider and setting."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("provider,\nsetting")
    table.add_column("right,\n95%")
    # As wide as the longest word in it, so that only whole words are wrapped.
    table.add_column("endings", min_width=len("interrupted"))
    for name in ("unmarked", "turns", "tokens", "cost", "turn", "all"):
        table.add_column(name, justify="right", overflow="fold")
    for cell in summaries(results):
        turn = cell.turn_seconds_median
        table.add_row(
            f"{cell.provider},\n{cell.setting}",
            str(cell.score).replace(" (", "\n").rstrip(")"),
            "\n".join(f"{n} {name.replace('_', ' ')}" for name, n in cell.endings.items()),
            f"{cell.unmarked.right} of {cell.unmarked.n}" if cell.unmarked.n else "",
            f"{cell.turns_mean:.1f}",
            f"{cell.prompt_tokens + cell.completion_tokens:,}",
            "unknown" if cell.cost_usd is None else f"${cell.cost_usd:.4f}",
            "" if turn is None else f"{turn:.2f} s",
            f"{cell.seconds_total:.1f} s",
        )
    return table


def _write(
    plan: Experiment,
    results: list[Result],
    store: Store,
    folder: Path,
    command: str,
    compared: Contrast | None,
) -> None:
    def load(run_id: str) -> tuple[RunState, Iterable[Event]]:
        if not store.exists(run_id):
            raise KeyError(run_id)
        return store.load(run_id), stored_events(store, run_id)

    cells: list[object] = [cell.to_json() for cell in summaries(results)]
    page = report(
        plan,
        results,
        load,
        command=command,
        made_at=datetime.now(UTC).strftime("on %d %B %Y at %H:%M UTC"),
        against=compared,
    )
    (folder / "results.json").write_text(
        kept.to_json(plan.name, plan.what, results, cells), encoding="utf-8"
    )
    (folder / "results.csv").write_text(kept.to_csv(results), encoding="utf-8")
    (folder / "report.html").write_text(page, encoding="utf-8")
