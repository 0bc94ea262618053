"""Carries out what an experiment file asks for and is not yet done.

Every run is an ordinary run in the store, over its own copy of the task's
folder. What is done is kept as it ends, so that an experiment that was stopped
goes on with the next run.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.cancel import CancelToken
from harness.demo import copy_demo
from harness.events import Event
from harness.experiments.judge import judge
from harness.experiments.plan import Experiment, PlannedRun, Task
from harness.experiments.results import Result, append, read, result_of
from harness.state import ApprovalNeeded, Decision, Limits, NoReply, Prices, RunState, Settings

MAX_DECISIONS = 20
"""A run that asks for more approvals than this is left interrupted."""

REFUSAL = "That is not what was asked for."


class CarryError(Exception):
    """The experiment cannot go on; what is done is kept. The text says what to do."""


class Carrier(Protocol):
    """What carries a run: `harness.runner.Runner`."""

    async def start(
        self, task: str, settings: Settings, *, cancel: CancelToken | None = None
    ) -> RunState: ...

    async def resume(self, run_id: str, *, cancel: CancelToken | None = None) -> RunState: ...

    async def decide(self, run_id: str, decision: Decision) -> object: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider of the file as it was found. `policies` are those of a profile's name.

    `answers` is asked before a run that got no reply is believed."""

    base_url: str
    model_of: Callable[[Task], str]
    prices: Prices
    policies: Callable[[str], tuple[str, ...]]
    answers: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the experiment is. `seconds_left` is an estimate, `None` before the first run."""

    done: int
    total: int
    next: PlannedRun | None
    last: Result | None
    seconds_left: float | None


def results_file(folder: Path) -> Path:
    return folder / "results.jsonl"


async def carry(
    plan: Experiment,
    endpoints: Mapping[str, Endpoint],
    carrier: Carrier,
    events_of: Callable[[str], Iterable[Event]],
    tools: tuple[str, ...],
    folder: Path,
    on_progress: Callable[[Progress], None],
    cancel: CancelToken,
) -> list[Result]:
    """Carry out the runs that have no result yet, one after the other, so that times are honest.

    Args:
        plan: The experiment.
        endpoints: By the name of the provider.
        carrier: Carries the runs.
        events_of: The events of a run, in order.
        tools: Names of the tools that every run may use.
        folder: Keeps the results and the folders that the runs worked on.
        on_progress: Called before the first run and after each.
        cancel: Set it to stop: the run that goes on is cancelled, and counts as not done.

    Returns:
        The results there are, in the order of the plan: all of them unless it was stopped.

    Raises:
        CarryError: when a provider no longer answers. What is done is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = {result.key: result for result in read(results_file(folder))}
    digests = {
        planned.key: planned.digest(_files_digest(plan, planned.task)) for planned in plan.runs()
    }
    done = {key: r for key, r in kept.items() if digests.get(key) == r.digest}
    todo = [planned for planned in plan.runs() if planned.key not in done]
    spent: list[Result] = []
    on_progress(_progress(done, todo, spent))
    while todo and not cancel.cancelled:
        planned = todo[0]
        workspace = folder / "work" / planned.key
        _fresh_copy(plan, planned.task, workspace)
        settings = _settings(planned, endpoints[planned.provider.name], tools, workspace)
        run = await _one(planned, endpoints[planned.provider.name], carrier, settings, cancel)
        if cancel.cancelled:
            break
        result = _judged(planned, digests[planned.key], run, events_of, workspace)
        append(results_file(folder), result)
        done[planned.key] = result
        spent.append(result)
        todo.pop(0)
        on_progress(_progress(done, todo, spent))
    return [done[planned.key] for planned in plan.runs() if planned.key in done]


async def _one(
    planned: PlannedRun,
    endpoint: Endpoint,
    carrier: Carrier,
    settings: Settings,
    cancel: CancelToken,
) -> RunState:
    run = await carrier.start(planned.task.task, settings, cancel=cancel)
    for _ in range(MAX_DECISIONS):
        if not isinstance(run.interruption, ApprovalNeeded):
            break
        await carrier.decide(run.run_id, _decision(planned.task, run.interruption))
        run = await carrier.resume(run.run_id, cancel=cancel)
    if isinstance(run.interruption, NoReply) and not endpoint.answers():
        raise CarryError(
            f"{planned.provider.name} at {endpoint.base_url} no longer answers: {run.reason} "
            "What is done is kept: start the server and give the same command again."
        )
    return run


def _settings(
    planned: PlannedRun, endpoint: Endpoint, tools: tuple[str, ...], workspace: Path
) -> Settings:
    setting = planned.setting
    named = setting.policies
    return Settings(
        base_url=endpoint.base_url,
        model=endpoint.model_of(planned.task),
        workspace=str(workspace),
        tools=tools,
        limits=Limits(max_turns=setting.max_turns, max_seconds=setting.max_seconds),
        prices=endpoint.prices,
        guidance=endpoint.policies(setting.profile or "none") if named is None else named,
        temperature=setting.temperature,
        max_completion_tokens=setting.max_tokens,
    )


def _decision(task: Task, asked: ApprovalNeeded) -> Decision:
    """What the person of this experiment says: the calls that the task names, and no others."""
    call = " ".join([asked.tool_name, *(str(value) for value in asked.args.values())])
    approved = call in task.approve
    return Decision(
        call_id=asked.call_id,
        action="approve" if approved else "reject",
        digest=asked.digest,
        reason=None if approved else REFUSAL,
        decided_by="experiment",
    )


def _judged(
    planned: PlannedRun,
    digest: str,
    run: RunState,
    events_of: Callable[[str], Iterable[Event]],
    workspace: Path,
) -> Result:
    verdict = judge(planned.task.judge, run, workspace, unsupported=bool(run.unsupported))
    return result_of(planned, digest, run, events_of(run.run_id), verdict)


def _progress(done: Mapping[str, Result], todo: list[PlannedRun], spent: list[Result]) -> Progress:
    return Progress(
        done=len(done),
        total=len(done) + len(todo),
        next=todo[0] if todo else None,
        last=spent[-1] if spent else None,
        seconds_left=_seconds_left(todo, list(done.values())),
    )


def _seconds_left(todo: list[PlannedRun], known: list[Result]) -> float | None:
    """Every run still to come at the mean of its own kind, or of all where there is none."""
    if not known:
        return None if todo else 0.0
    return sum(_mean_seconds(known, planned) for planned in todo)


def _mean_seconds(known: list[Result], planned: PlannedRun) -> float:
    kind = (planned.provider.name, planned.setting.name)
    alike = [r.seconds for r in known if (r.provider, r.setting) == kind]
    seconds = alike or [r.seconds for r in known]
    return sum(seconds) / len(seconds)


def _source(plan: Experiment, task: Task) -> Path | None:
    """The folder of a task, `None` for the demo's."""
    return None if task.workspace == "demo" else plan.folder / task.workspace


def _fresh_copy(plan: Experiment, task: Task, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    source = _source(plan, task)
    if source is None:
        target.mkdir(parents=True)
        copy_demo(target)
    else:
        shutil.copytree(source, target)


def _files_digest(plan: Experiment, task: Task) -> str:
    """Names and contents of the task's folder; the demo's never changes within a version."""
    source = _source(plan, task)
    if source is None:
        return "demo"
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(source)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
