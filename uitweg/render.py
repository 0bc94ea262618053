"""A run on the terminal: one readable line for each event, and what is going on now.

The honest unit of progress is the step: nobody knows how many are still to come.
On a terminal a last line says what the run is doing and for how long, with the
model's words as they come; into a file or a pipe only the events go.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.events import Event, ToolProgress, ToolStart, Turn
from harness.state import RunState
from uitweg.endings import next_steps
from uitweg.lines import lines_of
from uitweg.text import excerpt, safe

_WORDS_SHOWN = 60


class RunView:
    """Shows one run and its subagents. Use it as a context manager.

    Args:
        console: Where to. Live only where that is a terminal.
        full: Show every text whole.
    """

    def __init__(self, console: Console, *, full: bool = False) -> None:
        self._console = console
        self._full = full
        self._top: str | None = None
        self._doing = "starting"
        self._since = time.monotonic()
        self._words = ""
        self._live = Live(
            self, console=console, transient=True, refresh_per_second=8, redirect_stdout=False,
            redirect_stderr=False,
        )  # fmt: skip

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def __rich__(self) -> Text:
        seconds = time.monotonic() - self._since
        words = safe(" ".join(self._words.split()))[-_WORDS_SHOWN:]
        line = Text(f"  {self._doing} · {seconds:.0f} s", style="dim", no_wrap=True)
        return line.append(f"  {words}", style="italic") if words else line

    def on_delta(self, _run_id: str, _turn: int, text: str) -> None:
        """Take some more of the model's words."""
        self._words = (self._words + text)[-4 * _WORDS_SHOWN :]

    def on_event(self, event: Event) -> None:
        """Show one event."""
        self._top = self._top or event.run_id
        if isinstance(event, Turn) and not (event.tool_calls or self._full):
            # These words are the answer, which is told at the end.
            event = event.model_copy(update={"content": ""})
        inset = "" if event.run_id == self._top else "    "
        for text, style in lines_of(event, self._cut):
            line = Text(safe(text), style=style)
            for part in line.split("\n"):
                self._console.print(Text(inset).append_text(part), soft_wrap=True, highlight=False)
        self._note(event)

    def _note(self, event: Event) -> None:
        """What the run does from this event on."""
        if isinstance(event, ToolProgress):
            self._doing = f"running {event.tool_name}: {safe(event.message)}"
            return
        doing = f"running {event.tool_name}" if isinstance(event, ToolStart) else "asking the model"
        self._doing, self._since, self._words = doing, time.monotonic(), ""

    def _cut(self, text: str) -> str:
        return text if self._full else excerpt(text)


def show_outcome(console: Console, state: RunState, flags: str = "") -> None:
    """The answer, how it was found, and what can be done now, with `flags` on each command."""
    if state.answer:
        console.print(Text(safe(state.answer)), soft_wrap=True, highlight=False)
    if state.answered_from_evidence:
        console.print(Text("(answered from what the tools had returned)", style="dim"))
    if state.unsupported:
        named = ", ".join(state.unsupported)
        console.print(Text(safe(f"(no tool result holds: {named})"), style="yellow"))
    steps = next_steps(state)
    width = max((len(purpose) for purpose, _ in steps), default=0)
    for purpose, command in steps:
        console.print(f"  {purpose:<{width}}  {command}{flags}", soft_wrap=True, highlight=False)
