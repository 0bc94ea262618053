"""All figures, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.figures import pauses, times, tokens
from harness.figures.lab import Lab


async def produce(lab: Lab, say: Callable[[str], None]) -> dict[str, Any]:
    """Every entry of the published figures that needs no real model, measured.

    Args:
        lab: Where the runs are made.
        say: Told what is being made, before each part.

    Returns the entries under their published names, with more in them than was published, and
    under `latency` and `overhead` what has no entry of its own.
    """
    say("the plan")
    measured: dict[str, Any] = {"plan": await tokens.plan(lab)}
    say("the runaway under its limits")
    measured["runaway_by_turn_limit"] = await tokens.runaway_by_turns(lab)
    measured["runaway_by_budget"] = await tokens.runaway_by_budget(lab)
    say("tool errors")
    measured["tool_error_policies"] = policies = await tokens.error_policies(lab)
    recovering = policies["told"]["cost"]
    measured["permanent_error_at_cap_12"] = await tokens.permanent_error(lab, recovering)
    say("repeated calls")
    measured["repeated_read"] = await tokens.repeated_read(lab)
    measured["repeated_delete"] = await tokens.repeated_delete(lab)
    say("approvals")
    measured["approval"] = await pauses.approvals(lab)
    say("a crash")
    measured["crash_after_turn_2_of_plan"] = await pauses.crash(lab)
    say("a cancellation")
    measured["cancel_scan_archive"] = await pauses.cancel_scan(lab)
    say("times")
    measured["overhead"] = await times.overhead(lab)
    measured["harness_overhead_ms_per_three_turn_run"] = measured["overhead"]["whole_ms"]
    measured["latency"] = await times.latency(lab)
    return measured
