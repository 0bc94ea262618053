"""Every published figure that tokens decide, made again and compared."""

from harness.figures import pauses, tokens
from harness.figures.compare import compare


def agrees(entry, measured):
    figures = [f for f in compare({entry: measured}) if f.path[0] == entry]
    assert figures
    wrong = [(f.path, f.published, f.measured) for f in figures if not f.agrees]
    assert wrong == []


async def test_plan(lab):
    agrees("plan", await tokens.plan(lab))


async def test_runaway_by_turn_limit(lab):
    agrees("runaway_by_turn_limit", await tokens.runaway_by_turns(lab))


async def test_runaway_by_budget(lab):
    figures = await tokens.runaway_by_budget(lab)
    agrees("runaway_by_budget", figures)
    assert 0 < figures["0.010"]["over"] < figures["0.010"]["last_turn"]


async def test_tool_error_policies(lab):
    agrees("tool_error_policies", await tokens.error_policies(lab))


async def test_permanent_error(lab):
    figures = await tokens.permanent_error(lab, 0.003586)
    agrees("permanent_error_at_cap_12", figures)
    assert figures["known"]["status"] == "failed"
    assert figures["known"]["turns"] == 1
    assert "permission denied: secret/keys.log is locked" in figures["known"]["reason"]


async def test_repeated_read(lab):
    figures = await tokens.repeated_read(lab)
    agrees("repeated_read", figures)
    assert figures["remembered"]["cost"] == figures["forgotten"]["cost"]


async def test_repeated_delete(lab):
    agrees("repeated_delete", await tokens.repeated_delete(lab))


async def test_approval(lab):
    agrees("approval", await pauses.approvals(lab))


async def test_crash(lab):
    figures = await pauses.crash(lab)
    agrees("crash_after_turn_2_of_plan", figures)
    assert figures["killed_with_signal"] == 9


async def test_cancel(lab):
    figures = await pauses.cancel_scan(lab)
    agrees("cancel_scan_archive", figures)
    assert figures["status"] == "interrupted"
    assert figures["done_when_stopped"] < 1200
