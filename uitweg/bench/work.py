"""The requests that are measured: greedy, and the same for every server."""

from __future__ import annotations

from typing import Any

TASKS = [
    "Which file mentions a timeout?",
    "How many files are in the directory?",
    "Read notes.txt and tell me what it says.",
    "List the files and then read each one.",
    "Which file is the largest?",
    "Is there a file about rotating logs?",
]
SYSTEM = (
    "You work on the files in one folder. Look with the tools before you answer, and never "
    "guess. When you know the answer, say it in one short sentence."
)
_PATH = {"path": {"type": "string", "description": "The name of the file, as listed."}}


def _tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    _tool("list_files", "List the names of the files in the folder.", {}),
    _tool("read_file", "Read one text file of the folder.", _PATH),
    _tool("delete_file", "Delete one file of the folder for good.", _PATH),
]
_STORIES = ["a river", "a lighthouse", "a mountain railway", "a clock maker", "a small island"]


def story(number: int, tokens: int, mark: str = "") -> dict[str, Any]:
    """Plain text, long enough to measure; `mark` makes the prompt one that was never seen."""
    about = _STORIES[number % len(_STORIES)]
    text = f"{mark}Write a long story about {about}, with many details, in ten chapters."
    return {
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": tokens,
    }


def task(number: int, mark: str = "") -> dict[str, Any]:
    """The first turn of one of the six tasks."""
    return {
        "messages": [
            {"role": "system", "content": mark + SYSTEM},
            {"role": "user", "content": TASKS[number]},
        ],
        "tools": TOOLS,
        "temperature": 0,
        "max_tokens": 96,
    }


def next_turn(number: int, mark: str = "") -> dict[str, Any]:
    """The second: the files have been listed."""
    first = task(number, mark)
    function = {"name": "list_files", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    listed = '["access.log","errors.log","notes.txt"]'
    messages = [
        *first["messages"],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "name": "list_files", "content": listed},
    ]
    return {**first, "messages": messages}


def turns() -> list[dict[str, Any]]:
    """Two turns of each task, in the order in which a run asks for them."""
    return [turn(number) for number in range(len(TASKS)) for turn in (task, next_turn)]
