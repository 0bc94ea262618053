"""Check: an answer that claims what no tool result holds is marked as unsupported.

All by plain search, in this order, until one finds something:

1. every file, number, name and quote in the answer must stand in some result;
2. what the question takes for granted must stand in some result ("the director");
3. the answer must add something to the question;
4. what it adds must stand near something that the question asks about.

What the question asks for by name ("which river") must stand in some result, too,
unless 4 finds what the answer adds beside two other words of the question: a
temperature need not be called one.

A mark changes nothing in the answer: the record, the terminal and the page show
it beside it.
"""

from __future__ import annotations

import re

from harness.guidance.notes import Notes, as_records, gather
from harness.guidance.protocol import Answer, Guided, Policy
from harness.guidance.search import COMMON, holds, key_words, sentences, stem, subjects, words

MOST_MARKS = 8

_NOT_THERE = re.compile(
    r"\b(?:do(?:es)?|did|is|are|was|were|could|can)(?: not|n['\u2019]t)\b|\bcannot\b|\bunable to\b"
    r"|\bno (?:\w+ ){0,3}(?:information|mention|record|file|files)\b|\bnone of\b|\bnothing\b",
    re.IGNORECASE,
)
"""An answer that says that something is not there claims nothing that could be found."""

_QUOTE = re.compile(r"[\"\u201c`]([^\"\u201d`\n]{2,200})[\"\u201d`]")
_FILE = re.compile(r"(?<![\w.])[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_WANTED = re.compile(
    r"\b(?:which|what|how (?:much|many))\s+([^\W_][\w.:/@-]*)(?!\s+of\b)", re.IGNORECASE
)
_YES_NO = re.compile(r"\s*(?:is|are|was|were|do|does|did|has|have|had|can)\b", re.IGNORECASE)
_ENOUGH = 2
"""Words of the question beside what the answer adds: then other wording is believed."""

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
    counted = _counted(question, notes)
    marks = [c for c in claims(answer) if c not in counted and c not in text and not holds(text, c)]
    marks += [word for word in subjects(question) if not holds(text, word)]
    if not marks:
        marks = _unrelated(question, answer, notes, counted)
    return list(dict.fromkeys(marks))[:MOST_MARKS]


def claims(answer: str) -> list[str]:
    """The files, numbers, quotes and names in an answer."""
    found = _QUOTE.findall(answer) + _FILE.findall(answer)
    rest = _FILE.sub(" ", answer)
    return [*found, *_NUMBER.findall(rest), *_names(rest)]


def _names(text: str) -> list[str]:
    """Words with a capital letter that do not begin a sentence."""
    found = []
    for sentence in sentences(text):
        found += [w for w in words(sentence)[1:] if w[0].isupper() and w.lower() not in COMMON]
    return found


def _counted(question: str, notes: Notes) -> set[str]:
    """Numbers that can be counted in the results and need not stand there.

    Each only where the question asks for what is counted: by chance a made-up
    price would be some file's size.
    """
    low = question.lower()
    found: set[int] = set()
    if "file" in low and notes.listing is not None:
        found.add(len(notes.listing))
    if any(word in low for word in ("byte", "size", "large", "small", "big")):
        found |= {len(text.encode()) for text in notes.files.values()}
    if "line" in low or "long" in low:
        found |= {len(text.splitlines()) for text in notes.files.values()}
    if "how many" in low:
        tables = [as_records(text) for text in notes.files.values()]
        found |= {len(table[0]) for table in tables if table is not None}
    return {str(number) for number in found}


def _unrelated(question: str, answer: str, notes: Notes, counted: set[str]) -> list[str]:
    """What the answer adds to the question, where nothing of the question stands near it."""
    asked = key_words(question, notes.files)
    counts = any(number in counted for number in _NUMBER.findall(answer))
    if not asked or counts or notes.others or not notes.files:
        return []
    known = {stem(word) for word in words(question)} | {name.lower() for name in notes.files}
    names_a_file = any(name.lower() in answer.lower() for name in notes.files)
    if names_a_file or _YES_NO.match(question):
        added = [c for c in claims(answer) if stem(c) not in known]
    else:
        added = [w for w in key_words(answer, notes.files) if stem(w) not in known]
        if not added:
            return ["it adds nothing to the question"]
    near = max((_near(claim, asked, notes) for claim in added), default=_ENOUGH)
    if near == 0:
        return added
    absent = [w for w in wanted(question) if not holds(notes.text(), w)]
    return absent if near < _ENOUGH else []


def wanted(question: str) -> list[str]:
    """What a question asks for by name: "which river", "what colour", "how much memory"."""
    found = _WANTED.findall(question)
    return [word for word in found if word.lower() not in COMMON]


def _near(claim: str, asked: list[str], notes: Notes) -> int:
    """How many words of the question stand with the claim: in its line or, where the file is no
    table, one beside it; in the first line or in the name of its file."""
    most = 0
    for name, text in notes.files.items():
        lines = text.splitlines()
        beside = 0 if as_records(text) else 1
        for n, line in enumerate(lines):
            if holds(line, claim):
                around = " ".join([name, lines[0], *lines[max(0, n - beside) : n + beside + 1]])
                most = max(most, sum(holds(around, word) for word in asked))
    return most
