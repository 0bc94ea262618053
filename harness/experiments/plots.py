"""Plots as inline SVG: every figure is also written beside its mark.

Colours are classes that the report's style sheet fills in, for light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 720
LABEL = 170
VALUE = 230
ROW = 26
TOP = 6
AXIS = 22
PLOT = WIDTH - LABEL - VALUE


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of `intervals`: a value with its bounds, each 0 to 1."""

    label: str
    value: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of `bars`: parts that stand one after the other, each with its class and name."""

    label: str
    parts: tuple[tuple[str, str, float], ...]
    text: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A row of `strips`: every value a dot, `middle` a line."""

    label: str
    values: tuple[float, ...]
    middle: float | None
    text: str


def intervals(rows: Sequence[Interval], title: str) -> Markup:
    """Shares with their confidence intervals on a scale of 0 to 100%."""
    marks: list[str] = []
    for number, row in enumerate(rows):
        y = _middle(number)
        marks += [
            _line("whisker", _x(row.low), y, _x(row.high), y),
            _line("whisker", _x(row.low), y - 4, _x(row.low), y + 4),
            _line("whisker", _x(row.high), y - 4, _x(row.high), y + 4),
            f'<circle class="dot" cx="{_x(row.value):.1f}" cy="{y}" r="5"/>',
            *_words(number, row.label, row.text),
        ]
    ticks = [(share / 100, f"{share}%") for share in (0, 25, 50, 75, 100)]
    return _figure(title, len(rows), marks, ticks)


def bars(rows: Sequence[Bar], title: str, unit: str = "") -> Markup:
    """Sums in parts, on a scale from 0 to the largest sum."""
    largest = max((sum(part[2] for part in row.parts) for row in rows), default=0) or 1
    marks: list[str] = []
    for number, row in enumerate(rows):
        start = 0.0
        for css, name, value in row.parts:
            x, width = _x(start / largest), value / largest * PLOT
            marks.append(
                f'<rect class="{escape(css)}" x="{x:.1f}" y="{_middle(number) - 8}" '
                f'width="{width:.1f}" height="16"><title>{escape(name)}: {value:g}</title></rect>'
            )
            start += value
        marks += _words(number, row.label, row.text)
    return _figure(title, len(rows), marks, _ticks(largest, unit))


def strips(rows: Sequence[Strip], title: str, unit: str = "") -> Markup:
    """Single values as dots, with the middle one marked."""
    largest = max((value for row in rows for value in row.values), default=0) or 1
    marks: list[str] = []
    for number, row in enumerate(rows):
        y = _middle(number)
        for place, value in enumerate(row.values):
            lift = (place % 5 - 2) * 3  # equal values would hide one another
            marks.append(
                f'<circle class="point" cx="{_x(value / largest):.1f}" cy="{y + lift}" r="3"/>'
            )
        if row.middle is not None:
            x = _x(row.middle / largest)
            marks.append(_line("middle", x, y - 10, x, y + 10))
        marks += _words(number, row.label, row.text)
    return _figure(title, len(rows), marks, _ticks(largest, unit))


def _ticks(largest: float, unit: str) -> list[tuple[float, str]]:
    return [(part, f"{part * largest:.3g}{unit}") for part in (0.0, 0.5, 1.0)]


def _x(share: float) -> float:
    return LABEL + share * PLOT


def _middle(number: int) -> int:
    return TOP + number * ROW + ROW // 2


def _line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}"/>'


def _words(number: int, label: str, text: str) -> list[str]:
    y = _middle(number) + 4
    return [
        f'<text x="{LABEL - 10}" y="{y}" text-anchor="end">{escape(label)}</text>',
        f'<text x="{LABEL + PLOT + 12}" y="{y}">{escape(text)}</text>',
    ]


def _figure(
    title: str, rows: int, marks: Sequence[str], ticks: Sequence[tuple[float, str]]
) -> Markup:
    bottom = TOP + rows * ROW
    grid = [_line("grid", _x(place), TOP, _x(place), bottom) for place, _ in ticks]
    names = [
        f'<text class="tick" x="{_x(place):.1f}" y="{bottom + 15}" text-anchor="middle">'
        f"{escape(name)}</text>"
        for place, name in ticks
    ]
    return Markup(  # noqa: S704  # every text in it went through `escape`
        f'<svg viewBox="0 0 {WIDTH} {bottom + AXIS}" role="img" aria-label="{escape(title)}">'
        + "".join([*grid, *marks, *names])
        + "</svg>"
    )
