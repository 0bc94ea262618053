"""Carries runs for the page: one thread with one event loop.

Views hand work over and wait only until the run stands in the store; the run
then goes on whether or not anybody watches. When the page stops, its runs are
cancelled with that reason, so that what they did is recorded and they can be
resumed; a run whose process was killed is found as left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from typing import Any

from harness.cancel import CancelToken
from harness.errors import HarnessError
from harness.events import Event
from harness.provider import HttpProvider
from harness.runner import CancelOutcome, Runner
from harness.state import Decision, DecisionAction, RunState, Settings
from harness.store import Store
from web.config import PageConfig
from web.hub import Hub
from web.rules import rules_of

log = logging.getLogger(__name__)

BEGIN_SECONDS = 10.0
"""How long a view waits for a run to stand in the store."""
END_SECONDS = 3.0
"""How long a stopping page waits for its runs to end."""

STOPPED = "Uitweg was stopped"


def make_runner(store: Store, config: PageConfig) -> Runner:
    """The runner of a page. The person's key goes to the server it is for, and nowhere else."""

    def provider(settings: Settings) -> HttpProvider:
        named = settings.base_url == config.named_url
        return HttpProvider(settings.base_url, config.api_key if named else None)

    return Runner(store, provider_factory=provider, tools=config.all_tools)


class TooSlow(HarnessError):
    """The run did not begin in time."""


class Carrier:
    """See the module's docstring. Its methods are called from any thread."""

    def __init__(self, make: Callable[[], Runner], config: PageConfig, hub: Hub) -> None:
        self._config = config
        self._hub = hub
        self._lock = threading.Lock()
        self._tasks: dict[str, Future[RunState]] = {}
        self._deciding: set[str] = set()
        self._end = CancelToken()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="runs", daemon=True)
        self._thread.start()
        self._runner = make()

    # What views ask for

    def start(self, task: str, settings: Settings) -> str:
        """Start a run and return its id once it stands in the store.

        Raises what `Runner.start` raises before it has written anything.
        """
        self._runner.rules = rules_of(self._config)
        run_id = uuid.uuid4().hex[:12]
        begun = threading.Event()
        self._carry(
            run_id,
            self._runner.start(
                task,
                settings,
                run_id=run_id,
                on_event=self._told(begun),
                on_delta=self._hub.delta,
                cancel=self._end.child(),
            ),
            begun,
        )
        return run_id

    def resume(self, run_id: str, limits: Mapping[str, Any]) -> None:
        """Carry a run on; returns once that stands in the store."""
        self._runner.rules = rules_of(self._config)
        begun = threading.Event()
        self._carry(
            run_id,
            self._runner.resume(
                run_id,
                limits=limits,
                on_event=self._told(begun),
                on_delta=self._hub.delta,
                cancel=self._end.child(),
            ),
            begun,
        )

    def decide(
        self,
        run_id: str,
        *,
        action: DecisionAction,
        call_id: str,
        digest: str,
        args: dict[str, Any] | None,
        reason: str | None,
    ) -> None:
        """Record a decision and carry the run on. Raises a `DecisionError` and does nothing."""
        decision = Decision(call_id=call_id, action=action, digest=digest, args=args, reason=reason)
        with self._about_to_go_on(run_id):
            self._call(self._runner.decide(run_id, decision))
            self._hub.changed(run_id)
            self.resume(run_id, {})

    def stop(self, run_id: str, reason: str) -> CancelOutcome:
        """Stop a run in whatever process it is carried."""
        outcome = self._runner.cancel(run_id, reason)
        if outcome == "ended":
            self._hub.changed(run_id)
        return outcome

    def carries(self, run_id: str) -> bool:
        """Whether a run is carried here, or is just about to be."""
        with self._lock:
            return run_id in self._tasks or run_id in self._deciding

    def end_runs(self) -> None:
        """Cancel every run of this page, also one that begins now, and wait for the endings."""
        self._end.cancel(STOPPED)
        with self._lock:
            tasks = list(self._tasks.values())
        wait(tasks, timeout=END_SECONDS)

    def close(self) -> None:
        """End every run of this page, then the loop."""
        self.end_runs()
        with contextlib.suppress(TimeoutError):
            self._call(self._runner.aclose(), END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    # Within

    def _call(self, work: Coroutine[Any, Any, Any], timeout: float = BEGIN_SECONDS) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def _told(self, begun: threading.Event) -> Callable[[Event], None]:
        def told(event: Event) -> None:
            begun.set()
            self._hub.changed(event.run_id)
            if self._config.observer is not None:
                self._config.observer(event)

        return told

    def _carry(
        self, run_id: str, work: Coroutine[Any, Any, RunState], begun: threading.Event
    ) -> None:
        """Run `work` in the loop; wait for its first event, or for its failure before one."""
        task = asyncio.run_coroutine_threadsafe(work, self._loop)
        with self._lock:
            self._tasks.setdefault(run_id, task)
        task.add_done_callback(lambda done: self._ended(run_id, done, begun))
        if not begun.wait(BEGIN_SECONDS):
            raise TooSlow(f"Run {run_id} has not begun after {BEGIN_SECONDS:.0f} s. Look again.")
        if task.done() and (error := task.exception()) is not None:
            raise error

    def _ended(self, run_id: str, task: Future[RunState], begun: threading.Event) -> None:
        with self._lock:
            if self._tasks.get(run_id) is task:
                del self._tasks[run_id]
        begun.set()
        self._hub.changed(run_id)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, HarnessError):
            log.error("Run %s broke off: %s", run_id, error, exc_info=error)

    @contextlib.contextmanager
    def _about_to_go_on(self, run_id: str) -> Any:
        with self._lock:
            self._deciding.add(run_id)
        try:
            yield
        finally:
            with self._lock:
                self._deciding.discard(run_id)
