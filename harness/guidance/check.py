"""Check: an answer that claims what no tool result holds is marked as unsupported.

Three things are looked at, all by plain search: every file, number, name and
quote in the answer must stand in some result; what the question asks about must
stand in some result; and what the answer adds must stand near something that
the question asks about. A mark changes nothing in the answer: the record, the
terminal and the page show it beside it.
"""

from __future__ import annotations

import re

from harness.guidance.notes import Notes, as_records, gather
from harness.guidance.protocol import Answer, Guided, Policy
from harness.guidance.search import COMMON, holds, key_words, subjects, words

MOST_MARKS = 8

_NOT_THERE = re.compile(
    r"\b(?:do(?:es)?|did|is|are|was|were|could|can)(?: not|n['\u2019]t)\b|\bcannot\b|\bunable to\b"
    r"|\bno (?:\w+ ){0,3}(?:information|mention|record|file|files)\b|\bnone of\b|\bnothing\b",
    re.IGNORECASE,
)
"""An answer that says that something is not there claims nothing that could be found."""

_QUOTE = re.compile(r"[\"\u201c`]([^\"\u201d`\n]{2,200})[\"\u201d`]")
_FILE = re.compile(r"(?<![\w.])[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,:/-]\d+)*(?![\w])")


class CheckAnswer(Policy):
    """See the module's docstring."""

    name = "check"

    async def on_answer(self, run: Guided, answer: Answer) -> Answer | None:
        """The same answer, marked where something in it is not supported."""
        notes = gather(run.state)
        marks = unsupported(run.state.task, answer.text, notes)
        if not marks:
            return None
        run.note(self.name, "Not supported by any result: " + "; ".join(marks) + ".")
        return answer._replace(unsupported=tuple(marks))


def unsupported(question: str, answer: str, notes: Notes) -> list[str]:
    """What in the answer, or in what it takes for granted, no result holds; at most a few."""
    if _NOT_THERE.search(answer):
        return []
    if notes.empty:
        return ["no tool was asked"]
    text = notes.text()
    counted = _counted(answer, notes)
    missing = [claim for claim in claims(answer) if claim not in counted and claim not in text]
    missing = [claim for claim in missing if not holds(text, claim)]
    missing += [word for word in subjects(question) if not holds(text, word)]
    if not missing:
        missing = _far(question, answer, notes, counted)
    return list(dict.fromkeys(missing))[:MOST_MARKS]


def claims(answer: str) -> list[str]:
    """The files, numbers, quotes and names in an answer."""
    found = _QUOTE.findall(answer) + _FILE.findall(answer)
    rest = _FILE.sub(" ", answer)
    return [*found, *_NUMBER.findall(rest), *_names(rest)]


def _names(text: str) -> list[str]:
    """Words with a capital letter that do not begin a sentence."""
    found = []
    for sentence in re.split(r"(?<=[.!?:])\s+|\n", text):
        found += [w for w in words(sentence)[1:] if w[0].isupper() and w.lower() not in COMMON]
    return found


def _counted(answer: str, notes: Notes) -> set[str]:
    """Numbers that can be counted in the results and need not stand there.

    Each only where the answer speaks of what is counted: by chance a made-up
    price would be some file's size.
    """
    low = answer.lower()
    found: set[int] = set()
    if "file" in low and notes.listing is not None:
        found.add(len(notes.listing))
    if "byte" in low:
        found |= {len(text.encode()) for text in notes.files.values()}
    if "line" in low:
        found |= {len(text.splitlines()) for text in notes.files.values()}
    if any(word in low for word in ("record", "row", "entr")):
        tables = [as_records(text) for text in notes.files.values()]
        found |= {len(table[0]) for table in tables if table is not None}
    return {str(number) for number in found}


def _far(question: str, answer: str, notes: Notes, counted: set[str]) -> list[str]:
    """What the answer adds to the question, where nothing of the question stands near it."""
    asked = key_words(question, notes.files)
    own = {word.lower() for word in words(question)}
    added = [c for c in claims(answer) if c.lower() not in own and c not in counted]
    added = [c for c in added if c not in (notes.listing or ()) and c not in notes.files]
    if not asked or not added or notes.others:
        return []
    near = [c for c in added if _near(c, asked, notes)]
    return [] if near else added


def _near(claim: str, asked: list[str], notes: Notes) -> bool:
    """Whether a line with the claim, one beside it, its heading or its file's name is about it."""
    for name, text in notes.files.items():
        lines = text.splitlines()
        for n, line in enumerate(lines):
            if holds(line, claim):
                around = " ".join([name, lines[0], *lines[max(0, n - 1) : n + 2]])
                if any(holds(around, word) for word in asked):
                    return True
    return False
