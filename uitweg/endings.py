"""What an ending means on the command line: its exit code, what to do next, its closing object.

Exit codes of `run`, `resume`, `approve`, `reject` and `start --task`:

    0    completed
    1    failed, or the model could not be reached
    2    wrong usage
    3    stopped at the turn limit
    4    stopped at the limit on money, tokens or time
    5    waits for a person: an approval, or a write in doubt
    6    stopped by another stop condition
    130  cancelled
"""

from __future__ import annotations

import shlex
from typing import Any

from harness.state import RESUMABLE, RunState

OF_STATUS = {"completed": 0, "failed": 1, "max_turns_exceeded": 3, "budget_exceeded": 4}
OF_INTERRUPTION = {"approval": 5, "in_doubt": 5, "condition": 6, "cancelled": 130, "no_reply": 1}


def exit_code(state: RunState) -> int:
    """The exit code that tells the run's ending."""
    if state.status in OF_STATUS:
        return OF_STATUS[state.status]
    kind = state.interruption.kind if state.interruption else ""
    return OF_INTERRUPTION.get(kind, 1)


def next_steps(state: RunState) -> list[tuple[str, str]]:
    """What a person can do now: what for, and the command."""
    run_id = shlex.quote(state.run_id)
    kind = state.interruption.kind if state.interruption else ""
    if state.status == "max_turns_exceeded":
        limit = state.settings.limits.max_turns or state.turns
        return [("go on", f"uitweg resume {run_id} --max-turns {limit * 2}")]
    if state.status == "budget_exceeded":
        return [("go on", f"uitweg resume {run_id} {_higher_budget(state)}")]
    if kind == "approval":
        return [
            ("let it run", f"uitweg approve {run_id}"),
            ("refuse it", f"uitweg reject {run_id} --reason TEXT"),
        ]
    if kind == "in_doubt":
        return [
            ("it took effect", f"uitweg approve {run_id} --happened"),
            ("run it again", f"uitweg approve {run_id} --again"),
            ("leave it", f"uitweg reject {run_id} --reason TEXT"),
        ]
    if state.status in RESUMABLE:
        return [("go on", f"uitweg resume {run_id}")]
    return []


def _higher_budget(state: RunState) -> str:
    limits = state.settings.limits
    resource = getattr(state.interruption, "resource", "cost_usd")
    if resource == "total_tokens":
        return f"--max-tokens {(limits.max_total_tokens or 0) * 2}"
    if resource == "seconds":
        return f"--max-seconds {(limits.max_seconds or 0) * 2:g}"
    return f"--max-cost {(limits.max_cost_usd or 0) * 2:f}"


def closing(state: RunState) -> dict[str, Any]:
    """The one object that `--json` prints. Money is a number in US dollars, `null` if unknown."""
    usage = state.usage
    return {
        "run_id": state.run_id,
        "status": state.status,
        "reason": state.reason,
        "interruption": (
            state.interruption.model_dump(mode="json") if state.interruption else None
        ),
        "turns": state.turns,
        "tool_runs": state.tool_runs,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
        "seconds": round(state.seconds, 3),
        "answer": state.answer,
        "answered_from_evidence": state.answered_from_evidence,
        "model": state.settings.model,
        "workspace": state.settings.workspace,
    }
