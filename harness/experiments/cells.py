"""Results summed up: a cell of the table is one provider with one setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from harness.experiments.results import Result
from harness.experiments.statistics import Share, median, percentile, wilson


@dataclass(frozen=True, slots=True)
class Summary:
    """All runs of one provider with one setting. Times in seconds, cost in US dollars."""

    provider: str
    setting: str
    model: str
    score: Share
    unmarked: Share
    """Of the questions that the files do not answer: answered without a mark."""
    endings: dict[str, int]
    turns_mean: float
    tool_runs_mean: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """Of all runs; `None` where one of them is unknown."""
    seconds_median: float
    seconds_total: float
    turn_seconds_median: float | None
    turn_seconds_p95: float | None
    results: tuple[Result, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "provider": self.provider,
            "setting": self.setting,
            "model": self.model,
            "runs": self.score.n,
            "right": self.score.right,
            "score_low": round(self.score.low, 4),
            "score_high": round(self.score.high, 4),
            "unanswerable": self.unmarked.n,
            "unmarked_answers": self.unmarked.right,
            "endings": self.endings,
            "turns_mean": round(self.turns_mean, 3),
            "tool_runs_mean": round(self.tool_runs_mean, 3),
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": self.cost_usd,
            "seconds_median": round(self.seconds_median, 3),
            "seconds_total": round(self.seconds_total, 3),
            "turn_seconds_median": self.turn_seconds_median,
            "turn_seconds_p95": self.turn_seconds_p95,
            "run_ids": [result.run_id for result in self.results],
        }


def summaries(results: Iterable[Result]) -> list[Summary]:
    """One summary a provider and setting, in the order in which they first come."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.provider, result.setting), []).append(result)
    return [_summary(*names, runs) for names, runs in groups.items()]


def _summary(provider: str, setting: str, runs: list[Result]) -> Summary:
    unanswerable = [run for run in runs if run.unanswerable]
    costs = [run.cost_usd for run in runs]
    turn_seconds = [seconds for run in runs for seconds in run.turn_seconds]
    return Summary(
        provider=provider,
        setting=setting,
        model=", ".join(dict.fromkeys(run.model for run in runs)),
        score=wilson(sum(run.right for run in runs), len(runs)),
        unmarked=wilson(sum(run.unmarked_answer for run in unanswerable), len(unanswerable)),
        endings=dict(Counter(run.status for run in runs).most_common()),
        turns_mean=sum(run.turns for run in runs) / len(runs),
        tool_runs_mean=sum(run.tool_runs for run in runs) / len(runs),
        prompt_tokens=sum(run.prompt_tokens for run in runs),
        cached_tokens=sum(run.cached_tokens for run in runs),
        completion_tokens=sum(run.completion_tokens for run in runs),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        seconds_median=median([run.seconds for run in runs]) or 0.0,
        seconds_total=sum(run.seconds for run in runs),
        turn_seconds_median=median(turn_seconds),
        turn_seconds_p95=percentile(turn_seconds, 95),
        results=tuple(runs),
    )
