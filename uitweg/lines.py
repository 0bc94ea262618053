"""One event of a run as lines of text, each with a style. Nothing is told by colour alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

from harness.events import (
    ApprovalDecided,
    ApprovalRequired,
    Base,
    Guidance,
    Retry,
    RunResumed,
    RunStarted,
    RunStopped,
    ToolProgress,
    ToolResult,
    ToolStart,
    Turn,
)
from uitweg.text import call, count, duration, money


class Line(NamedTuple):
    """Text that may have several lines, and how it looks where colours are."""

    text: str
    style: str = ""


Cut = Callable[[str], str]
"""Shortens the texts of models and tools, or does not."""


@singledispatch
def lines_of(event: Base, _cut: Cut) -> list[Line]:
    """The lines for `event`; texts of models and tools go through `cut`."""
    return [Line(type(event).__name__)]


@lines_of.register
def _(event: RunStarted, _cut: Cut) -> list[Line]:
    return [Line(f"run {event.run_id} · {event.model} · {event.workspace}", "bold")]


@lines_of.register
def _(event: RunResumed, _cut: Cut) -> list[Line]:
    changed = ", ".join(f"{name} {value}" for name, value in event.changed.items())
    return [Line(f"resumed after {event.from_status}{changed and f' with {changed}'}", "bold")]


@lines_of.register
def _(event: Turn, cut: Cut) -> list[Line]:
    cached = f" ({event.cached_tokens:,} cached)" if event.cached_tokens else ""
    aside = " in a clean window" if event.purpose == "evidence" else ""
    ended = {"length": " · cut off at its length limit", "cancelled": " · broken off"}
    figures = (
        f"turn {event.turn}{aside} · {event.prompt_tokens:,}{cached} in, "
        f"{event.completion_tokens:,} out · {money(event.run_cost_usd)} so far · "
        f"{duration(event.ms)}{ended.get(event.finish_reason, '')}"
    )
    content = event.content.strip()
    words = [Line(_indented(cut(content), 2))] if content else []
    return [Line(figures, "bold"), *words]


@lines_of.register
def _(event: Retry, _cut: Cut) -> list[Line]:
    again = f"Trying again in {event.wait_seconds:.1f} s."
    return [Line(f"  try {event.attempt}: {event.error} {again}", "yellow")]


@lines_of.register
def _(event: ToolStart, _cut: Cut) -> list[Line]:
    return [Line(f"  {call(event.tool_name, event.args)}", "cyan")]


@lines_of.register
def _(event: ToolProgress, _cut: Cut) -> list[Line]:
    return [Line(f"    {event.message}", "dim")]


@lines_of.register
def _(event: ToolResult, cut: Cut) -> list[Line]:
    took = f" · {duration(event.ms)}" if event.ms else ""
    if event.reused_from:
        took += f" · the result of {event.reused_from} again"
    word = "" if event.outcome == "ok" else f"{event.outcome}: "
    style = "" if event.outcome in ("ok", "reused") else "red"
    body = _indented(cut(event.content).rstrip("\n"), 4).lstrip()
    return [Line(f"  → {word}{body}{took}", style)]


@lines_of.register
def _(event: ApprovalRequired, _cut: Cut) -> list[Line]:
    asked = f"  needs approval: {call(event.tool_name, event.args)}"
    return [Line(asked, "bold yellow"), Line(_indented(event.effect, 4), "yellow")]


@lines_of.register
def _(event: ApprovalDecided, _cut: Cut) -> list[Line]:
    why = f" ({event.reason})" if event.reason else ""
    asked = call(event.tool_name, event.args)
    return [Line(f"  {event.action} by {event.decided_by}{why}: {asked}", "bold")]


@lines_of.register
def _(event: Guidance, _cut: Cut) -> list[Line]:
    return [Line(f"  {event.policy}: {event.detail}", "magenta")]


@lines_of.register
def _(event: RunStopped, _cut: Cut) -> list[Line]:
    figures = [
        count(event.turns, "turn"),
        count(event.tool_runs, "tool run"),
        f"{event.prompt_tokens:,} in, {event.completion_tokens:,} out",
        money(event.cost_usd),
    ]
    if event.stop_ms is not None:
        figures.append(f"stopped after {duration(event.stop_ms)}")
    if event.abandoned:
        figures.append(f"{count(len(event.abandoned), 'tool')} did not stop, left behind")
    style = "bold green" if event.status == "completed" else "bold red"
    return [Line(f"{event.status}: {event.reason} · " + " · ".join(figures), style)]


def _indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line for line in text.split("\n"))
