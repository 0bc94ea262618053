"""A person's own tools: in a run, after an approval, and where they are missing."""

from __future__ import annotations

import json
import sys

import pytest

from uitweg.config import user_file

TOOLS = '''
from typing import Annotated
from harness import tool

@tool(effect="read")
def word_count(path: Annotated[str, "A file."], context: "ToolContext") -> int:
    """Count the words of a file."""
    with context.workspace.open_read(path) as file:
        return len(file.read().split())

@tool
def note_down(text: str) -> str:
    """Write a line into the notebook."""
    with open("notebook.txt", "a") as file:
        file.write(text + "\\n")
    return "noted"
'''.replace("import tool\n", "import ToolContext, tool\n").replace('"ToolContext"', "ToolContext")

RECORDING = """\
name = "noting"
description = "Counts, then notes."

[[turn]]
call = [{ tool = "word_count", arguments = '{"path":"notes.txt"}' }]

[[turn]]
call = [{ tool = "note_down", arguments = '{"text":"seven"}' }]

[[turn]]
text = "I noted it."
"""


TELLING = """\
name = "telling"
description = "Asks for the time."

[[turn]]
call = [{ tool = "time_get_current_time", arguments = '{"timezone":"UTC"}' }]

[[turn]]
text = "It is now."
"""


@pytest.fixture
def noting(tmp_path, monkeypatch, port, home):
    """A folder with tools of one's own, and a model that asks for them."""
    from rich.console import Console

    from uitweg.hosting import hosted, local_url, wait_until_ready

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "noting.toml").write_text(RECORDING)
    (tmp_path / "telling.toml").write_text(TELLING)
    number = port()
    with hosted(
        "serve",
        "--scripted",
        str(tmp_path / "noting.toml"),
        str(tmp_path / "telling.toml"),
        "--port",
        str(number),
    ) as process:
        wait_until_ready(local_url(number), Console(quiet=True), process)
        monkeypatch.setenv("LLM_BASE_URL", local_url(number))
        yield tmp_path


def test_a_file_of_tools_in_a_run_and_after_its_approval(noting, uitweg):
    said = uitweg("run", "Note it.", "--model", "noting", "--tools", "my_tools.py")
    assert said.code == 5, said.out + said.err
    hint = next(line for line in said.out.splitlines() if "uitweg approve" in line)
    command = hint[hint.index("uitweg") :].split()[1:]
    assert command[2:] == ["--tools", "my_tools.py"]
    assert not (noting / "notebook.txt").exists()
    without = uitweg(*command[:2])
    assert without.code == 2
    assert "There is no tool word_count" in without.err
    assert "--tools FILE.py" in without.err
    # The decision stands; only the tool was missing.
    said = uitweg("resume", command[1], "--tools", "my_tools.py")
    assert said.code == 0, said.out + said.err
    assert (noting / "notebook.txt").read_text() == "seven\n"


def test_tools_of_the_settings_are_found_again_by_themselves(noting, uitweg):
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f'tools = ["{noting / "my_tools.py"}"]\nmodel = "noting"\n')
    closing = uitweg("run", "Note it.", "--json").closing
    assert closing["interruption"]["tool_name"] == "note_down"
    edited = json.dumps({"text": "eight"})
    assert uitweg("approve", closing["run_id"], "--args", edited).code == 0
    assert (noting / "notebook.txt").read_text() == "eight\n"
    rules = user_file().with_name("rules.toml")
    rules.write_text('[[rule]]\naction = "allow"\ntool = "note_*"\n')
    assert "matches note_down" in uitweg("rules").out
    assert uitweg("run", "Note it.").code == 0


def test_an_mcp_server_of_the_projects_file(noting, uitweg):
    (noting / "uitweg.toml").write_text(
        f'model = "telling"\n[mcp.time]\ncommand = "{sys.executable}"\n'
        'args = ["-m", "mcp_server_time"]\n'
    )
    assert "sets mcp.time" in uitweg("run", "What time is it?").err
    assert uitweg("config", "--trust").code == 0
    closing = uitweg("run", "What time is it?", "--json").closing
    assert closing["interruption"]["tool_name"] == "time_get_current_time"
    said = uitweg("approve", closing["run_id"], "--json")
    assert said.closing["answer"] == "It is now."
    assert "day_of_week" in uitweg("show", closing["run_id"]).out


def test_a_program_that_is_not_there_is_said_before_anything_is_started(noting, uitweg):
    (noting / "uitweg.toml").write_text('model = "plan"\n[mcp.time]\ncommand = "no-such"\n')
    assert uitweg("config", "--trust").code == 0
    said = uitweg("run", "What time is it?")
    assert said.code == 2
    assert "There is no program no-such to start the MCP server time with." in said.err


def test_what_cannot_be_loaded_starts_no_run(noting, uitweg):
    (noting / "bad.py").write_text("import nothing_like_it\n")
    said = uitweg("run", "Note it.", "--tools", "bad.py")
    assert said.code == 2
    assert "bad.py cannot be loaded (line 1): ModuleNotFoundError" in said.err
    assert "No run yet" in uitweg("runs").out
