"""What was tried, how often, and how often it held."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

MOST_SHOWN = 20
"""Failures that are kept in words; all are counted."""


@dataclass(slots=True)
class Row:
    """One kind of attack."""

    what: str
    tried: int = 0
    held: int = 0
    note: str = ""


@dataclass(slots=True)
class Tally:
    """Counts of one suite."""

    rows: dict[str, Row] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def tried(self, what: str, problem: str | None = None) -> None:
        """One try of the kind `what`; `problem` says why it did not hold, if it did not."""
        row = self._row(what)
        row.tried += 1
        row.held += problem is None
        if problem is not None and len(self.problems) < MOST_SHOWN:
            self.problems.append(f"{what}: {problem}")

    def note(self, what: str, text: str) -> None:
        """Say more about a kind: what else was measured, or why it could not be tried here."""
        self._row(what).note = text

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        rows = [asdict(row) for row in self.rows.values()]
        return {"rows": rows, "problems": self.problems}

    def _row(self, what: str) -> Row:
        return self.rows.setdefault(what, Row(what))
