"""The scripted provider in a process of its own, with the run that the suites attack."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from attack.served import served
from server.json_text import compact_json
from server.run import bind, run
from server.scripted import ScriptedBackend
from server.scripted.attempt import AttemptLayer
from server.scripted.conversation import Call, Conversation, Reply, answer, call
from server.scripted.scenarios import (
    DELETE,
    FILE_TOOLS,
    LIST,
    READ_ERRORS,
    RESEARCH,
    SCENARIOS,
    Scenario,
    plan,
    steps,
)

MODEL = "reference"
ANSWER = "All is bought, one file is deleted, and errors.log mentions a timeout."


def _pay(*items: str) -> Reply:
    return Reply(calls=tuple(Call("pay", compact_json({"item": item})) for item in items))


def _reference(talk: Conversation) -> Reply:
    """Reads, a write that a rule allows, two that a person must, a helper, a deletion.

    The helper is the same model without the tool `pay`: it does `plan`.
    """
    if "pay" not in talk.offered:
        return plan(talk)
    return steps(
        LIST,
        READ_ERRORS,
        _pay("stamps"),
        _pay("paper", "ink"),
        RESEARCH,
        call("read_file", path="notes.txt"),
        DELETE,
        close=lambda _: answer(ANSWER),
    )(talk)


REFERENCE = Scenario(
    MODEL, "The run that is attacked.", _reference, (*FILE_TOOLS, "research", "pay")
)


def provider(log: Path | None = None) -> AbstractContextManager[str]:
    """Serve it; the base URL."""
    return served(["attack.provider"], log)


if __name__ == "__main__":
    run(
        ScriptedBackend([*SCENARIOS, REFERENCE]),
        bind("127.0.0.1", 0),
        host="127.0.0.1",
        say=lambda line: print(line, flush=True),
        layer=AttemptLayer,
    )
