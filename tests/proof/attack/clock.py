"""The clock of the wall is set back and forth while runs are carried."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

from attack.forks import Fork
from attack.provider import provider
from attack.reference import RUN, Place, carry, examine, new_place
from attack.tally import Tally
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import Limits
from harness.store import Store

TITLE = "A clock that jumps"
ORDER = "runs under a clock that jumps by years at each reading: order, cost and ending the same"
DEADLINE = "a limit of 0.3 s under that clock: kept to"


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Carry the reference run under a clock that jumps at every reading."""
    library, reason = _built(folder)
    if reason is not None:
        tally.note(ORDER, reason)
        return
    with provider() as url:
        place = new_place(url)
        Fork(partial(carry, place)).wait()
        undisturbed, _ = examine(place)
        place.remove()
        jumped = 0
        for _ in range(15 if long else 2):
            place = new_place(url)
            problem = _under(library, "carry", place)
            ending, wrong = examine(place) if problem is None else (None, None)
            problem = problem or wrong
            if problem is None and ending != undisturbed:
                problem = f"{ending} instead of {undisturbed}"
            jumped += _jumps(place)
            tally.tried(ORDER, problem)
            place.remove()
        tally.note(ORDER, f"{jumped} times an event's clock was before that of the one before it")
        for _ in range(5 if long else 1):
            place = new_place(url)
            tally.tried(DEADLINE, _under(library, "deadline", place))
            place.remove()


def _built(folder: Path) -> tuple[Path, str | None]:
    library = folder / "clock.so"
    compiler = shutil.which("cc")
    if not sys.platform.startswith("linux") or compiler is None:
        return library, "it takes Linux and a C compiler to change a process's clock"
    source = Path(__file__).with_name("clock.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return library, done.stderr[-300:] if done.returncode else None


def _under(library: Path, what: str, place: Place) -> str | None:
    command = [sys.executable, "-m", "attack.clock", what, str(place.folder), place.url]
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return "it hangs"
    return done.stderr[-500:] if done.returncode else None


def _jumps(place: Place) -> int:
    with Store.open(place.path) as store:
        times = [json.loads(line)["time"] for line in store.event_lines(RUN)]
    return sum(later < earlier for earlier, later in pairwise(times))


def _meet_deadline(place: Place) -> None:
    """A run whose replies take 0.1 s each may take 0.3 s."""

    async def all_of_it(store: Store) -> None:
        model = ScriptedModel(Call("list_files"), latency=0.1)
        async with Runner(store, provider_factory=lambda _: model) as runner:
            limits = Limits(max_seconds=0.3, max_turns=100)
            changes = {"tools": ("list_files",), "limits": limits}
            settings = place.settings().model_copy(update=changes)
            state = await runner.start("Look.", settings, run_id=RUN)
        assert state.status == "budget_exceeded", state.status
        assert 1 <= state.turns <= 4, state.turns
        assert 0.3 <= state.seconds < 60, state.seconds

    with Store.open(place.path) as store:
        asyncio.run(all_of_it(store))


if __name__ == "__main__":
    at = Place(Path(sys.argv[2]), sys.argv[3])
    carry(at) if sys.argv[1] == "carry" else _meet_deadline(at)
