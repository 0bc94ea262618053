"""What the command line and the page call: start, resume, decide, cancel."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Literal

from harness.approval import NO_RULES
from harness.approval import Policy as Rules
from harness.approval.bind import bound
from harness.beginning import check_settings, new_run
from harness.cancel import CancelToken
from harness.carrier import Carrier, OnDelta
from harness.dedupe import Memory
from harness.endings import cancelled, finish
from harness.errors import AlreadyCarried, StoreError
from harness.events import RunResumed
from harness.execute import execute
from harness.guidance import Policy, policies, policies_named
from harness.journal import Journal, OnEvent, now
from harness.loop import carry
from harness.providers import ProviderFactory, Providers, http_provider
from harness.state import RESUMABLE, Cancelled, Decision, RunState, Settings
from harness.stop import StopCondition, raised
from harness.store import Lease, Store
from harness.store.watch import CancelWatch
from harness.subagent import Children
from harness.tool import Tool
from harness.tools import bundled_tools
from harness.workspace import Workspace

CancelOutcome = Literal["told", "asked", "ended"]


class Runner:
    """Carries any number of runs at once, in one event loop.

    Args:
        store: Where they are kept.
        provider_factory: Makes the provider for a run's settings; one is kept
            for each address.
        tools: All tools that runs may name.
        rules: The person's standing rules.
        stop_conditions: More conditions for every run.
        guidance: All policies that runs may name.
    """

    def __init__(
        self,
        store: Store,
        *,
        provider_factory: ProviderFactory = http_provider,
        tools: Mapping[str, Tool] | None = None,
        rules: Rules = NO_RULES,
        stop_conditions: Sequence[StopCondition] = (),
        guidance: Mapping[str, Policy] | None = None,
    ) -> None:
        self.store = store
        self.tools = bundled_tools() if tools is None else dict(tools)
        self.rules = rules
        self._stop_conditions = tuple(stop_conditions)
        self._guidance = policies() if guidance is None else dict(guidance)
        self._providers = Providers(provider_factory)
        self._watch = CancelWatch(store.path)

    async def __aenter__(self) -> Runner:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to the endpoints. The store stays open."""
        self._watch.close()
        await self._providers.aclose()

    async def start(
        self,
        task: str,
        settings: Settings,
        *,
        run_id: str | None = None,
        parent: str | None = None,
        on_event: OnEvent | None = None,
        on_delta: OnDelta | None = None,
        cancel: CancelToken | None = None,
    ) -> RunState:
        """Create a run and carry it to its ending.

        Args:
            task: What the person wants.
            settings: How it is carried out.
            run_id: Its id; without one it gets a new one.
            parent: The run that started it.
            on_event: Called with each event once it is on the disk.
            on_delta: Called with the model's words as they come.
            cancel: Set it to stop the run.

        Raises `SettingsError` before anything is written, `RunExists`, or a `StoreError`.
        """
        workspace = self._check(settings)
        given, run_id = run_id is not None, run_id or uuid.uuid4().hex[:12]
        policies = policies_named(settings.guidance, self._guidance)
        state, events = new_run(run_id, task, settings, workspace, policies, parent)
        token = cancel or CancelToken()
        with self._holding(run_id, token):
            lease = self.store.lease(run_id)
            journal = Journal(self.store, lease, state, on_event, new=True)
            for event in events:
                journal.stage(event)
            # A given id may be taken, so nothing is spent before that is known.
            return await self._carry(
                journal, lease, workspace, on_event, on_delta, token, wait=given
            )

    async def resume(
        self,
        run_id: str,
        *,
        limits: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        on_delta: OnDelta | None = None,
        cancel: CancelToken | None = None,
    ) -> RunState:
        """Go on with a run that was interrupted, reached a limit, or lost its process.

        Args:
            run_id: Which one.
            limits: New values for some of its `Limits`.
            on_event: As for `start`.
            on_delta: As for `start`.
            cancel: As for `start`.

        Raises `NoSuchRun`, `NotResumable`, `AlreadyCarried`, `SettingsError` or a `StoreError`.
        """
        settings = (await asyncio.to_thread(self.store.load, run_id)).settings
        settings = settings.model_copy(update={"limits": raised(settings.limits, limits or {})})
        workspace = self._check(settings)
        token = cancel or CancelToken()
        with self._holding(run_id, token):
            lease, state = await self._acquire(run_id)
            journal = Journal(self.store, lease, state, on_event)
            journal.stage(
                RunResumed(
                    run_id=run_id,
                    from_status=state.status,
                    model=settings.model,
                    changed=dict(limits or {}),
                ),
                status="running",
                reason="",
                interruption=None,
                settings=settings,
            )
            return await self._carry(journal, lease, workspace, on_event, on_delta, token)

    async def decide(self, run_id: str, decision: Decision) -> Decision:
        """Record what a person said about the call that a run waits for; it does not run yet.

        Args:
            run_id: The run.
            decision: Its `digest` is the one of what the person was shown.

        Returns the decision as it is kept: for `edit` bound to the edited arguments.
        Raises a `DecisionError`, `NoSuchRun` or a `StoreError`; then nothing has changed.
        """
        state = await asyncio.to_thread(self.store.load, run_id)
        kept, args = bound(decision, state, self.tools)
        await asyncio.wrap_future(self.store.decide(run_id, kept, decision.digest, args, now()))
        return kept

    def cancel(self, run_id: str, reason: str) -> CancelOutcome:
        """Stop a run, from any thread and any process.

        Returns `told` when this runner carries it and has set its token, `asked`
        when another process carries it and will see the request within 0.1 s, and
        `ended` when nobody carried it: then it is interrupted now. Raises
        `NotResumable` for a run that has ended otherwise.
        """
        token = self._watch.token(run_id)
        if token is not None:
            token.cancel(reason)
            return "told"
        try:
            return self._end_uncarried(run_id, reason)
        except AlreadyCarried:
            self.store.request_cancel(run_id, reason).result()
            return "asked"

    def _end_uncarried(self, run_id: str, reason: str) -> CancelOutcome:
        with self.store.claim(run_id):
            lease, state = self.store.acquire(run_id, ("running", "interrupted")).result()
            journal = Journal(self.store, lease, state)
            if isinstance(state.interruption, Cancelled):
                self.store.abandon(lease).result()
                return "ended"
            finish(journal, cancelled(reason))
            if step := journal.take():
                self.store.commit(step).result()
        return "ended"

    def _check(self, settings: Settings) -> Workspace:
        return check_settings(settings, self.tools, self._guidance)

    @contextlib.contextmanager
    def _holding(self, run_id: str, token: CancelToken) -> Iterator[None]:
        """Hold the run within this process, where `cancel` finds its token."""
        with self.store.claim(run_id):
            self._watch.add(run_id, token)
            try:
                yield
            finally:
                self._watch.remove(run_id)

    async def _acquire(self, run_id: str) -> tuple[Lease, RunState]:
        acquired = self.store.acquire(run_id, ("running", *RESUMABLE))
        try:
            return await asyncio.wrap_future(acquired)
        except asyncio.CancelledError:
            acquired.add_done_callback(self._give_up)
            raise

    def _give_up(self, acquired: Future[tuple[Lease, RunState]]) -> None:
        """Leave a run alone that was acquired when nobody wanted it any more."""
        if acquired.exception() is None:
            with contextlib.suppress(StoreError):
                self.store.abandon(acquired.result()[0])

    async def _carry(
        self,
        journal: Journal,
        lease: Lease,
        workspace: Workspace,
        on_event: OnEvent | None,
        on_delta: OnDelta | None,
        token: CancelToken,
        *,
        wait: bool = False,
    ) -> RunState:
        run = self._carrier(journal, workspace, token, on_event, on_delta)
        try:
            return await self._to_its_end(run, wait=wait)
        except BaseException:
            # Where its ending could be written, this changes nothing any more.
            journal.close()
            with contextlib.suppress(StoreError):
                self.store.abandon(lease)
            raise

    async def _to_its_end(self, run: Carrier, *, wait: bool) -> RunState:
        try:
            if wait:
                await run.journal.durable()
            return await carry(run)
        except asyncio.CancelledError:
            # The caller's task is being torn down: the run still ends in order.
            run.cancel.cancel("the program was told to end")
            await carry(run)
            raise

    def _carrier(
        self,
        journal: Journal,
        workspace: Workspace,
        token: CancelToken,
        on_event: OnEvent | None,
        on_delta: OnDelta | None,
    ) -> Carrier:
        settings = journal.state.settings
        tools = {name: self.tools[name] for name in settings.tools}

        child = partial(self._child, on_event, on_delta)
        return Carrier(
            journal=journal,
            provider=self._providers.of(settings),
            execute=execute,
            tools=tools,
            workspace=workspace,
            cancel=token,
            rules=self.rules,
            policies=policies_named(settings.guidance, self._guidance),
            stop_conditions=self._stop_conditions,
            memory=Memory.of(journal.state, tools),
            children=lambda record: Children(journal.state, record, tools, token, child),
            on_delta=on_delta,
        )

    async def _child(
        self,
        on_event: OnEvent | None,
        on_delta: OnDelta | None,
        run_id: str,
        task: str,
        settings: Settings,
        parent: str,
        cancel: CancelToken,
    ) -> RunState:
        """Carry a subagent's run, as `StartChild`; one that a crash broke off goes on."""
        token = cancel.child()
        if not await asyncio.to_thread(self.store.exists, run_id):
            return await self.start(
                task, settings, run_id=run_id, parent=parent,
                on_event=on_event, on_delta=on_delta, cancel=token,
            )  # fmt: skip
        state = await asyncio.to_thread(self.store.load, run_id)
        if state.status != "running":
            return state
        return await self.resume(run_id, on_event=on_event, on_delta=on_delta, cancel=token)
