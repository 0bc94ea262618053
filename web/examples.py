"""Tasks that a newcomer can start with one click, and ready reasons for a refusal."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """`server` and `model` name a choice of the form; an empty model takes the first."""

    key: str
    label: str
    task: str
    server: str
    model: str
    max_turns: int
    shows: str


EXAMPLES = (
    Example(
        "real", "Read my notes (real model)", "Read notes.txt and tell me what it says.",
        "real", "", 20, "The model on this machine's CPU reads a file and answers.",
    ),
    Example(
        "plan", "Find a timeout", "Which file mentions a timeout?",
        "scripted", "plan", 20, "Three turns, two tool runs, an answer.",
    ),
    Example(
        "approve", "Approve a deletion", "Free some space: delete the access log.",
        "scripted", "destructive", 20, "A tool that deletes waits for your approval.",
    ),
    Example(
        "scan", "Stop a long scan", "How many files of the archive mention a timeout?",
        "scripted", "scan", 20, "A tool that runs for three seconds: press Stop.",
    ),
    Example(
        "limit", "Hit a limit", "Keep reading until you find it.",
        "scripted", "runaway", 8, "A model that never ends, and the limit that ends it.",
    ),
    Example(
        "research", "Ask a subagent", "Find out which file mentions a timeout.",
        "scripted", "research", 20, "A run that starts another run.",
    ),
)  # fmt: skip

READY_REASONS = (
    "Not this file.",
    "Read it first and tell me what is in it.",
    "I want to keep it.",
    "Do it without deleting anything.",
)
