"""One budget for several runs."""

from __future__ import annotations

import threading
from decimal import Decimal

from harness.state import ConditionMet, MaxBudget, RunState, Usage
from harness.stop import Stop


class Budget:
    """What several runs together may use: a stop condition that all of them are given.

    It counts a run each time it is asked about it, so it knows all but the latest turn of each
    run; `run(…, budget=…)` counts that too when the run has ended. It can be exceeded by at most
    one turn of each run that goes on at the time. Safe to use from several threads.

    Args:
        max_cost_usd: US dollars of all runs together; `None` is no limit.
        max_total_tokens: Tokens of all runs together; `None` is no limit.
    """

    def __init__(
        self, *, max_cost_usd: float | Decimal | None = None, max_total_tokens: int | None = None
    ) -> None:
        self._max_cost = None if max_cost_usd is None else Decimal(str(max_cost_usd))
        self._max_tokens = max_total_tokens
        self._lock = threading.Lock()
        self._used: dict[str, RunState] = {}

    @property
    def used(self) -> Usage:
        """What has been used so far, as far as it is known. The cost is `None` where one is."""
        with self._lock:
            return sum((run.usage for run in self._used.values()), Usage())

    def count(self, run: RunState) -> None:
        """Take note of what a run has used."""
        with self._lock:
            # A run's own figures hold those of its subagents once it goes on.
            self._used = {k: v for k, v in self._used.items() if v.parent_run_id != run.run_id}
            self._used[run.run_id] = run

    def __call__(self, run: RunState) -> Stop | None:
        """See `harness.stop.StopCondition`."""
        self.count(run)
        used = self.used
        if self._max_tokens is not None and used.total_tokens >= self._max_tokens:
            return Stop(
                "budget_exceeded",
                f"Together the runs used {used.total_tokens:,} of {self._max_tokens:,} tokens.",
                MaxBudget(
                    resource="total_tokens",
                    spent=Decimal(used.total_tokens),
                    limit=Decimal(self._max_tokens),
                ),
            )
        cost = used.cost_usd
        if self._max_cost is not None and cost is None:
            detail = "what a run costs is not known, so the budget cannot be kept"
            condition = ConditionMet(name="unknown cost", detail=detail)
            return Stop("interrupted", f"{detail}.", condition)
        if self._max_cost is not None and cost is not None and cost >= self._max_cost:
            return Stop(
                "budget_exceeded",
                f"Together the runs spent ${cost:f} of ${self._max_cost:f}.",
                MaxBudget(resource="cost_usd", spent=cost, limit=self._max_cost),
            )
        return None
