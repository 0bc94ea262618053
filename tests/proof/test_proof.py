"""The small form of every suite, each in a process of its own: `python -m attack --small`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SUITES = sorted(
    path.stem for path in (HERE / "attack").glob("*.py") if "\nTITLE = " in path.read_text()
)
SECONDS = 900


@pytest.mark.parametrize("suite", SUITES)
def test_everything_that_is_tried_holds(suite: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attack", "--one", suite, "--small", "--into", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    said = f"{done.stdout}\n{done.stderr}"
    assert (tmp_path / f"{suite}.json").exists(), said
    result = json.loads((tmp_path / f"{suite}.json").read_text())
    assert result["problems"] == [], said
    assert done.returncode == 0, said
    assert any(row["tried"] or row["note"] for row in result["rows"]), said
