"""Run one tool call, whatever the tool does.

An async tool runs as a task, a blocking one in a daemon thread, a killable one
in a process group of its own. Each gets a cancel token; when that is set, or
the tool's time is up, the tool has `GRACE` seconds to stop. One that does not
is abandoned: the run goes on without it and its late result is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from harness.cancel import CancelledByToken, CancelToken
from harness.output import CappedText, UnreadableOutput, collect, collect_async
from harness.ports import Executed
from harness.progress import Reporter
from harness.tool import InvalidArguments, PermanentToolError, Tool, ToolContext, ToolError

GRACE = 0.25
"""Seconds that a tool has to stop."""


class Work(Protocol):
    """A tool call on its way. `done` never raises but for its own cancellation."""

    done: asyncio.Future[CappedText]

    async def stop(self) -> None:
        """Ask it to stop, and return when it has or when `GRACE` is over."""
        ...


async def execute(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Executed:
    """Run `tool` with validated `arguments`. Never raises because of the tool.

    When the calling task itself is cancelled, the tool is stopped first.
    """
    started = time.monotonic()
    token = context.cancel.child()
    reporter = Reporter(asyncio.get_running_loop(), context.report)
    work = _start(tool, arguments, replace(context, cancel=token, report=reporter.report))
    try:
        await _first_of(work.done, token, tool.timeout)
        if not work.done.done():
            if not token.cancelled:
                token.cancel(f"it took longer than {tool.timeout:g} s")
            await work.stop()
    except asyncio.CancelledError:
        token.cancel("the run was stopped")
        await work.stop()
        raise
    finally:
        reporter.close()
    ms = (time.monotonic() - started) * 1000
    timed_out = token.cancelled and not context.cancel.cancelled
    result = _settle(tool, work.done, token.reason, timed_out, reporter.last)
    return replace(result, ms=ms)


async def _first_of(
    work: asyncio.Future[CappedText], token: CancelToken, timeout: float | None
) -> None:
    """Return when the work is done, the token is set, or `timeout` seconds are over."""
    loop = asyncio.get_running_loop()
    stop = loop.create_future()

    def wake() -> None:
        if not stop.done():
            stop.set_result(None)

    unregister = token.on_cancel(lambda: _soon(loop, wake))
    try:
        await asyncio.wait((work, stop), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        unregister()
        stop.cancel()


def _soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call `callback` in the loop's thread; a loop that has closed has nobody left to tell."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


def _settle(
    tool: Tool,
    done: asyncio.Future[CappedText],
    reason: str | None,
    timed_out: bool,
    last_progress: str | None,
) -> Executed:
    """What became of the call, in words for the model."""
    if not done.done():
        text = f"{tool.name} was told to stop ({reason}) and did not. It was left behind; "
        text += "what it does from now on is not known and its result will not be used."
        return Executed("abandoned", text)
    try:
        output = done.result()
    except (CancelledByToken, asyncio.CancelledError):
        return _stopped(tool, reason, timed_out, last_progress)
    except InvalidArguments as error:
        return Executed("invalid", str(error))
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything; the model is told
        return _failed(tool, error)
    return Executed("ok", output.text(), left_out_bytes=output.left_out)


def _stopped(
    tool: Tool, reason: str | None, timed_out: bool, last_progress: str | None
) -> Executed:
    text = f"{tool.name} was stopped before it finished: {reason or 'it cancelled itself'}."
    if last_progress:
        text += f" It had got as far as: {last_progress}."
    if tool.effect != "read":
        text += " It may have done a part of its work."
    return Executed("error" if timed_out or reason is None else "cancelled", text)


def _failed(tool: Tool, error: BaseException) -> Executed:
    message = CappedText()
    if isinstance(error, ToolError):
        message.add(_words_of(error) or f"{tool.name} failed and did not say why.")
    elif isinstance(error, UnreadableOutput):
        message.add(f"{tool.name} ran, but its result cannot be shown: {error}.")
    else:
        message.add(f"{tool.name} failed: {type(error).__name__}: {_words_of(error)}")
    permanent = isinstance(error, PermanentToolError)
    return Executed("error", message.text(), left_out_bytes=message.left_out, permanent=permanent)


def _words_of(error: BaseException) -> str:
    """What an error says of itself. Asking it runs the tool's own code, which can fail, too."""
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - whatever it is, the call has failed already
        return f"(it cannot be shown: {type(second).__name__})"


def _start(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Work:
    if tool.killable:
        # Imported here: most runs never start a process.
        from harness.killable import KillableWork

        return KillableWork(tool, arguments, context)
    function = tool.function
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return _TaskWork(tool, arguments, context)
    return _ThreadWork(tool, arguments, context)


class _TaskWork:
    """An async tool, as a task of the running loop."""

    def __init__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> None:
        self._task = asyncio.get_running_loop().create_task(_gather(tool, arguments, context))
        self.done: asyncio.Future[CappedText] = self._task

    async def stop(self) -> None:
        # Asked three times: code that swallows one cancellation by accident is common.
        for _ in range(3):
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=GRACE / 3)
            if self._task.done():
                return
        _let_go(self._task)


async def _gather(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> CappedText:
    output = CappedText()
    try:
        value = tool.call(arguments, context)
        if isinstance(value, Awaitable):
            value = await value
        if isinstance(value, AsyncIterator):
            await collect_async(value, output)
        else:
            collect(value, output)
    except (SystemExit, KeyboardInterrupt) as error:
        raise _as_exception(error) from None
    return output


def _as_exception(error: BaseException) -> BaseException:
    """`error` as something that a future can hold and that ends no event loop."""
    if isinstance(error, (StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError)):
        return RuntimeError(f"{type(error).__name__} {error}".strip())
    return error


def _let_go(task: asyncio.Task[CappedText]) -> None:
    """Keep an abandoned task from holding up its loop's end.

    `asyncio.run` waits for all tasks that it knows. Taking a task off that list
    is what asyncio's documentation on extending it gives `_unregister_task` for.
    """
    asyncio.tasks._unregister_task(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to stay pending
    task.add_done_callback(lambda late: late.cancelled() or late.exception())


class _ThreadWork:
    """A blocking tool, in a daemon thread: an abandoned one cannot keep the process alive."""

    def __init__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> None:
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[CappedText] = loop.create_future()
        settle = _settler(loop, self.done)

        def run() -> None:
            output = CappedText()
            try:
                collect(tool.call(arguments, context), output)
            except BaseException as error:  # noqa: BLE001 - handed over, not swallowed
                settle(None, error)
            else:
                settle(output, None)

        target = contextvars.copy_context().run
        threading.Thread(target=target, args=(run,), name=tool.name, daemon=True).start()

    async def stop(self) -> None:
        await asyncio.wait((self.done,), timeout=GRACE)


def _settler(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[CappedText]
) -> Callable[[CappedText | None, BaseException | None], None]:
    """A function for the thread that settles `future` in its loop, if anybody still waits."""

    def settle(output: CappedText | None, error: BaseException | None) -> None:
        def apply() -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(_as_exception(error))
            elif output is not None:
                future.set_result(output)
            future.exception()  # read once, so that an unread late error is not logged

        _soon(loop, apply)

    return settle
