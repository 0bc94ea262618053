"""Whether a run is right: rules only, no model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from harness.experiments.plan import Judge
from harness.state import RunState

_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
_NUMBER = re.compile(
    r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)"
    r"|(?<![\w.])-?\d+(?:\.\d+)?(?!\w)"
    r"|\b(?:" + "|".join(_WORDS) + r")\b",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(r"\b[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}\b")

_SAYS_NOT = re.compile(
    r"\b(?:do|does|did|could|can|would)(?:\s+not|n['\u2019]t)\s+(?:\w+\s+)?"
    r"(?:mention|say|state|contain|include|provide|list|specify|give|have|show|know|exist|tell"
    r"|indicate|find|appear|record|answer|determine|see)"
    r"|\b(?:cannot|unable to|not able to)\b"
    r"|\bno\s+(?:\w+\s+){0,3}(?:information|mention|records?|data|answer|files?|details?"
    r"|entry|notes?|such)\b"
    r"|(?:\bnot|n['\u2019]t)\s+(?:\w+\s+)?(?:mentioned|found|stated|given|listed|specified|provided"
    r"|available|included|known|said|recorded|contained|present|in the)\b"
    r"|\bnone of the\b|\bnothing\b|\bunknown\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`right`, and where it is not, `why` in a few words."""

    right: bool
    why: str = ""


def judge(rule: Judge, run: RunState, workspace: Path, *, unsupported: bool) -> Verdict:
    """Judge one ended run.

    Args:
        rule: What the task states.
        run: The run as it ended. One that did not complete is never right.
        workspace: Its folder as the run left it.
        unsupported: Whether the harness marked the answer as unsupported.
    """
    if run.status != "completed":
        return Verdict(False, f"ended {run.status}")
    checks = (
        _texts(rule, run.answer),
        _number(rule, run),
        _files(rule, workspace),
        _reads(rule, run),
        _unanswerable(rule, run.answer, unsupported),
    )
    why = next((problem for problem in checks if problem), "")
    return Verdict(not why, why)


def says_it_is_not_there(answer: str) -> bool:
    """Whether an answer says that it was not found, in any of the usual wordings."""
    return bool(_SAYS_NOT.search(answer))


def numbers_in(text: str) -> list[float]:
    """Every number in a text in order, in digits or as a word up to twenty.

    Numbers that are part of a file's name do not count.
    """
    found = _NUMBER.finditer(_FILE_NAME.sub(" ", text))
    return [_value(match.group().lower()) for match in found]


def _value(number: str) -> float:
    return float(_WORDS.index(number) if number in _WORDS else number.replace(",", ""))


def _texts(rule: Judge, answer: str) -> str:
    low = answer.lower()
    for text in rule.contains:
        if text.lower() not in low:
            return f"does not say {text!r}"
    for text in rule.excludes:
        if text.lower() in low:
            return f"says {text!r}"
    if rule.regex is not None and not re.search(rule.regex, answer, re.IGNORECASE):
        return f"nothing in it matches {rule.regex!r}"
    return ""


def _number(rule: Judge, run: RunState) -> str:
    if rule.number is None:
        return ""
    known = set(numbers_in(run.task)) - {rule.number}
    found = [number for number in numbers_in(run.answer) if number not in known]
    if rule.number not in found:
        return f"does not say {rule.number:g}"
    return "" if found[0] == rule.number else f"says {found[0]:g} first"


def _files(rule: Judge, workspace: Path) -> str:
    for name in rule.gone:
        if (workspace / name).exists():
            return f"{name} is still there"
    for name in rule.present:
        if not (workspace / name).exists():
            return f"{name} is gone"
    return ""


def _reads(rule: Judge, run: RunState) -> str:
    read = {path for call in run.calls.values() if (path := _path_read(call.arguments))}
    missing = next((name for name in rule.reads if name not in read), None)
    return f"{missing} was not read" if missing else ""


def _path_read(arguments: str) -> str:
    try:
        values = json.loads(arguments)
    except ValueError:
        return ""
    path = values.get("path") if isinstance(values, dict) else None
    return path if isinstance(path, str) else ""


def _unanswerable(rule: Judge, answer: str, unsupported: bool) -> str:
    if not rule.unanswerable or unsupported or says_it_is_not_there(answer):
        return ""
    return "answers what the files do not say, without a mark"
