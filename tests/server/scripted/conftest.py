"""A loop as small as a loop can be, on the scripted backend itself."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from server.backend import CallPiece, Finish, TextPiece
from server.json_text import compact_json
from server.parse import parse_request
from server.scripted import ScriptedBackend

SYSTEM = (
    "You work on the files in one folder. Look with the tools before you answer, and never "
    "guess. When you know the answer, say it in one short sentence."
)
PATH = {"type": "string", "description": "The name of the file, as listed."}
TOOLS = [
    ("list_files", "List the names of the files in the folder.", {}),
    ("read_file", "Read one text file of the folder.", {"path": PATH}),
    ("delete_file", "Delete one file of the folder for good.", {"path": PATH}),
]
LISTING = '["access.log","errors.log","notes.txt"]'
ERRORS = "ERROR worker 7 timed out after 30000 ms: stopped\n"
NO_SUCH_FILE = "no such file: timeout.log. Call list_files to see what exists."


def tool(name, description, properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


@dataclass
class Reply:
    text: str = ""
    calls: list = field(default_factory=list)
    finish: Finish | None = None
    pieces: int = 0


async def ask(backend, messages, tools, **more):
    body = {"messages": messages, "tools": tools, **more}
    request = parse_request(compact_json(body).encode())
    reply = Reply()
    async for piece in backend.chat(request):
        reply.pieces += 1
        if isinstance(piece, TextPiece):
            reply.text += piece.text
        elif isinstance(piece, CallPiece):
            if piece.name is not None:
                function = {"name": piece.name, "arguments": ""}
                reply.calls.append({"id": piece.id, "type": "function", "function": function})
            reply.calls[piece.index]["function"]["arguments"] += piece.arguments
        else:
            assert isinstance(piece, Finish)
            reply.finish = piece
    return reply


@dataclass
class Played:
    prompts: list = field(default_factory=list)
    completions: list = field(default_factory=list)
    messages: list = field(default_factory=list)
    answer: str = ""
    tool_runs: list = field(default_factory=list)

    @property
    def cost(self):
        return (2 * sum(self.prompts) + 12 * sum(self.completions)) / 1_000_000


class Loop:
    def __init__(self, backend):
        self.backend = backend
        self.tools = [tool(*args) for args in TOOLS]

    def __call__(self, model, task="Which file mentions a timeout?", turns=20, **said):
        return asyncio.run(self.play(model, task, turns, said))

    async def play(self, model, task, turns, said):
        run = Played(messages=self.start(task))
        while len(run.prompts) < turns:
            reply = await ask(self.backend, run.messages, self.tools, model=model)
            run.prompts.append(reply.finish.prompt_tokens)
            run.completions.append(reply.finish.completion_tokens)
            if not reply.calls:
                run.answer = reply.text
                break
            message = {"role": "assistant", "content": reply.text or None}
            run.messages.append({**message, "tool_calls": reply.calls})
            if len(run.prompts) == turns:
                break
            for call in reply.calls:
                name = call["function"]["name"]
                path = json.loads(call["function"]["arguments"]).get("path", "")
                content = self.result(name, path, said)
                run.tool_runs.append((name, path))
                run.messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "name": name, "content": content}
                )
        return run

    @staticmethod
    def start(task):
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]

    @staticmethod
    def result(name, path, said):
        if name in said:
            return said[name]
        if name == "list_files":
            return LISTING
        if name == "delete_file":
            return f"deleted {path}"
        return {"errors.log": ERRORS, "timeout.log": NO_SUCH_FILE}[path]


@pytest.fixture(scope="session")
def backend():
    return ScriptedBackend()


@pytest.fixture
def loop(backend):
    return Loop(backend)


@pytest.fixture
def chat(backend):
    """One reply: `chat(model, *messages, tools=[names], **body)`."""

    def one(model, *messages, tools=("list_files", "read_file", "delete_file"), on=None, **body):
        offered = [tool(n, d, p) for n, d, p in TOOLS if n in tools]
        offered += [tool(n, "x", {}) for n in tools if n not in {t[0] for t in TOOLS}]
        start = Loop.start("Which file mentions a timeout?")
        return asyncio.run(ask(on or backend, [*start, *messages], offered, model=model, **body))

    return one


@pytest.fixture
def called():
    """The two messages of one settled call: `called(n, tool, content)`."""

    def messages(number, name, content, **arguments):
        function = {"name": name, "arguments": compact_json(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        return (
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "name": name, "content": content},
        )

    return messages
