"""The one gate on the only path to a tool: does this call run?

Looked at in this order: a call that had begun before a crash, then a decision
for it, then the standing rules, then the tool's own default. Whatever is not
clearly allowed is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.approval import words
from harness.approval.protocol import Policy
from harness.state import CallRecord, Decision, Outcome, call_digest

if TYPE_CHECKING:
    from harness.tool import Tool
    from harness.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Run:
    """It runs, with these arguments."""

    args: dict[str, Any]
    fingerprint: str
    edited: bool = False
    by_rule: str | None = None
    """The standing rule that let a call through which would else be asked about."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to say. `digest` is of what would run."""

    args: dict[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """It had begun before a crash and must not simply begin again."""

    args: dict[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """It does not run, and this is its tool message."""

    content: str
    outcome: Outcome


Verdict: TypeAlias = Run | Ask | Doubt | Refuse


def judge(
    run_id: str,
    record: CallRecord,
    tool: Tool,
    args: dict[str, Any],
    decision: Decision | None,
    policy: Policy,
    workspace: Workspace,
) -> Verdict:
    """Whether the call runs now. `args` are the model's own, validated."""
    run, digest = _would_run(run_id, record, tool, args, workspace)
    if decision is not None and decision.action == "edit":
        changed = _would_run(run_id, record, tool, dict(decision.args or {}), workspace)
        if changed[1] == decision.digest:
            run, digest = replace(changed[0], edited=True), changed[1]
    # A decision for anything else than what would run now is no decision.
    if decision is not None and decision.digest != digest and decision.action != "reject":
        decision = None
    if record.state == "started":
        # It has been through this gate. Only a write must not run twice.
        if tool.effect == "read" or tool.idempotent:
            return run
        return _after_crash(decision, run, digest)
    if decision is not None:
        return _decided(decision, run, digest)
    return _by_policy(tool, policy, run, digest)


def _would_run(
    run_id: str, record: CallRecord, tool: Tool, args: dict[str, Any], workspace: Workspace
) -> tuple[Run, str]:
    fingerprint = tool.fingerprint(args, workspace)
    return Run(args, fingerprint), call_digest(run_id, record.call_id, tool.name, args, fingerprint)


def _after_crash(decision: Decision | None, run: Run, digest: str) -> Verdict:
    match decision.action if decision else None:
        case "happened":
            note = decision.reason if decision else None
            return Refuse(words.happened(note), "ok")
        case "abandon":
            return Refuse(words.UNKNOWN, "unknown")
        case "run_again":
            return run
        case _:
            return Doubt(run.args, digest)


def _decided(decision: Decision, run: Run, digest: str) -> Verdict:
    if decision.action in ("approve", "edit"):
        return run
    if decision.action == "reject":
        return Refuse(words.declined(decision.reason or "no reason given"), "rejected")
    return Ask(run.args, digest)


def _by_policy(tool: Tool, policy: Policy, run: Run, digest: str) -> Verdict:
    ruling = policy.rule_on(tool.name, run.args)
    if ruling is None:
        return Ask(run.args, digest) if tool.needs_approval else run
    if ruling.action == "deny":
        return Refuse(words.declined_by_rule(ruling.reason), "rejected")
    if ruling.action == "ask":
        return Ask(run.args, digest)
    return Run(run.args, run.fingerprint, by_rule=ruling.rule if tool.needs_approval else None)
