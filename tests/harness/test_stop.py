from decimal import Decimal

import pytest

from harness.errors import SettingsError
from harness.state import CallRecord, Limits, Prices, RunState, Settings, Usage
from harness.stop import check_limits, first_stop, raised


def run(limits: Limits, **values) -> RunState:
    settings = Settings(base_url="", model="m", workspace="", tools=(), limits=limits)
    return RunState(run_id="r", task="t", settings=settings, created_at="", **values)


@pytest.mark.parametrize(
    ("limits", "values", "status", "kind"),
    [
        ({"max_turns": 3}, {"turns": 3}, "max_turns_exceeded", "max_turns"),
        (
            {"max_cost_usd": "0.01"},
            {"usage": Usage(cost_usd=Decimal("0.01"))},
            "budget_exceeded",
            "max_budget",
        ),
        (
            {"max_total_tokens": 10},
            {"usage": Usage(prompt_tokens=6, completion_tokens=4)},
            "budget_exceeded",
            "max_budget",
        ),
        ({"max_seconds": 2}, {"seconds": 2.0}, "budget_exceeded", "max_budget"),
    ],
)
def test_each_limit_holds_from_the_moment_it_is_reached(limits, values, status, kind):
    limits = Limits(**limits)
    assert first_stop(run(limits)) is None
    stop = first_stop(run(limits, **values))
    assert (stop.status, stop.interruption.kind) == (status, kind)
    assert stop.reason.endswith(".")
    assert first_stop(run(Limits(max_turns=None), **values)) is None


def test_h12_only_calls_in_a_row_count():
    def calls(*paths: str) -> dict[str, CallRecord]:
        return {
            str(n): CallRecord(
                call_id=str(n), turn=n, tool_name="t", arguments=f'{{"path": "{path}"}}'
            )
            for n, path in enumerate(paths)
        }

    limits = Limits(max_repeats=3)
    assert first_stop(run(limits, calls=calls("a", "a"))) is None
    assert first_stop(run(limits, calls=calls("a", "a", "b", "a", "a"))) is None
    assert first_stop(run(limits, calls=calls("b", "a", "a", "a"))).interruption.name == "repeats"


def test_h17_money_needs_prices_and_zero_is_one():
    settings = Settings(
        base_url="", model="m", workspace="", tools=(), limits=Limits(max_cost_usd="0.1")
    )
    with pytest.raises(SettingsError, match="prices"):
        check_limits(settings)
    half = settings.model_copy(update={"prices": Prices(input_per_million=1)})
    with pytest.raises(SettingsError):
        check_limits(half)
    free = Prices(input_per_million=0, output_per_million=0)
    check_limits(settings.model_copy(update={"prices": free}))


def test_limits_are_raised_by_name():
    limits = raised(Limits(max_turns=3), {"max_turns": 9, "max_cost_usd": "0.5"})
    assert (limits.max_turns, limits.max_cost_usd) == (9, Decimal("0.5"))
    assert raised(Limits(), {"max_turns": None}).max_turns is None
    with pytest.raises(SettingsError, match="no limit turns"):
        raised(Limits(), {"turns": 9})
    with pytest.raises(SettingsError, match="cannot be"):
        raised(Limits(), {"max_turns": 0})
