"""Where the words of a question stand in texts: plain search, no model.

Used to choose the files that a question is about, to cut long ones down to
their telling lines, and to see what an answer can rest on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

_WORD = re.compile(r"[^\W_](?:[\w.:/@-]*[^\W_])?")

_COMMON = """
a about after all also an and any are as at be been before being between but by can cannot contain
contains could did do does each either every file files find folder directory for from get give
given go got had has have he her here his how i if in into is it its just know list look many may
me mention mentions mentioned more most much must my name named new no not now of off on one only
or other our out over please read said same say says see she should show so some such tell than
that the their them then there these they this those through to too up us was we were what when
where which while who whom whose why will with would you your
"""
COMMON = frozenset(_COMMON.split())
"""Words that say nothing about what a question is about."""

_SUBJECT = re.compile(
    r"\b(?:the|an?|of|for|about|by|from)\s+(?!(?:the|an?)\b)(?:[\w-]+(?:est|most)\s+)?([^\W_][\w.:/@-]*)",
    re.IGNORECASE,
)

_ENDINGS = ("ings", "ing", "ies", "ied", "ers", "er", "es", "ed", "ly", "s", "e", "y")
_LEAST_STEM = 4


def words(text: str) -> list[str]:
    """The words of a text in order: letters, digits and what may stand inside a name."""
    return _WORD.findall(text)


def key_words(question: str, names: Iterable[str] = ()) -> list[str]:
    """The words that a question is about, each once. Names of files are not among them."""
    left_out = {name.lower() for name in names} | COMMON
    kept = [word for word in words(question) if word.lower() not in left_out]
    return list(dict.fromkeys(kept))


def sentences(text: str) -> list[str]:
    """A text's sentences, lines and what stands before a colon."""
    return re.split(r"(?<=[.!?:])\s+|\n", text)


def subjects(question: str) -> list[str]:
    """The words that a question takes for granted: nouns after an article or "of", and words
    with a digit or a capital letter inside it. "Who is the director?" takes a director."""
    found = [word.rstrip(".:/@-") for word in _SUBJECT.findall(question)]
    for sentence in sentences(question):
        inside = words(sentence)[1:]
        found += [word for word in inside if any(c.isdigit() or c.isupper() for c in word)]
    return [w for w in dict.fromkeys(found) if w.lower() not in COMMON and not w.endswith("est")]


def stem(word: str) -> str:
    """A word without its usual English ending, in lower case: "rotating" and "rotate" are one."""
    low = word.lower().replace("-", "")
    if any(not letter.isalpha() for letter in low):
        return low
    for ending in _ENDINGS:
        if low.endswith(ending) and len(low) - len(ending) >= _LEAST_STEM:
            return low.removesuffix(ending)
    return low


def pattern(word: str) -> re.Pattern[str]:
    """Finds a word in any of its usual forms; a number or a short word only as a whole."""
    root = stem(word)
    if any(not letter.isalpha() for letter in root) or len(root) < _LEAST_STEM:
        return re.compile(rf"(?<![^\W_]){re.escape(root)}(?:s|es)?(?![^\W_])", re.IGNORECASE)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join([root, *_in_two(word.lower())])})", re.IGNORECASE)


def _in_two(word: str) -> list[str]:
    """Patterns for a word written as two, perhaps bent: "timeout" as "timed out"."""
    least = 3
    places = range(least, len(word) - least + 1)
    return [rf"{word[:n]}\w{{0,2}}[\s_-]+{word[n:]}\b" for n in places]


def holds(text: str, word: str) -> bool:
    """Whether the text has the word, in any of its usual forms."""
    return bool(pattern(word).search(text.replace("-", "") if "-" in word else text))


def found_in(word: str, files: Mapping[str, str]) -> list[str]:
    """The files that have the word in their text or in their name."""
    return [name for name, text in files.items() if holds(text, word) or holds(name, word)]


def scores(question: str, files: Mapping[str, str]) -> dict[str, float]:
    """How much each file speaks of the question: rare words count more, a file that the
    question names counts most. (Inverse document frequency: K. Spärck Jones, 1972.)"""
    total = dict.fromkeys(files, 0.0)
    for word in key_words(question, files):
        where = found_in(word, files)
        for name in where:
            total[name] += math.log((len(files) + 1) / len(where))
    for name in named_files(question, files):
        total[name] += 100.0
    return total


def named_files(question: str, names: Iterable[str]) -> list[str]:
    """The files that a question names."""
    low = question.lower()
    return [name for name in names if re.search(rf"(?<![\w.]){re.escape(name.lower())}\b", low)]


def relevant(question: str, files: Mapping[str, str], share: float = 0.5) -> list[str]:
    """The files that the question is about, the best last, where it is nearest to the question.

    Those that reach `share` of the best score; all of them where no word is found anywhere.
    """
    score = scores(question, files)
    best = max(score.values(), default=0.0)
    kept = [name for name in files if score[name] >= share * best]
    return sorted(kept, key=lambda name: score[name])


def excerpt(text: str, question_words: Sequence[str], most: int) -> str:
    """A text of at most about `most` characters: whole where it fits, else its first line and
    the lines that have words of the question, the most telling ones, in their order."""
    if len(text) <= most:
        return text.strip()
    lines = text.splitlines()
    patterns = [pattern(word) for word in question_words]
    told = {n: sum(bool(p.search(line)) for p in patterns) for n, line in enumerate(lines)}
    chosen: set[int] = set()
    room = most
    for n in sorted(told, key=lambda n: (n != 0, -told[n], n)):
        room -= len(lines[n]) + 1
        if room < 0:
            break
        chosen.add(n)
    return _with_gaps(lines, sorted(chosen)) if chosen else text[:most].strip()


def _with_gaps(lines: Sequence[str], chosen: Sequence[int]) -> str:
    shown: list[str] = []
    before = -1
    for n in chosen:
        if n > before + 1:
            shown.append("…")
        shown.append(lines[n])
        before = n
    if before < len(lines) - 1:
        shown.append("…")
    return "\n".join(shown)
