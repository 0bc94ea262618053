"""What the page of one run shows, beside its steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from markupsafe import Markup

from harness.state import RESUMABLE, Limits, RunState
from harness.store import RunSummary
from web import plots
from web.faces import Face, face_of
from web.steps import Ask, Now, Steps
from web.text import duration, plain, plural


@dataclass(slots=True)
class Child:
    """A subagent's run in a line."""

    run_id: str
    task: str
    face: Face


@dataclass(slots=True)
class RunPage:
    """One run as shown: what is fixed of it, its steps so far, who carries it."""

    run_id: str
    task: str
    model: str
    base_url: str
    workspace: str
    created_at: str
    parent_run_id: str | None
    limits: Limits
    steps: Steps
    carried: bool
    children: list[Child]
    unsupported: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: RunState, steps: Steps, carried: bool, children: list[Child]) -> RunPage:
        """Put together from what the store holds."""
        settings = state.settings
        return cls(
            run_id=state.run_id,
            task=state.task,
            model=settings.model,
            base_url=settings.base_url,
            workspace=settings.workspace,
            created_at=state.created_at,
            parent_run_id=state.parent_run_id,
            limits=settings.limits,
            steps=steps,
            carried=carried,
            children=children,
            unsupported=state.unsupported,
        )

    @property
    def kind(self) -> str | None:
        """The kind of the interruption, if any."""
        return self.steps.interruption.kind if self.steps.interruption else None

    @property
    def face(self) -> Face:
        return face_of(self.steps.status, self.kind, self.carried)

    @property
    def ask(self) -> Ask | None:
        return None if self.carried else self.steps.ask

    @property
    def decided(self) -> bool:
        """A decision was made and nobody has carried the run on yet."""
        return not self.carried and self.kind in ("approval", "in_doubt") and self.ask is None

    @property
    def now(self) -> Now | None:
        return self.steps.now if self.carried else None

    @property
    def now_ms(self) -> int:
        """Milliseconds since what is going on began."""
        return since(self.now.since) if self.now else 0

    @property
    def reason(self) -> str:
        if self.steps.status == "running" and not self.carried:
            return "The program that carried this run has ended. Nothing is lost: continue it."
        if self.decided:
            return "It has been decided; nobody carries the run on yet. Continue it."
        return self.steps.reason

    @property
    def stop_line(self) -> str:
        """For a stopped run: what stopped, how quickly, and what did not."""
        return stop_line(self.steps)

    @property
    def answer(self) -> str:
        return self.steps.answer if self.steps.status != "running" else ""

    @property
    def from_evidence(self) -> bool:
        return bool(self.steps.turns) and self.steps.turns[-1].purpose == "evidence"

    @property
    def can_stop(self) -> bool:
        return self.steps.status == "running" or self.kind in ("approval", "in_doubt")

    @property
    def can_continue(self) -> bool:
        """Whether it can go on just as it is."""
        return self.decided or (self.steps.status == "running" and not self.carried)

    @property
    def can_resume(self) -> bool:
        return self.steps.status in RESUMABLE and not self.can_stop

    @property
    def max_turns(self) -> int | None:
        raised = self.steps.raised.get("max_turns", self.limits.max_turns)
        return None if raised is None else int(raised)

    @property
    def max_cost(self) -> Decimal | None:
        raised = self.steps.raised.get("max_cost_usd", self.limits.max_cost_usd)
        return None if raised is None else Decimal(str(raised))

    @property
    def suggest_turns(self) -> int | None:
        """A turn limit to resume with: more where that is what ended the run."""
        limit = self.max_turns
        if limit is not None and self.steps.totals.turns >= limit:
            return max(limit * 2, self.steps.totals.turns + 10)
        return limit

    @property
    def suggest_cost(self) -> str | None:
        limit, spent = self.max_cost, self.steps.totals.cost_usd
        if limit is None:
            return None
        if spent is not None and spent >= limit:
            limit = max(limit * 2, spent * 2)
        return f"{limit.normalize():f}"

    @property
    def title(self) -> str:
        """For the browser's tab: what matters first."""
        if self.ask is not None and self.ask.kind == "approval":
            return plain(f"(!) Approve {self.ask.tool_name}? · {self.task[:60]} · Uitweg")
        return plain(f"{self.face.word}: {self.task[:80]} · Uitweg")

    @property
    def tokens_plot(self) -> Markup:
        return plots.tokens_plot(self.steps.turns)

    @property
    def cost_plot(self) -> Markup | None:
        return plots.cost_plot(self.steps.turns, self.max_cost)


def child_of(summary: RunSummary) -> Child:
    """A subagent's run as its parent's page shows it."""
    face = face_of(summary.status, summary.interruption_kind)
    return Child(summary.run_id, summary.task, face)


def stop_line(steps: Steps) -> str:
    """What stopped after how many milliseconds, and whether a tool was abandoned."""
    event = steps.stopped
    if event is None or event.stop_ms is None:
        return ""
    stopped = [
        call.tool_name
        for call in steps.calls
        if call.turn == steps.totals.turns and call.result and call.result.outcome == "cancelled"
    ]
    took = f"{duration(event.stop_ms)} after Stop was pressed"
    line = f"{', '.join(stopped) or 'The run'} stopped {took}."
    if not event.abandoned:
        return line + " Nothing was abandoned."
    count = len(event.abandoned)
    return line + (
        f" {plural(count, 'tool call')} did not stop and {'was' if count == 1 else 'were'}"
        " abandoned: what comes of it is not used."
    )


def since(time: str) -> int:
    """Milliseconds from `time` (ISO 8601) to now; never below 0."""
    try:
        begun = datetime.fromisoformat(time)
    except ValueError:
        return 0
    return max(int((datetime.now(UTC) - begun).total_seconds() * 1000), 0)
