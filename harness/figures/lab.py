"""Where the figures are made: a store, fresh demo workspaces, and runs against one endpoint."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness.approval import NO_RULES, Rules
from harness.cancel import CancelToken
from harness.demo import DEMO_FILES, copy_demo
from harness.events import Event, Turn
from harness.figures.tools import plain_tools
from harness.runner import Runner
from harness.state import Limits, Prices, RunState, Settings
from harness.store import Store
from harness.tool import Tool
from harness.tools.archive import DEMO_SECONDS

PRICES = Prices(input_per_million=Decimal(2), output_per_million=Decimal(12))
"""US dollars, as published."""

WHICH_FILE = "Which file mentions a timeout?"


@dataclass(frozen=True, slots=True)
class Carried:
    """A run that was carried to an ending, and the events of that."""

    state: RunState
    events: list[Event]

    @property
    def cost(self) -> float:
        """US dollars."""
        return cost_of(self.state)

    def turns(self) -> list[Turn]:
        """Its model replies, in order."""
        return [event for event in self.events if isinstance(event, Turn)]

    def figures(self) -> dict[str, Any]:
        """What is published of a run, under the published names."""
        state = self.state
        return {
            "turns": state.turns,
            "tool_runs": state.tool_runs,
            "in": state.usage.prompt_tokens,
            "out": state.usage.completion_tokens,
            "cost": self.cost,
            "status": state.status,
            "answer": state.answer,
        }


def cost_of(state: RunState) -> float:
    """US dollars of a run. Every run here has known prices."""
    return float(state.usage.cost_usd or 0)


@dataclass(slots=True)
class Lab:
    """Makes runs. `folder` receives the store and the workspaces."""

    base_url: str
    folder: Path
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _store: Store | None = None

    @property
    def store(self) -> Store:
        """One store for all runs, made when it is first needed."""
        if self._store is None:
            self._store = Store.open(self.folder / "runs.db")
        return self._store

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    def settings(self, model: str, tools: Mapping[str, Tool], **changes: Any) -> Settings:
        """Settings for a run with the published prices, in a new workspace of the demo's files."""
        archive = DEMO_SECONDS if "scan_archive" in tools else None
        workspace = copy_demo(self.folder / f"workspace-{next(self._numbers)}", archive)
        fields = {
            "base_url": self.base_url,
            "model": model,
            "workspace": str(workspace),
            "tools": tuple(tools),
            "prices": PRICES,
            "limits": Limits(max_turns=20),
        }
        return Settings.model_validate({**fields, **changes})

    @asynccontextmanager
    async def runner(
        self, tools: Mapping[str, Tool], rules: Rules = NO_RULES
    ) -> AsyncIterator[Runner]:
        """A runner with these tools, closed at the end."""
        async with Runner(self.store, tools=tools, rules=rules) as runner:
            yield runner

    async def run(
        self,
        model: str,
        task: str = WHICH_FILE,
        *,
        tools: Mapping[str, Tool] | None = None,
        rules: Rules = NO_RULES,
        watch: Callable[[Event], None] | None = None,
        cancel: CancelToken | None = None,
        **changes: Any,
    ) -> Carried:
        """Carry one run to its ending.

        Args:
            model: The scenario.
            task: What the person asks.
            tools: All that it may use; without it the three file tools.
            rules: Standing rules.
            watch: Called with each event.
            cancel: The run's token.
            changes: Fields of `Settings` that differ.
        """
        tools = plain_tools() if tools is None else tools
        events: list[Event] = []

        def note(event: Event) -> None:
            events.append(event)
            if watch is not None:
                watch(event)

        async with self.runner(tools, rules) as runner:
            settings = self.settings(model, tools, **changes)
            state = await runner.start(task, settings, on_event=note, cancel=cancel)
        return Carried(state, events)


def deleted_from(workspace: str) -> list[str]:
    """The demo's files that are gone from a workspace."""
    return [name for name in DEMO_FILES if not (Path(workspace) / name).exists()]
