"""Runs an agent and keeps a record of why it ended.

The names of everyday use; everything else is in its own module. They are loaded
when first used, so that `import harness.state` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, because the decorator has the name of its module, which would stand
# in its place as soon as that is loaded.
from harness.tool import tool

if TYPE_CHECKING:
    from harness.budget import Budget
    from harness.cancel import CancelToken
    from harness.errors import HarnessError
    from harness.library import run, run_sync, stream
    from harness.runner import Runner
    from harness.scripted_model import Call, ScriptedModel
    from harness.state import Decision, Limits, Prices, RunState, Settings
    from harness.stop import Stop, StopCondition
    from harness.store import Store
    from harness.tool import PermanentToolError, Tool, ToolContext, ToolError

_HOMES = {
    "Budget": "budget",
    "Call": "scripted_model",
    "CancelToken": "cancel",
    "Decision": "state",
    "HarnessError": "errors",
    "Limits": "state",
    "PermanentToolError": "tool",
    "Prices": "state",
    "RunState": "state",
    "Runner": "runner",
    "ScriptedModel": "scripted_model",
    "Settings": "state",
    "Stop": "stop",
    "StopCondition": "stop",
    "Store": "store",
    "Tool": "tool",
    "ToolContext": "tool",
    "ToolError": "tool",
    "run": "library",
    "run_sync": "library",
    "stream": "library",
}

__all__ = [
    "Budget",
    "Call",
    "CancelToken",
    "Decision",
    "HarnessError",
    "Limits",
    "PermanentToolError",
    "Prices",
    "RunState",
    "Runner",
    "ScriptedModel",
    "Settings",
    "Stop",
    "StopCondition",
    "Store",
    "Tool",
    "ToolContext",
    "ToolError",
    "run",
    "run_sync",
    "stream",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
