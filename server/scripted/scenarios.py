"""The scripted models: what each says at which turn.

A scenario is a pure function of the conversation. Its closing answer follows from what the
tools said; where they said nothing, it claims success, as models do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from server.scripted.conversation import Conversation, Reply, answer, call

Play = Callable[[Conversation], Reply]


FILE_TOOLS = ("list_files", "read_file", "delete_file")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scripted model: the name that a request asks for, and what it is for."""

    name: str
    description: str
    play: Play
    tools: tuple[str, ...] = FILE_TOOLS
    """What a client should offer it."""


LIST = call("list_files")
READ_ERRORS = call("read_file", path="errors.log")
READ_MISSING = call("read_file", path="timeout.log")
READ_LOCKED = call("read_file", path="secret/keys.log")
DELETE = call("delete_file", path="access.log")
SCAN = call("scan_archive", word="timeout")
RESEARCH = call("research", question="Which file mentions a timeout?")

_TIMEOUT = re.compile(r"worker \d+ timed out after \d+ ms")
_DELETED = re.compile(r"deleted (\S+)")
_FAILED = re.compile(r"no such file|denied|declined|tool failed|did not run", re.IGNORECASE)


def steps(*replies: Reply, close: Play) -> Play:
    """Play these replies one a turn, then `close`."""

    def play(talk: Conversation) -> Reply:
        return replies[talk.turn] if talk.turn < len(replies) else close(talk)

    return play


def say_timeout(talk: Conversation) -> Reply:
    """The timeout in full, out of what was read."""
    found = next((m.group() for said in talk.said("read_file") if (m := _TIMEOUT.search(said))), "")
    if found:
        return answer(f"errors.log mentions a timeout: {found}.")
    return answer("No file that I read mentions a timeout.")


def say_file(talk: Conversation) -> Reply:
    """The file's name only."""
    if any(_TIMEOUT.search(said) for said in talk.said("read_file")):
        return answer("errors.log mentions a timeout.")
    return answer("I could not read the file, so I do not know.")


def say_deleted(talk: Conversation) -> Reply:
    """What was deleted; after an empty result it claims success."""
    said = talk.last
    if found := _DELETED.search(said):
        return answer(f"Deleted {found[1].rstrip('.')} to free space.")
    if "declined" in said:
        return answer("I did not delete anything: you declined the deletion.")
    if "outcome is unknown" in said:
        return answer("I do not know whether access.log was deleted.")
    if said.strip() and "it took effect" not in said:
        return answer(f"I could not delete access.log: {said}")
    return answer("Deleted access.log to free space.")


def say_scanned(talk: Conversation) -> Reply:
    """How many files matched, or why the scan has no result."""
    try:
        result = json.loads(talk.last)
        matches, files = int(result["matches"]), int(result["files"])
    except (ValueError, TypeError, KeyError):
        return answer(f"The scan gave no result: {talk.last}")
    return answer(f"{matches} of the {files} files in the archive mention a timeout.")


def say_researched(talk: Conversation) -> Reply:
    """The helper's words."""
    return answer(f"The helper says: {talk.last}")


def recover(talk: Conversation) -> Reply:
    """Read a file that is not there, and do what the error says, if it says anything."""
    if talk.turn == 0:
        return READ_MISSING
    if talk.turn == 1 and "list_files" in talk.last:
        return LIST
    if talk.turn == 2 and "errors.log" in talk.last:
        return READ_ERRORS
    return say_file(talk)


def insist(talk: Conversation) -> Reply:
    """Ask for the same file until it can be read, whatever the error says."""
    if talk.turn == 0 or _FAILED.search(talk.last):
        return READ_LOCKED
    return answer(f"secret/keys.log says: {talk.last}")


def research(talk: Conversation) -> Reply:
    """Ask the helper. The helper itself is the same model without that tool: it does `plan`."""
    if "research" in talk.offered:
        return steps(RESEARCH, close=say_researched)(talk)
    return plan(talk)


plan = steps(LIST, READ_ERRORS, close=say_timeout)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("plan", "Lists the files, reads errors.log and answers: three turns.", plan),
    Scenario("runaway", "Lists the files for ever: shows what a limit saves.", lambda _: LIST),
    Scenario("recover", "Reads a file that is not there and does what the error says.", recover),
    Scenario("permanent", "Insists on a file that can never be read.", insist),
    Scenario(
        "repeat",
        "Reads the same file twice: shows what remembering a read saves.",
        steps(READ_ERRORS, READ_ERRORS, close=say_file),
    ),
    Scenario(
        "repeat_delete",
        "Deletes the same file twice: shows what remembering a write breaks.",
        steps(DELETE, DELETE, close=say_deleted),
    ),
    Scenario(
        "destructive",
        "Lists the files and deletes one: shows the approval.",
        steps(LIST, DELETE, close=say_deleted),
    ),
    Scenario(
        "scan",
        "Scans the archive, which is slow: shows the cancellation.",
        steps(SCAN, close=say_scanned),
        (*FILE_TOOLS, "scan_archive"),
    ),
    Scenario(
        "research",
        "Gives the question to a helper: shows the subagent.",
        research,
        (*FILE_TOOLS, "research"),
    ),
)
