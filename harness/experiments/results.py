"""One line a run, kept as it ends, so that an experiment can go on where it stopped."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.events import Event, Guidance, Turn
from harness.experiments.judge import Verdict
from harness.experiments.plan import PlannedRun
from harness.state import RunState, Status


class Result(BaseModel):
    """One run that was carried out. Times in seconds, cost in US dollars (`None`: unknown)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    digest: str
    """Of what was run: `PlannedRun.digest`."""
    task: str
    provider: str
    setting: str
    repeat: int
    run_id: str
    model: str
    policies: tuple[str, ...]
    status: Status
    reason: str
    answer: str
    right: bool
    why: str
    tags: tuple[str, ...] = ()
    unanswerable: bool = False
    """The task asks for what the files do not say."""
    unsupported: bool = False
    """The harness marked the answer."""
    from_evidence: bool = False
    turns: int = 0
    tool_runs: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    turn_seconds: tuple[float, ...] = ()
    prompt_tokens_per_turn: tuple[int, ...] = ()
    acted: tuple[str, ...] = ()
    """The policies that did something."""

    @property
    def unmarked_answer(self) -> bool:
        """It answered what the files do not say, and nothing warns of it."""
        return self.unanswerable and self.status == "completed" and not self.right


def result_of(
    planned: PlannedRun, digest: str, run: RunState, events: Iterable[Event], verdict: Verdict
) -> Result:
    """What is kept of one ended run."""
    events = list(events)
    turns = [event for event in events if isinstance(event, Turn)]
    acted = dict.fromkeys(event.policy for event in events if isinstance(event, Guidance))
    cost = run.usage.cost_usd
    return Result(
        key=planned.key,
        digest=digest,
        task=planned.task.id,
        provider=planned.provider.name,
        setting=planned.setting.name,
        repeat=planned.repeat,
        run_id=run.run_id,
        model=run.settings.model,
        policies=run.settings.guidance,
        status=run.status,
        reason=run.reason,
        answer=run.answer,
        right=verdict.right,
        why=verdict.why,
        tags=planned.task.tags,
        unanswerable=planned.task.judge.unanswerable,
        unsupported=bool(run.unsupported),
        from_evidence=run.answered_from_evidence,
        turns=run.turns,
        tool_runs=run.tool_runs,
        prompt_tokens=run.usage.prompt_tokens,
        cached_tokens=run.usage.cached_tokens,
        completion_tokens=run.usage.completion_tokens,
        cost_usd=None if cost is None else float(cost),
        seconds=round(run.seconds, 3),
        turn_seconds=tuple(round(turn.ms / 1000, 3) for turn in turns),
        prompt_tokens_per_turn=tuple(turn.prompt_tokens for turn in turns),
        acted=tuple(acted),
    )


def append(path: Path, result: Result) -> None:
    """Add a line and have it on disk before returning."""
    with path.open("a", encoding="utf-8") as file:
        file.write(result.model_dump_json() + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Result]:
    """The results kept so far, the last one for each key. A line that a crash cut is left out."""
    if not path.exists():
        return []
    found: dict[str, Result] = {}
    for line in path.read_text("utf-8").splitlines():
        try:
            result = Result.model_validate_json(line)
        except ValidationError:
            continue
        found[result.key] = result
    return list(found.values())


def to_csv(results: Iterable[Result]) -> str:
    """One row a run; lists are written with spaces between."""
    out = io.StringIO()
    names = list(Result.model_fields)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for result in results:
        values = result.model_dump()
        writer.writerow([_flat(values[name]) for name in names])
    return out.getvalue()


def _flat(value: object) -> object:
    if isinstance(value, tuple | list):
        return " ".join(str(part) for part in value)
    return "" if value is None else value


def to_json(name: str, what: str, results: Iterable[Result], cells: list[object]) -> str:
    """The whole experiment as one JSON object."""
    value = {
        "experiment": name,
        "what": what,
        "cells": cells,
        "runs": [result.model_dump(mode="json") for result in results],
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
