"""Run suites: `python -m attack [--small] [--into FOLDER] [SUITE …]`.

Each suite runs in a process of its own and leaves its result in FOLDER (build/proof) as
JSON, so that what was interrupted goes on with the suites that are missing (`--missing`).
docs/proof.md is written from whatever results are there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attack import report
from attack.tally import Tally

SUITES = (
    "kills",
    "storage",
    "damage",
    "races",
    "sequences",
    "clock",
    "paths",
    "tools",
    "replies",
    "requests",
    "sockets",
    "doors",
    "gguf",
    "templates",
    "load",
    "users",
    "defences",
)
ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "build" / "proof"
SMALL_RESULTS = ROOT / "build" / "proof-small"


def main() -> int:
    """The exit code: 1 where something did not hold."""
    options = _options()
    options.into = options.into or (SMALL_RESULTS if options.small else RESULTS)
    options.into.mkdir(parents=True, exist_ok=True)
    if options.one:
        return _run(options.one, options.into, not options.small)
    failed = 0
    for suite in options.suites or SUITES:
        if options.missing and (options.into / f"{suite}.json").exists():
            continue
        command = [sys.executable, "-m", "attack", "--one", suite, "--into", str(options.into)]
        command += ["--small"] if options.small else []
        failed |= subprocess.run(command, check=False).returncode
    if not options.small:
        report.write(ROOT / "docs" / "proof.md", options.into, SUITES)
    return failed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./scripts/prove", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], metavar="SUITE")
    parser.add_argument("--small", action="store_true", help="as the tests run it")
    parser.add_argument("--missing", action="store_true", help="only suites without a result")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="build/proof")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(suite: str, into: Path, long: bool) -> int:
    module = importlib.import_module(f"attack.{suite}")
    tally = Tally()
    started = time.monotonic()
    print(f"{suite}: {module.TITLE} …", flush=True)
    with tempfile.TemporaryDirectory(prefix=f"proof-{suite}-") as folder:
        module.attack(tally, Path(folder), long)
    seconds = time.monotonic() - started
    result = {"suite": suite, "title": module.TITLE, "long": long, "seconds": round(seconds, 1)}
    part = into / f"{suite}.json.part"
    part.write_text(json.dumps(result | tally.as_json(), indent=1), encoding="utf-8")
    part.replace(into / f"{suite}.json")
    for row in tally.rows.values():
        print(f"  {row.held:6,} of {row.tried:6,}  {row.what}{row.note and f' ({row.note})'}")
    for problem in tally.problems:
        print(f"  NOT HELD: {problem}")
    print(f"  {seconds:.1f} s", flush=True)
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
