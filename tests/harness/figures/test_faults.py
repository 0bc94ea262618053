"""Every fault of the scripted provider against the whole harness: no run hangs, none goes wrong."""

import pytest

from harness.events import Retry
from harness.figures.lab import Carried
from harness.state import RESUMABLE
from server.scripted.faults import RAW, WRONG

BREAKS = ("half_stream", "no_end")
"""Worth another try; each try waits a little longer."""


async def carried(lab, model) -> Carried:
    run = await lab.run(model)
    calls = [c["id"] for m in run.state.messages for c in m.get("tool_calls") or ()]
    said = [m["tool_call_id"] for m in run.state.messages if m["role"] == "tool"]
    assert sorted(calls) == sorted(said)
    assert all(m["content"] for m in run.state.messages if m["role"] == "tool")
    return run


@pytest.mark.parametrize("fault", [name for name in (*WRONG, *RAW) if name not in BREAKS])
async def test_h23_a_fault_ends_the_run_in_order_or_is_got_over(lab, fault):
    run = await carried(lab, f"plan?fault={fault}&turn=2")
    assert run.state.status == "completed" or run.state.status in RESUMABLE
    assert run.state.tool_runs <= 2
    assert run.state.reason


@pytest.mark.parametrize("fault", [*BREAKS, "429", "500", "502", "503"])
async def test_h22_one_retry_gets_over_a_fault_that_goes_away(lab, fault):
    run = await carried(lab, f"plan?fault={fault}&turn=2&times=1")
    assert sum(isinstance(event, Retry) for event in run.events) == 1
    assert (run.state.status, run.state.tool_runs) == ("completed", 2)


@pytest.mark.parametrize("fault", ["400", "404", "422"])
async def test_h22_a_refusal_is_not_tried_again(lab, fault):
    run = await carried(lab, f"plan?fault={fault}&turn=2&times=1")
    assert not any(isinstance(event, Retry) for event in run.events)
    assert run.state.status in RESUMABLE
