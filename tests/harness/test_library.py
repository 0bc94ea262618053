"""The names that a reader of the README uses."""

import subprocess
import sys
from pathlib import Path

import harness
from harness import Call, RunState, ScriptedModel, Stop, Store, run, run_sync, stream, tool


@tool(effect="read")
def weather(city: str) -> str:
    """Say what the weather is like."""
    return f"It rains in {city}."


MODEL = ScriptedModel(Call("weather", {"city": "Delft"}), "It rains.")


def test_a_task_in_one_line(tmp_path: Path):
    state = run_sync("What?", tools=[weather], model=MODEL, store=tmp_path / "runs.db")
    assert (state.status, state.answer, state.tool_runs) == ("completed", "It rains.", 1)
    with Store.open(tmp_path / "runs.db") as store:
        assert store.load(state.run_id) == state


async def test_inside_a_program_with_a_loop_and_a_store_of_its_own(store):
    state = await run("What?", tools=[weather], model=MODEL, store=store, limits={"max_turns": 1})
    assert state.status == "max_turns_exceeded"
    assert store.load(state.run_id) == state


async def test_events_as_they_come(tmp_path: Path):
    found = [
        e.type async for e in stream("What?", tools=[weather], model=MODEL, store=tmp_path / "r.db")
    ]
    assert found[0] == "run_started"
    assert found[-1] == "run_stopped"


async def test_leaving_the_stream_early_cancels_the_run(tmp_path: Path):
    slow = ScriptedModel("done", latency=60)
    following = stream("What?", model=slow, store=tmp_path / "r.db")
    async for _ in following:
        break
    await following.aclose()
    with Store.open(tmp_path / "r.db") as store:
        assert store.runs()[0].interruption_kind == "cancelled"


async def test_a_stop_condition_of_ones_own(store):
    state = await run(
        "What?",
        tools=[weather],
        model=MODEL,
        store=store,
        stop_conditions=[lambda run: Stop("interrupted", "enough") if run.turns else None],
    )
    assert (state.status, state.reason, state.turns) == ("interrupted", "enough", 1)


def test_every_public_name_is_there():
    for name in harness.__all__:
        assert getattr(harness, name) is not None
    assert harness.RunState is RunState


def test_importing_the_harness_loads_neither_a_server_nor_an_http_client():
    code = "import sys, harness.state; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"aiohttp", "httpx", "server", "models", "flask", "starlette"} & set(loaded)
