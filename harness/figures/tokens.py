"""The figures that tokens decide: what runs cost, and how they end."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from harness.approval import Rule, Rules
from harness.events import Turn
from harness.figures.lab import PRICES, Carried, Lab
from harness.figures.tools import growing_tools, locked_tools
from harness.state import Limits

Figures = dict[str, Any]

MISSING_FILE = "Read timeout.log and tell me which file mentions a timeout."
LOCKED_FILE = "Read secret/keys.log."
FREE_SPACE = "Free up some disk space."

TURN_LIMITS = (8, 20, 50, 100)
BUDGET = "0.010"

ALLOW_DELETION = Rules([Rule(action="allow", tool="delete_file")])


async def plan(lab: Lab) -> Figures:
    """The plain run: three turns, two tools, an answer."""
    run = await lab.run("plan")
    turns = [
        {
            "prompt": turn.prompt_tokens,
            "completion": turn.completion_tokens,
            "cost": float(turn.cost_usd or 0),
            "run_cost": float(turn.run_cost_usd or 0),
        }
        for turn in run.turns()
    ]
    prompts = [turn["prompt"] for turn in turns]
    return {
        **run.figures(),
        "cap": run.state.settings.limits.max_turns,
        "prompts": prompts,
        "by_turn": turns,
    }


async def runaway_by_turns(lab: Lab) -> Figures:
    """A model that never answers, under turn limits."""
    figures: Figures = {}
    for limit in TURN_LIMITS:
        run = await lab.run("runaway", limits=Limits(max_turns=limit))
        figures[str(limit)] = run.figures()
    most, half = figures["100"], figures["50"]
    figures["cost_100_over_50"] = round(most["cost"] / half["cost"], 1)
    figures["input_100_over_50"] = round(most["in"] / half["in"], 1)
    statuses = {figures[str(limit)]["status"] for limit in TURN_LIMITS}
    figures["status"] = " and ".join(sorted(statuses))
    return figures


async def runaway_by_budget(lab: Lab) -> Figures:
    """The same model under a limit on money, which holds to within one turn."""
    run = await lab.run("runaway", limits=Limits(max_turns=100, max_cost_usd=Decimal(BUDGET)))
    last = float(run.turns()[-1].cost_usd or 0)
    return {BUDGET: {**run.figures(), "over": run.cost - float(BUDGET), "last_turn": last}}


async def error_policies(lab: Lab) -> Figures:
    """What the model is told of a tool's error, and what comes of it."""
    figures: Figures = {}
    for policy in ("fatal", "vague", "told"):
        run = await lab.run("recover", MISSING_FILE, error_policy=policy)
        figures[policy] = run.figures()
        if policy == "told":
            figures["error_text"] = _first_result(run)
    ratio = figures["told"]["cost"] / figures["fatal"]["cost"]
    figures["told_cost_over_fatal_cost"] = round(ratio, 1)
    return figures


def _first_result(run: Carried) -> str:
    return next(str(m["content"]) for m in run.state.messages if m["role"] == "tool")


async def permanent_error(lab: Lab, recovering_cost: float) -> Figures:
    """A model that asks for ever for what it can never have.

    Args:
        lab: Where it runs.
        recovering_cost: US dollars of the run that recovers from its error.
    """
    unknown = await _locked(lab, known=False)
    known = await _locked(lab, known=True)
    return {
        **unknown.figures(),
        "over_recovering_run": round(unknown.cost / recovering_cost, 1),
        "known": {**known.figures(), "reason": known.state.reason},
    }


async def _locked(lab: Lab, *, known: bool) -> Carried:
    tools = locked_tools(known=known)
    return await lab.run("permanent", LOCKED_FILE, tools=tools, limits=Limits(max_turns=12))


async def repeated_read(lab: Lab) -> Figures:
    """What a second read of the same file costs, and what remembering the first one saves.

    The extra is the call that asks again and the prompt that carries its result: without them,
    the answer would have come a turn earlier.
    """
    remembered = await lab.run("repeat", dedupe="reads")
    forgotten = await lab.run("repeat", dedupe="none")
    extra = _extra(remembered.turns())
    return {
        "extra_cost": extra,
        "extra": f"{extra / (remembered.cost - extra):.0%}",
        "dedupe_saves": _saving(remembered, forgotten),
        "remembered": remembered.figures(),
        "forgotten": forgotten.figures(),
    }


def _extra(turns: list[Turn]) -> float:
    return float(PRICES.cost(turns[2].prompt_tokens, turns[1].completion_tokens) or 0)


def _saving(remembered: Carried, forgotten: Carried) -> str:
    runs = forgotten.state.tool_runs - remembered.state.tool_runs
    what = "the second tool run" if runs == 1 else f"{runs} tool runs"
    money = forgotten.cost - remembered.cost
    return f"{what}, {f'${money:.6f}' if money else 'nothing'} of the cost"


async def repeated_delete(lab: Lab) -> Figures:
    """A deletion asked for twice, while a service writes the file anew in between."""
    figures: Figures = {}
    for name, dedupe in (("cache_everything", "all"), ("cache_reads_only", "reads")):
        deleted: list[str] = []
        tools = growing_tools(deleted)
        run = await lab.run(
            "repeat_delete", FREE_SPACE, tools=tools, rules=ALLOW_DELETION, dedupe=dedupe
        )
        figures[name] = {**run.figures(), "deleted": deleted}
    return figures
