"""Every command in the documents is run, in the order in which a reader meets it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.store import Store

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

RUN_ELSEWHERE = {
    "uitweg serve --scripted &": "the fixture's server is this one",
    "uitweg figures": "tests/uitweg/test_figures.py runs it",
}
NEEDS_THE_MODEL = ("uitweg bench", "uitweg experiment", "uitweg models")
"""Minutes long, or about the model's file: only their usage is checked here."""


def commands(document: str) -> list[str]:
    """The lines after `$` in the document's console blocks."""
    blocks = BLOCK.findall((ROOT / document).read_text("utf-8"))
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def scripted() -> Iterator[str]:
    """The address of a scripted server."""
    command = [sys.executable, "-m", "uitweg", "serve", "--scripted", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", server.stdout.readline())
        assert found
        yield found.group()
        server.terminate()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_runs(document: str, scripted: str, tmp_path: Path) -> None:
    reader = _Reader(scripted, tmp_path)
    for command in commands(document):
        reader.carry_out(command)


def test_the_library_as_the_readme_shows_it(scripted: str, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    environment = {
        **os.environ,
        "UITWEG_DATA": str(tmp_path / "data"),
        "LLM_BASE_URL": f"http://{scripted}/v1",
        "LLM_MODEL": "plan",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("completed "), done.stderr


def test_every_link_leads_somewhere() -> None:
    broken = [
        (document, target)
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text("utf-8"))
        if not ((ROOT / document).parent / target).exists()
    ]
    assert not broken


class _Reader:
    """Somebody who types the commands of one document."""

    def __init__(self, scripted: str, folder: Path) -> None:
        self._scripted = scripted
        self._folder = folder
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "UITWEG_DATA": str(folder / "data"),
            "LLM_BASE_URL": f"http://{scripted}/v1",
            "LLM_MODEL": "plan",
        }

    def carry_out(self, command: str) -> None:
        if command in RUN_ELSEWHERE or command.startswith("export LLM_BASE_URL"):
            return
        if command.startswith("./scripts/"):
            assert os.access(ROOT / shlex.split(command)[0], os.X_OK), command
        elif command.startswith(("uitweg start", "uitweg serve", *NEEDS_THE_MODEL)):
            self._parses(command)
        else:
            self._run(command)

    def _run(self, command: str) -> None:
        text = command.replace("127.0.0.1:8081", self._scripted).replace("RUN_ID", self._latest())
        done = self._shell(text.removesuffix(" &"))
        waits_or_stopped = text.startswith(("uitweg run", "uitweg resume")) and done.returncode < 7
        looks = text.startswith("uitweg doctor") and done.returncode == 1
        assert done.returncode == 0 or waits_or_stopped or looks, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr, command
        assert done.returncode != 2, f"{command}\n{done.stderr}"

    def _parses(self, command: str) -> None:
        """Its options exist: what it would do is tested where it belongs."""
        words = [word for word in shlex.split(command) if word != "&"]
        named = [word for word in words if word.startswith("--")]
        depth = 3 if words[1] == "models" else 2
        shown = self._shell(shlex.join([*words[:depth], "--help"]))
        assert shown.returncode == 0, command
        assert not [name for name in named if name not in shown.stdout], command

    def _latest(self) -> str:
        path = self._folder / "data" / "runs.db"
        if not path.exists():
            return "RUN_ID"
        with Store.open(path) as store:
            return store.runs(limit=1)[0].run_id

    def _shell(self, text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", text],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
