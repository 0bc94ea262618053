"""Plots as inline SVG, made here: no script, and the figures beside them as text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from markupsafe import Markup

from harness.events import Turn
from web.text import money, number

WIDTH, HEIGHT = 320, 96
LEFT, RIGHT, TOP, BOTTOM = 4, 4, 8, 16


def _x(index: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / max(count, 1)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / top if top else 0)


def _svg(title: str, label: str, body: Markup) -> Markup:
    return Markup(
        '<svg class="plot" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
        "<title>{title}</title>{body}</svg>"
    ).format(w=WIDTH, h=HEIGHT, title=title, label=label, body=body)


def _axis(count: int) -> Markup:
    base = HEIGHT - BOTTOM
    return Markup(
        '<line class="axis" x1="{l}" y1="{b}" x2="{r}" y2="{b}"/>'
        '<text class="tick" x="{l}" y="{t}">turn 1</text>'
        '<text class="tick end" x="{r}" y="{t}">{last}</text>'
    ).format(
        l=LEFT, r=WIDTH - RIGHT, b=base, t=HEIGHT - 4, last=f"turn {count}" if count > 1 else ""
    )


def tokens_plot(turns: Sequence[Turn]) -> Markup:
    """Prompt tokens per turn as bars; the part that came from the cache is drawn lighter."""
    count = len(turns)
    top = max((turn.prompt_tokens for turn in turns), default=0) or 1
    width = max(min((WIDTH - LEFT - RIGHT) / max(count, 1) - 1.5, 26), 0.8)
    bars = [_axis(count)]
    for index, turn in enumerate(turns):
        middle = _x(index, count)
        fresh = _y(turn.prompt_tokens - turn.cached_tokens, top)
        full = _y(turn.prompt_tokens, top)
        base = HEIGHT - BOTTOM
        for kind, upper, lower in (("bar", fresh, base), ("bar cached", full, fresh)):
            if lower - upper > 0.05:
                bars.append(
                    Markup('<rect class="{k}" x="{x}" y="{y}" width="{w}" height="{h}"/>').format(
                        k=kind,
                        x=f"{middle - width / 2:.2f}",
                        y=f"{upper:.2f}",
                        w=f"{width:.2f}",
                        h=f"{lower - upper:.2f}",
                    )
                )
    label = "Prompt tokens per turn. " + (
        f"First {number(turns[0].prompt_tokens)}, last {number(turns[-1].prompt_tokens)}, "
        f"most {number(top)}."
        if turns
        else "No turn yet."
    )
    return _svg("Prompt tokens per turn", label, Markup("").join(bars))


def cost_plot(turns: Sequence[Turn], limit: Decimal | None) -> Markup | None:
    """Cost so far after each turn, with the limit as a broken line; `None` when unknown."""
    costs = [float(turn.run_cost_usd) for turn in turns if turn.run_cost_usd is not None]
    if not costs or len(costs) != len(turns):
        return None
    ceiling = float(limit) if limit is not None else 0.0
    top = max([*costs, ceiling]) * 1.04 or 1.0
    points = [(_x(i, len(costs)), _y(cost, top)) for i, cost in enumerate(costs)]
    parts = [_axis(len(costs))]
    if limit is not None:
        parts.append(
            Markup('<line class="limit" x1="{l}" y1="{y}" x2="{r}" y2="{y}"/>').format(
                l=LEFT, r=WIDTH - RIGHT, y=f"{_y(ceiling, top):.2f}"
            )
        )
    parts.append(
        Markup('<polyline class="line" points="{p}"/>').format(
            p=" ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        )
    )
    x, y = points[-1]
    parts.append(
        Markup('<circle class="dot" cx="{x}" cy="{y}" r="3"/>').format(x=f"{x:.2f}", y=f"{y:.2f}")
    )
    label = f"Cost so far: {money(turns[-1].run_cost_usd)}" + (
        f" of a limit of {money(limit)}." if limit is not None else ", no limit."
    )
    return _svg("Cost so far", label, Markup("").join(parts))


def bar(value: float, top: float) -> Markup:
    """One bar of a table's plot; the figure itself stands beside it."""
    share = 100 * value / top if top else 0
    return Markup(
        '<svg class="cellbar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar" x="0" y="0" width="{w}" height="6"/></svg>'
    ).format(w=f"{max(share, 0.5 if value else 0):.1f}")
