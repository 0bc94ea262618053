"""Two experiments beside one another: which cells changed, and whether that can be chance.

Runs are matched by task, provider, setting and repeat, so the same file carried
out twice (another model, another version, another profile) can be set against itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.experiments.results import Result
from harness.experiments.statistics import Share, sign_test, wilson


@dataclass(frozen=True, slots=True)
class Change:
    """One matched pair that is not the same in being right, in its ending or its answer."""

    key: str
    before: Result
    after: Result

    @property
    def what(self) -> str:
        """In a few words: `wrong, now right`, `completed, now failed`, `other answer`."""
        if self.before.right != self.after.right:
            return "wrong, now right" if self.after.right else "right, now wrong"
        if self.before.status != self.after.status:
            return f"{self.before.status}, now {self.after.status}"
        return "other answer"


@dataclass(frozen=True, slots=True)
class Line:
    """One provider with one setting, before and after. `p` is of the sign test."""

    provider: str
    setting: str
    before: Share
    after: Share
    better: int
    worse: int
    seconds_before: float
    seconds_after: float

    @property
    def p(self) -> float:
        return sign_test(self.better, self.worse)


@dataclass(frozen=True, slots=True)
class Contrast:
    lines: tuple[Line, ...]
    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    """Keys without a partner."""
    only_after: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "cells": [
                {
                    "provider": line.provider,
                    "setting": line.setting,
                    "runs": line.before.n,
                    "right_before": line.before.right,
                    "right_after": line.after.right,
                    "better": line.better,
                    "worse": line.worse,
                    "p": round(line.p, 4),
                    "seconds_before": round(line.seconds_before, 3),
                    "seconds_after": round(line.seconds_after, 3),
                }
                for line in self.lines
            ],
            "changes": [
                {
                    "key": change.key,
                    "what": change.what,
                    "before": {"run_id": change.before.run_id, "answer": change.before.answer},
                    "after": {"run_id": change.after.run_id, "answer": change.after.answer},
                }
                for change in self.changes
            ],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


def contrast(before: Iterable[Result], after: Iterable[Result]) -> Contrast:
    """Set two experiments' results against one another."""
    old = {result.key: result for result in before}
    new = {result.key: result for result in after}
    pairs = {key: (old[key], new[key]) for key in old if key in new}
    groups: dict[tuple[str, str], list[tuple[Result, Result]]] = {}
    for a, b in pairs.values():
        groups.setdefault((a.provider, a.setting), []).append((a, b))
    return Contrast(
        lines=tuple(_line(*names, group) for names, group in groups.items()),
        changes=tuple(Change(key, a, b) for key, (a, b) in pairs.items() if _changed(a, b)),
        only_before=tuple(key for key in old if key not in new),
        only_after=tuple(key for key in new if key not in old),
    )


def _changed(a: Result, b: Result) -> bool:
    return (a.right, a.status, a.answer) != (b.right, b.status, b.answer)


def _line(provider: str, setting: str, pairs: list[tuple[Result, Result]]) -> Line:
    return Line(
        provider=provider,
        setting=setting,
        before=wilson(sum(a.right for a, _ in pairs), len(pairs)),
        after=wilson(sum(b.right for _, b in pairs), len(pairs)),
        better=sum(b.right and not a.right for a, b in pairs),
        worse=sum(a.right and not b.right for a, b in pairs),
        seconds_before=sum(a.seconds for a, _ in pairs),
        seconds_after=sum(b.seconds for _, b in pairs),
    )
