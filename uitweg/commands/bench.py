"""`uitweg bench`: measure the engine on this machine, alone or beside what else there is."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from uitweg.bench.servers import Setup

app = typer.Typer(
    help="Measure the engine on this machine.",
    no_args_is_help=False,
    invoke_without_command=True,
    rich_markup_mode=None,
)

Model = Annotated[str | None, typer.Option(help="Which model: a name from `uitweg models list`.")]


@app.callback()
def bench(
    context: typer.Context,
    model: Model = None,
    against: Annotated[
        Path | None,
        typer.Option(help="A Python that has xllamacpp, llama-cpp-python[server] or transformers."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="The median of so many is given.")] = 3,
    only: Annotated[
        str | None, typer.Option(help="Cases, with commas: alone,together,first,next,tasks.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write every figure to this file.")] = None,
) -> None:
    """Print a table of speeds and a roofline. Nothing else should be busy meanwhile."""
    if context.invoked_subcommand is not None:
        return
    from uitweg.bench import cases, peers, report, roofline, servers

    setup, name = _setup(model)
    names = _chosen(only, list(cases.CASES))
    typer.echo(f"{name} on {report.machine(setup.threads)}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = [stack.enter_context(servers.ours(setup, folder))]
        if against is not None:
            running += peers.start(stack, setup, against, _say)
        results = cases.measure(running, names, rounds, _say)
        steps = roofline.steps_per_s(running[0].root) if "alone" in names else None
    if against is not None and "tasks" in names:
        peers.add_transformers(results["tasks"], setup, against, rounds, _say)
    for line in report.table(results):
        typer.echo(line)
    if steps is not None:
        typer.echo(_roofline(setup.model, setup.threads, steps))
    if save is not None:
        report.save(save, {"model": name, "machine": report.machine(setup.threads)}, results)


@app.command()
def inside(model: Model = None, rounds: int = 5) -> None:
    """Steps by their rows, restart, a client that goes away, and what a constrained call costs."""
    from uitweg.bench import inside as measured
    from uitweg.bench import servers
    from uitweg.bench.steps import steps

    setup, _ = _setup(model)
    spent, prefill = steps(setup, 4 * rounds)
    costs = ", ".join(f"{rows}: {ms:.1f}" for rows, ms in spent.items())
    typer.echo(f"a step, ms by its rows: {costs}; prefill {prefill:.0f} tokens/s")
    without, kept = measured.restart(setup, max(1, rounds // 2), _say)
    typer.echo(
        f"first turn after a restart: {without:.0f} ms, with the kept state {kept:.0f} ms "
        f"({kept / without:.3f})"
    )
    with tempfile.TemporaryDirectory() as folder, servers.ours(setup, Path(folder)) as ours:
        writing, prefilling = measured.client_gone(ours.root, rounds)
    typer.echo(f"client gone: free after {writing:.0f} ms, in prefill after {prefilling:.0f} ms")
    cost = measured.call_cost(setup, 4 * rounds)
    typer.echo(f"a constrained call: {100 * (cost - 1):+.1f}% time a token")


@app.command()
def soak(model: Model = None, requests: int = 1000) -> None:
    """Many requests of mixed length with random cancels: no leak, no wrong text."""
    from uitweg.bench.soak import soak as run_soak

    setup, _ = _setup(model)
    result = run_soak(setup, requests, _say)
    typer.echo(
        f"{result.requests} requests in {result.seconds:.0f} s, {result.cancelled} cancelled: "
        f"{result.wrong} wrong texts, {result.failed} failed, "
        f"memory {result.slope / 1e3:+.1f} kB a request over the second half"
    )
    if result.wrong or result.failed:
        raise typer.Exit(1)


def _setup(name: str | None) -> tuple[Setup, str]:
    import models
    from local import cpus
    from models.progress import Lines
    from uitweg.bench.servers import Setup

    model = models.ensure(name, Lines())
    return Setup(model.path, model.sha256, cpus.threads()), model.name


def _chosen(only: str | None, known: list[str]) -> list[str]:
    names = known if only is None else only.split(",")
    if unknown := [name for name in names if name not in known]:
        raise typer.BadParameter(f"{unknown[0]} is no case. There are: {', '.join(known)}.")
    return names


def _roofline(model: Path, threads: int, steps: float) -> str:
    from uitweg.bench.roofline import Roofline, bandwidth, bytes_per_step

    limit = Roofline(bandwidth(threads), bytes_per_step(model))
    return (
        f"roofline: memory gives {limit.bandwidth / 1e9:.1f} GB/s, a step reads "
        f"{limit.bytes_per_step / 1e6:.0f} MB: at most {limit.steps_per_s:.0f} steps/s; "
        f"these were {steps:.0f}, {steps / limit.steps_per_s:.0%} of it. "
        "A guess that comes true is a token without a step."
    )


def _say(line: str) -> None:
    typer.echo(line, err=True)
