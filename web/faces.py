"""How a run's state looks: an icon, a word and a tone. Never a colour alone."""

from __future__ import annotations

from typing import NamedTuple


class Face(NamedTuple):
    """`tone` is a CSS class; `icon` one of those in `templates/parts.html`."""

    icon: str
    word: str
    tone: str


ENDING_WORDS: dict[str, str] = {
    "running": "Running",
    "completed": "Completed",
    "failed": "Failed",
    "max_turns_exceeded": "Turn limit",
    "budget_exceeded": "Budget limit",
    "interrupted": "Interrupted",
}
_TONES: dict[str, str] = {
    "running": "info",
    "completed": "ok",
    "failed": "err",
    "max_turns_exceeded": "warn",
    "budget_exceeded": "warn",
    "interrupted": "neutral",
}
_KINDS = {
    "approval": Face("approval", "Waits for approval", "warn"),
    "in_doubt": Face("in_doubt", "In doubt", "warn"),
    "cancelled": Face("cancelled", "Stopped", "neutral"),
    "no_reply": Face("failed", "No reply", "err"),
}
LEFT = Face("left", "Left behind", "warn")
"""A run that nobody carries although it has no ending."""


def face_of(status: str, kind: str | None, carried: bool = True) -> Face:
    """The face of a run; `kind` is its interruption's, `carried` whether somebody carries it."""
    if status == "running" and not carried:
        return LEFT
    if status == "interrupted" and kind in _KINDS:
        return _KINDS[kind]
    return Face(status, ENDING_WORDS.get(status, status), _TONES.get(status, "neutral"))


OUTCOMES: dict[str, Face] = {
    "ok": Face("completed", "done", "ok"),
    "error": Face("failed", "error", "err"),
    "invalid": Face("failed", "wrong arguments, not run", "err"),
    "reused": Face("same", "result used again", "neutral"),
    "rejected": Face("cancelled", "rejected, not run", "warn"),
    "unknown": Face("in_doubt", "outcome unknown", "warn"),
    "cancelled": Face("cancelled", "stopped", "neutral"),
    "abandoned": Face("left", "abandoned, did not stop", "err"),
    "skipped": Face("cancelled", "not run", "neutral"),
}
STATES: dict[str, Face] = {
    "owed": Face("interrupted", "not run yet", "neutral"),
    "asking": Face("approval", "waits for approval", "warn"),
    "running": Face("running", "running", "info"),
    "doubted": Face("in_doubt", "begun, its end is not known", "warn"),
}
DECISIONS: dict[str, str] = {
    "approve": "approved",
    "edit": "approved with other arguments",
    "reject": "rejected",
    "happened": "said that it happened",
    "run_again": "said to run it",
    "abandon": "gave it up",
}
