"""The process in which a killable tool runs: `python -m harness.child`.

Reads one call from standard input, runs it and writes its progress and its
result to standard output as JSON lines. Then it waits to be killed by the
parent; when the parent is gone, it kills its whole group itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import signal
import sys
import threading
from typing import Any, BinaryIO

from harness.cancel import CancelledByToken, CancelToken
from harness.output import CappedText, UnreadableOutput, collect, collect_async
from harness.ports import OnProgress
from harness.schema import InvalidArguments
from harness.tool import PermanentToolError, Tool, ToolContext, ToolError
from harness.workspace import Workspace

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the one call that standard input describes."""
    # The answers get a descriptor that nothing the tool starts inherits; what
    # the tool prints goes to standard error instead.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    commands = os.fdopen(os.dup(0), "rb", buffering=0)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - only its descriptor is used
        os.dup2(nothing.fileno(), 0)
    call = json.loads(commands.readline())
    _collect_orphans()
    token = CancelToken()
    signal.signal(signal.SIGTERM, lambda *_: token.cancel("it was told to stop"))
    threading.Thread(target=_die_with_parent, args=(commands,), daemon=True).start()
    _answer(answers, _run(call, token, lambda *item: _answer(answers, {"progress": item})))
    while True:
        signal.pause()


def _answer(answers: BinaryIO, message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        answers.write(json.dumps(message).encode() + b"\n")


def _run(call: dict[str, Any], token: CancelToken, report: OnProgress) -> dict[str, Any]:
    output = CappedText()
    try:
        tool = _find(call)
        context = ToolContext(
            run_id=call["run_id"],
            call_id=call["call_id"],
            idempotency_key=call["idempotency_key"],
            fingerprint=call["fingerprint"],
            workspace=Workspace(call["workspace"]),
            cancel=token,
            report=report,
        )
        asyncio.run(_carry(tool.call(call["arguments"], context), output))
    except CancelledByToken as error:
        return {"kind": "cancelled", "text": str(error)}
    except PermanentToolError as error:
        return {"kind": "permanent", "text": str(error)}
    except InvalidArguments as error:
        return {"kind": "invalid", "text": str(error)}
    except UnreadableOutput as error:
        return {"kind": "error", "text": f"The tool ran, but its result cannot be shown: {error}."}
    except ToolError as error:
        return {"kind": "error", "text": str(error)}
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything; the model is told
        return {"kind": "error", "text": f"{type(error).__name__}: {error}"}
    finally:
        sys.stdout.flush()
    return {
        "kind": "ok",
        "text": output.kept(),
        "left_out": output.left_out,
        "more_unread": output.more_unread,
    }


async def _carry(value: Any, output: CappedText) -> None:
    if hasattr(value, "__await__"):
        value = await value
    if hasattr(value, "__aiter__"):
        await collect_async(value, output)
    else:
        collect(value, output)


def _find(call: dict[str, Any]) -> Tool:
    """The tool by its module's name, or out of its file where the name is not importable."""
    sys.path[:] = call["path"]
    try:
        module = importlib.import_module(call["module"])
    except ModuleNotFoundError:
        module = None
    if module is None or getattr(module, "__file__", None) != call["file"]:
        spec = importlib.util.spec_from_file_location("uitweg_tool", call["file"])
        if spec is None or spec.loader is None:
            raise ToolError(f"{call['file']} is no Python file.")
        module = importlib.util.module_from_spec(spec)
        sys.modules["uitweg_tool"] = module
        spec.loader.exec_module(module)
    tool = getattr(module, call["name"], None)
    if not isinstance(tool, Tool):
        raise ToolError(f"{call['name']} is not a tool at the top of {call['file']}.")
    return tool


def _collect_orphans() -> None:
    """Become the parent of orphaned descendants (Linux), so that they can be found and killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _die_with_parent(commands: BinaryIO) -> None:
    commands.read()  # returns when the parent's end is closed
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
