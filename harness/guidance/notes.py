"""What the tools returned, as plain notes that a small model can answer from.

Notes hold nothing but results, and facts that are counted in them: how many
files there are, which is the largest, the highest value of a column. Comparing
is what small models are worst at.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.dedupe import call_key
from harness.guidance.search import (
    excerpt,
    found_in,
    key_words,
    named_files,
    relevant,
)
from harness.state import CallRecord, Message, RunState

MOST_CHARS = 6000
"""Of file text in one window: about 1,700 tokens, which leaves room in a context of 4,096."""

_LEAST_ROWS = 2

SYSTEM = "You answer a question about files from notes. Answer in one short sentence."
"""Leave to say that the notes do not tell is not given: a small model takes it far too often,
and answers that the notes do not hold are found by the policy `check`."""

_SIZE = re.compile(r"\b(?:larg|small|big|size|byte|short|long|heav|tin)\w*", re.IGNORECASE)
_A_FILE = re.compile(r"\bfile\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Other:
    """The result of a tool that is no reading of files."""

    tool: str
    args: str
    content: str


@dataclass(slots=True)
class Notes:
    """All that the tools of a run returned, each thing once."""

    listing: tuple[str, ...] | None = None
    """The names that the listing gave; `None` before one."""
    files: dict[str, str] = field(default_factory=dict)
    """Name to text, of files that were read whole or in part."""
    others: list[Other] = field(default_factory=list)
    call_ids: list[str] = field(default_factory=list)
    """The results they come from."""

    @property
    def empty(self) -> bool:
        return not self.call_ids

    def text(self) -> str:
        """Everything, to search in."""
        parts = [*(self.listing or ()), *self.files, *self.files.values()]
        return "\n".join([*parts, *(f"{o.tool} {o.args} {o.content}" for o in self.others)])


def gather(state: RunState) -> Notes:
    """The notes of a run so far, in the order in which the results came."""
    results = state.results()
    notes = Notes()
    seen: set[tuple[str, str]] = set()
    for record in state.calls.values():
        content = results.get(record.call_id)
        if content is None or record.outcome not in ("ok", "error", "rejected"):
            continue
        key = (call_key(record), content)
        if key not in seen:
            seen.add(key)
            _add(notes, record, content)
    return notes


def arguments_of(record: CallRecord) -> dict[str, Any]:
    """What the call asked for; empty where that is no JSON object."""
    if record.ran_args is not None:
        return record.ran_args
    try:
        values = json.loads(record.arguments)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _add(notes: Notes, record: CallRecord, content: str) -> None:
    args = arguments_of(record)
    path = args.get("path")
    if record.tool_name == "list_files" and record.outcome == "ok":
        names = _names(content)
        if names is not None:
            notes.listing = names
            notes.call_ids.append(record.call_id)
            return
    if record.tool_name == "read_file" and record.outcome == "ok" and isinstance(path, str):
        notes.files[path] = content
    else:
        shown = ", ".join(str(value) for value in args.values())
        notes.others.append(Other(record.tool_name, shown, content))
    notes.call_ids.append(record.call_id)


def _names(content: str) -> tuple[str, ...] | None:
    try:
        names = json.loads(content)
    except ValueError:
        return None
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    return None


def window(task: str, notes: Notes) -> list[Message]:
    """The clean window: the notes that bear on the task, then the task."""
    names = relevant(task, notes.files)
    parts = [*_listing(notes), *_texts(task, notes, names), *_sizes(task, notes)]
    parts += _found(task, notes, names)
    parts += [f"{o.tool} {o.args}".strip() + f": {o.content.strip()}" for o in notes.others]
    wants_name = _A_FILE.search(task) and not named_files(task, notes.files)
    question = f"{task} Name the file." if wants_name else task
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "\n\n".join(["Notes:", *parts, f"Question: {question}"])},
    ]


def _found(task: str, notes: Notes, names: Sequence[str]) -> list[str]:
    """Which words of the task only one file has."""
    asked = key_words(task, notes.files)
    said = []
    for name in names if len(notes.files) > 1 else ():
        only = [word for word in asked if found_in(word, notes.files) == [name]]
        if only:
            said.append(f"Only {name} mentions {_quoted(only)}.")
    return said


def _quoted(words: Sequence[str]) -> str:
    return " and ".join(f'"{word}"' for word in words)


def _listing(notes: Notes) -> list[str]:
    if notes.listing is None:
        return []
    number = len(notes.listing)
    there = "There is 1 file" if number == 1 else f"There are {number} files"
    return [f"{there} in the folder:\n" + "\n".join(f"- {name}" for name in notes.listing)]


def _sizes(task: str, notes: Notes) -> list[str]:
    """The sizes of the files, where the task asks for such a thing and all were read."""
    sizes = {name: len(text.encode()) for name, text in notes.files.items()}
    if not _SIZE.search(task) or not sizes or not set(notes.listing or ()) <= sizes.keys():
        return []
    said = [f"{name} has {size} bytes." for name, size in sizes.items()]
    for word, value in (("largest", max(sizes.values())), ("smallest", min(sizes.values()))):
        names = [name for name, size in sizes.items() if size == value]
        if len(names) == 1 and len(sizes) > 1:
            said.append(f"The {word} file is {names[0]}, with {value} bytes.")
    return [" ".join(said)]


def _texts(task: str, notes: Notes, names: Sequence[str]) -> list[str]:
    """The files of these names, cut so that all of them fit."""
    if not names:
        return []
    asked = key_words(task, notes.files)
    share = MOST_CHARS // len(names)
    return [_prose(name, notes.files[name], asked, share) for name in names]


def _prose(name: str, text: str, asked: list[str], most: int) -> str:
    records = as_records(text) if name.lower().endswith(".csv") else None
    if records is None:
        shown = excerpt(text, asked, most)
        return f"The file {name} says:\n{shown}" if shown else f"The file {name} is empty."
    lines, facts = records
    shown = excerpt("\n".join(lines), asked, most)
    return "\n".join([f"The file {name} has {len(lines)} records:", shown, *facts])


def as_records(text: str) -> tuple[list[str], list[str]] | None:
    """The rows of a CSV text, each with the names of its columns, and facts about its numbers.

    `None` where the text is no table with a heading.
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if row]
    except csv.Error:
        return None
    if len(rows) < 1 + _LEAST_ROWS or len(rows[0]) < 2 or any(len(r) != len(rows[0]) for r in rows):
        return None
    heading, body = rows[0], rows[1:]
    lines = ["; ".join(f"{k}: {v}" for k, v in zip(heading, row, strict=True)) for row in body]
    columns = [[row[n] for row in body] for n in range(len(heading))]
    facts = [
        fact
        for name, values in zip(heading[1:], columns[1:], strict=True)
        if (fact := _extremes(name, values, columns[0]))
    ]
    return lines, facts


def _extremes(name: str, values: list[str], labels: list[str]) -> str:
    """The highest and the lowest of a column of numbers; empty where it is none."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return ""
    high, low = max(numbers), min(numbers)
    if numbers.count(high) != 1 or numbers.count(low) != 1:
        return ""
    top, bottom = numbers.index(high), numbers.index(low)
    return (
        f"The highest {name} is {values[top]}: {labels[top]}. "
        f"The lowest {name} is {values[bottom]}: {labels[bottom]}."
    )
