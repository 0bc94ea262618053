"""The figures of runs that stop and go on: approvals, a crash, a cancellation."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import httpx

from harness.cancel import CancelToken
from harness.events import Event, RunStopped, ToolProgress, ToolStart
from harness.figures.lab import WHICH_FILE, Carried, Lab, cost_of, deleted_from
from harness.figures.tokens import FREE_SPACE, Figures
from harness.figures.tools import plain_tools
from harness.state import ApprovalNeeded, Decision, RunState
from harness.tools import bundled_tools

REASON = "it is still needed"
STOP_AT_MS = 1200


async def approvals(lab: Lab) -> Figures:
    """A deletion that waits for a person, and what each decision leads to."""
    stopped = (await lab.run("destructive", FREE_SPACE)).state
    needed = _needed(stopped)
    arguments = json.dumps(needed.args, separators=(",", ":"))
    return {
        "stopped": {
            "turns": stopped.turns,
            "cost": cost_of(stopped),
            "status": stopped.status,
            "reason": needed.kind,
            "call": f"{needed.tool_name}({arguments})",
            "deleted": deleted_from(stopped.settings.workspace),
        },
        "approve": await _decided(lab, "approve"),
        "reject_with_reason": await _decided(lab, "reject", REASON),
        "reject_with_nothing": {
            "answer": await _answer_to_nothing(stopped, needed),
            "deleted": deleted_from(stopped.settings.workspace),
        },
    }


def _needed(state: RunState) -> ApprovalNeeded:
    assert isinstance(state.interruption, ApprovalNeeded), state.reason  # noqa: S101 - its scenario
    return state.interruption


async def _decided(lab: Lab, action: str, reason: str | None = None) -> Figures:
    """A run that waited, was decided about, and went on."""
    waiting = (await lab.run("destructive", FREE_SPACE)).state
    needed = _needed(waiting)
    decision = {"call_id": needed.call_id, "action": action, "digest": needed.digest}
    async with lab.runner(plain_tools()) as runner:
        await runner.decide(waiting.run_id, Decision(**decision, reason=reason))
        state = await runner.resume(waiting.run_id)
    figures = Carried(state, []).figures()
    return {**figures, "deleted": deleted_from(state.settings.workspace)}


async def _answer_to_nothing(waiting: RunState, needed: ApprovalNeeded) -> str:
    """What the model says when a refusal reaches it as an empty tool message.

    The harness does not let that happen, so the request is made by hand.
    """
    empty = {
        "role": "tool",
        "tool_call_id": needed.call_id,
        "name": needed.tool_name,
        "content": "",
    }
    body = {
        "model": waiting.settings.model,
        "messages": [*waiting.messages, empty],
        "tools": [tool.wire for tool in plain_tools().values()],
    }
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        reply = await client.post(f"{waiting.settings.base_url}/chat/completions", json=body)
    return str(reply.raise_for_status().json()["choices"][0]["message"]["content"])


async def crash(lab: Lab) -> Figures:
    """A second process carries a run and is killed after two turns; this one goes on with it."""
    run_id = "crash"
    settings = lab.settings("plan", plain_tools())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "harness.figures.victim", str(lab.store.path), run_id, WHICH_FILE,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        process.stdin.write(settings.model_dump_json().encode() + b"\n")
        await process.stdin.drain()
        ready = await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()
    if ready != b"two turns\n":
        raise RuntimeError("The second process did not get as far as its second turn.")
    restored = lab.store.load(run_id)
    async with lab.runner(plain_tools()) as runner:
        finished = await runner.resume(run_id)
    return {
        "restored": {
            "turns": restored.turns,
            "cost": cost_of(restored),
            "messages": len(restored.messages),
            "status": restored.status,
        },
        "finished": {
            "turns": finished.turns,
            "cost": cost_of(finished),
            "tool_runs_over_both_processes": finished.tool_runs,
        },
        "killed_with_signal": -(process.returncode or 0),
    }


async def cancel_scan(lab: Lab) -> Figures:
    """Stop, pressed while a slow tool runs; and how long the tool takes when left alone."""
    whole = await _scan(lab, stop_at_ms=None)
    stopped = await _scan(lab, stop_at_ms=STOP_AT_MS)
    dones = [event.done or 0 for event in whole["progress"]]
    steps = {later - earlier for earlier, later in zip([0, *dones], dones, strict=False)}
    return {
        "whole_scan_ms": whole["ms"],
        "progress_every_files": steps.pop() if len(steps) == 1 else sorted(steps),
        "files": dones[-1],
        "stop_pressed_at_ms": stopped["pressed_ms"],
        "stopped_after_ms": stopped["ms"],
        "stop_took_ms": stopped["ms"] - stopped["pressed_ms"],
        "status": stopped["status"],
        "done_when_stopped": stopped["progress"][-1].done if stopped["progress"] else 0,
    }


async def _scan(lab: Lab, stop_at_ms: int | None) -> dict[str, Any]:
    """Carry the scan; times in milliseconds from the tool's start."""
    token = CancelToken()
    began, pressed, ended = 0.0, 0.0, 0.0
    progress: list[ToolProgress] = []

    def press() -> None:
        nonlocal pressed
        pressed = time.monotonic()
        token.cancel("Stop was pressed")

    def watch(event: Event) -> None:
        nonlocal began, ended
        if isinstance(event, ToolStart):
            began = time.monotonic()
            if stop_at_ms is not None:
                asyncio.get_running_loop().call_later(stop_at_ms / 1000, press)
        elif isinstance(event, ToolProgress):
            progress.append(event)
        elif isinstance(event, RunStopped) and event.stop_ms is not None:
            ended = pressed + event.stop_ms / 1000
        elif event.type == "tool_result" and not pressed:
            ended = time.monotonic()

    tools = {"scan_archive": bundled_tools()["scan_archive"]}
    run = await lab.run("scan", tools=tools, watch=watch, cancel=token)
    return {
        "ms": round((ended - began) * 1000),
        "pressed_ms": round((pressed - began) * 1000),
        "progress": progress,
        "status": run.state.status,
    }
