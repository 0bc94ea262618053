"""Published beside measured, figure by figure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

NEEDS_A_MODEL = ("six_tasks_on_the_real_model",)
ABOUT = ("what", "counting")
"""Entries that say how the figures were made."""

TIMES = frozenset(
    {
        ("cancel_scan_archive", "whole_scan_ms"),
        ("cancel_scan_archive", "stop_pressed_at_ms"),
        ("cancel_scan_archive", "stopped_after_ms"),
        ("harness_overhead_ms_per_three_turn_run",),
    }
)
"""Figures that the machine decides."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `measured` is `None` where nothing was measured."""

    path: Path
    published: Any
    measured: Any

    @property
    def exact(self) -> bool:
        """Whether tokens decide it, so that it must agree."""
        return self.path not in TIMES

    @property
    def agrees(self) -> bool:
        """Whether it is what was published; times always agree."""
        return not self.exact or same(self.published, self.measured)

    def as_json(self) -> dict[str, Any]:
        """For `uitweg figures --json`."""
        return {
            "figure": list(self.path),
            "published": self.published,
            "measured": self.measured,
            "exact": self.exact,
            "agrees": self.agrees,
        }


def same(published: Any, measured: Any) -> bool:
    """Equal; for money and ratios to within the last bit of a float."""
    numbers = (int, float)
    if isinstance(published, numbers) and isinstance(measured, numbers):
        return math.isclose(published, measured, rel_tol=1e-12, abs_tol=1e-12)
    return bool(published == measured)


def read_published() -> dict[str, Any]:
    """Everything that was published."""
    text = resources.files("harness.figures").joinpath("published.json").read_text("utf-8")
    published: dict[str, Any] = json.loads(text)
    return published


def compare(measured: Mapping[str, Any]) -> list[Figure]:
    """Every published figure that needs no real model, beside the measured one of its path."""
    published = read_published()
    entries = {k: v for k, v in published.items() if k not in (*NEEDS_A_MODEL, *ABOUT)}
    return [
        Figure(path, value, _at(measured, path))
        for path, value in _leaves(entries)
        if path[-1] != "note"
    ]


def _leaves(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key), item


def _at(value: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
