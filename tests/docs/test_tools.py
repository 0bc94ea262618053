"""docs/tools.md: its code is written to files as it says, run, and tested as it says."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.mcp_tools import mcp_tools
from harness.tool import tool
from uitweg.config import Config

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "tools.md").read_text("utf-8")
FILES = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    """A folder with every file of the document."""
    for name, code in FILES:
        (tmp_path / name).write_text(code)
    (tmp_path / "notes.txt").write_text("two words")
    return tmp_path


def test_every_block_of_code_is_a_file():
    assert len(FILES) == TEXT.count("```python") == 3


def test_its_tests_pass(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_its_command_runs(folder):
    (command,) = re.findall(r"```sh\n(.*?)\n```", TEXT, re.DOTALL)
    server = [sys.executable, "-m", "uitweg", "serve", "--scripted", "--port", "0"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline()).group()
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "UITWEG_DATA": str(folder / "data"),
                "LLM_BASE_URL": f"http://{address}/v1",
                "LLM_MODEL": "plan",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        process.terminate()
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_of_the_decorator_is_explained():
    table = TEXT.split("## What a tool says of itself")[1].split("\n## ")[0]
    explained = set(re.findall(r"^\| `(\w+)=", table, re.MULTILINE))
    assert explained == set(inspect.signature(tool).parameters) - {"function"}


def test_its_server_answers(monkeypatch):
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    config = Config.model_validate(tomllib.loads(block))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with mcp_tools(config.mcp) as tools:
        assert not tools["time_convert_time"].needs_approval
