"""When a run stops: predicates over the run, asked before anything is spent.

A stop condition is any callable that takes the `RunState` and returns a `Stop`
or `None`. The ones here read `Settings.limits`; a caller gives more of their
own to the `Runner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple, Protocol

from harness.dedupe import call_key
from harness.errors import SettingsError
from harness.state import (
    ConditionMet,
    Interruption,
    Limits,
    MaxBudget,
    MaxTurns,
    RunState,
    Settings,
    Status,
)


class Stop(NamedTuple):
    """How the run ends. `reason` is one line for people."""

    status: Status
    reason: str
    interruption: Interruption | None = None


class StopCondition(Protocol):
    """Says whether a run has to stop now. It must be quick and change nothing."""

    def __call__(self, run: RunState, /) -> Stop | None: ...


def turns(run: RunState) -> Stop | None:
    """As many replies as it may have."""
    limit = run.settings.limits.max_turns
    if limit is None or run.turns < limit:
        return None
    return Stop(
        "max_turns_exceeded",
        f"It reached its limit of {limit} turns.",
        MaxTurns(turns=run.turns, limit=limit),
    )


def money(run: RunState) -> Stop | None:
    """As much money as it may spend, its subagents' included."""
    limit, spent = run.settings.limits.max_cost_usd, run.usage.cost_usd
    if limit is not None and spent is None:
        detail = "the model's endpoint counts no tokens, so the limit on money cannot be kept"
        return Stop("interrupted", f"{detail}.", ConditionMet(name="unknown cost", detail=detail))
    if limit is None or spent is None or spent < limit:
        return None
    return Stop(
        "budget_exceeded",
        f"It spent ${spent:f} of ${limit:f}.",
        MaxBudget(resource="cost_usd", spent=spent, limit=limit),
    )


def tokens(run: RunState) -> Stop | None:
    """As many tokens as it may use, prompts and replies together."""
    limit, spent = run.settings.limits.max_total_tokens, run.usage.total_tokens
    if limit is None or spent < limit:
        return None
    return Stop(
        "budget_exceeded",
        f"It used {spent:,} of {limit:,} tokens.",
        MaxBudget(resource="total_tokens", spent=Decimal(spent), limit=Decimal(limit)),
    )


def seconds(run: RunState) -> Stop | None:
    """As long as it may be carried, over all processes that carried it."""
    limit, spent = run.settings.limits.max_seconds, run.seconds
    if limit is None or spent < limit:
        return None
    return Stop(
        "budget_exceeded",
        f"It took {spent:.1f} of {limit:g} seconds.",
        MaxBudget(
            resource="seconds",
            spent=Decimal(f"{spent:.3f}"),
            limit=Decimal(str(limit)),
        ),
    )


def repeats(run: RunState) -> Stop | None:
    """The same call with the same arguments too often in a row."""
    limit = run.settings.limits.max_repeats
    if limit is None or len(run.calls) < limit:
        return None
    latest = list(islice(reversed(run.calls.values()), limit))
    if len({call_key(record) for record in latest}) > 1:
        return None
    detail = f"{latest[0].tool_name} was asked for {limit} times in a row with the same arguments"
    return Stop("interrupted", f"{detail}.", ConditionMet(name="repeats", detail=detail))


CONDITIONS: tuple[StopCondition, ...] = (turns, money, tokens, seconds, repeats)


def first_stop(run: RunState, more: Iterable[StopCondition] = ()) -> Stop | None:
    """The first condition that holds, in the order given; the built-in ones come first."""
    for condition in (*CONDITIONS, *more):
        if stop := condition(run):
            return stop
    return None


def check_limits(settings: Settings) -> None:
    """Raise `SettingsError` for a limit that could never be kept."""
    prices = settings.prices
    unknown = prices.input_per_million is None or prices.output_per_million is None
    if settings.limits.max_cost_usd is not None and unknown:
        raise SettingsError(
            f"A limit on money needs prices, and those of {settings.model} are not known. "
            "Give its prices (0 is one; `[prices]` in uitweg.toml), or limit turns instead."
        )


def raised(limits: Limits, changes: Mapping[str, Any]) -> Limits:
    """`limits` with some of them changed. Raises `SettingsError`."""
    unknown = changes.keys() - Limits.model_fields.keys()
    if unknown:
        known = ", ".join(Limits.model_fields)
        raise SettingsError(f"There is no limit {min(unknown)}. There are: {known}.")
    try:
        return Limits.model_validate({**limits.model_dump(), **changes})
    except ValueError as error:
        raise SettingsError(f"That limit cannot be: {error}") from None
