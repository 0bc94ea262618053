"""What the command line and the page call: start, resume, decide, cancel."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from harness.approval import NO_RULES
from harness.approval import Policy as Rules
from harness.cancel import CancelToken
from harness.carrier import Carrier, OnDelta
from harness.dedupe import Memory
from harness.endings import cancelled, finish
from harness.errors import (
    AlreadyCarried,
    DecisionIncomplete,
    SettingsError,
    StoreError,
)
from harness.events import RunResumed, RunStarted
from harness.execute import execute
from harness.guidance import Policy, policies, policies_named
from harness.journal import Journal, OnEvent, now
from harness.loop import carry
from harness.ports import Provider
from harness.prompt import SYSTEM_PROMPT
from harness.schema import InvalidArguments
from harness.state import RESUMABLE, Cancelled, Decision, RunState, Settings, call_digest
from harness.stop import StopCondition, check_limits, raised
from harness.store import Lease, Store
from harness.store.watch import CancelWatch
from harness.subagent import Children
from harness.tool import Tool
from harness.tools import bundled_tools
from harness.workspace import Workspace

CancelOutcome = Literal["told", "asked", "ended"]


def http_provider(settings: Settings) -> Provider:
    """The default: the run's endpoint over HTTP, with the environment's key if it is for it."""
    # Imported here, because it takes longer than all the rest together.
    from harness.provider import HttpProvider, endpoint_from_environment

    endpoint = endpoint_from_environment()
    return HttpProvider(settings.base_url, endpoint.key_for(settings.base_url))


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
        provider_factory: Callable[[Settings], Provider] = http_provider,
        tools: Mapping[str, Tool] | None = None,
        rules: Rules = NO_RULES,
        stop_conditions: Sequence[StopCondition] = (),
        guidance: Mapping[str, Policy] | None = None,
    ) -> None:
        self.store = store
        self.tools = bundled_tools() if tools is None else dict(tools)
        self.rules = rules
        self._provider_factory = provider_factory
        self._stop_conditions = tuple(stop_conditions)
        self._guidance = policies() if guidance is None else dict(guidance)
        self._providers: dict[tuple[int, str], Provider] = {}
        self._watch = CancelWatch(store.path)

    async def __aenter__(self) -> Runner:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to the endpoints. The store stays open."""
        self._watch.close()
        providers = list(self._providers.values())
        self._providers.clear()
        for provider in providers:
            await provider.aclose()

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
        state = self._new_state(run_id, task, settings, workspace, parent)
        event = RunStarted(
            run_id=run_id,
            seq=1,
            time=state.created_at,
            task=state.task,
            model=settings.model,
            workspace=settings.workspace,
            tools=settings.tools,
            guidance=settings.guidance,
            parent_run_id=parent,
        )
        with self.store.claim(run_id):
            lease, created = self.store.create(state, (event,))
            journal = Journal(self.store, lease, state, on_event)
            journal.follow(created, (event,))
            # A given id may be taken, so nothing is spent before that is known.
            return await self._carry(
                journal, lease, workspace, on_event, on_delta, cancel, wait=given
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
        with self.store.claim(run_id):
            lease, state = await asyncio.wrap_future(
                self.store.acquire(run_id, ("running", *RESUMABLE))
            )
            journal = Journal(self.store, lease, state, on_event)
            journal.stage(
                RunResumed(run_id=run_id, from_status=state.status, changed=dict(limits or {})),
                status="running",
                reason="",
                interruption=None,
                settings=settings,
            )
            return await self._carry(journal, lease, workspace, on_event, on_delta, cancel)

    async def decide(self, run_id: str, decision: Decision) -> Decision:
        """Record what a person said about the call that a run waits for; it does not run yet.

        Args:
            run_id: The run.
            decision: Its `digest` is the one of what the person was shown.

        Returns the decision as it is kept: for `edit` bound to the edited arguments.
        Raises a `DecisionError`, `NoSuchRun` or a `StoreError`; then nothing has changed.
        """
        if decision.action == "reject" and not (decision.reason or "").strip():
            raise DecisionIncomplete(
                "A refusal needs a reason: without one the model reports what did not happen."
            )
        state = await asyncio.to_thread(self.store.load, run_id)
        args = dict(getattr(state.interruption, "args", {}))
        kept = decision
        if decision.action == "edit":
            args, digest = self._edited(state, decision)
            kept = decision.model_copy(update={"args": args, "digest": digest})
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
        """Raise `SettingsError` for what could not be carried out."""
        check_limits(settings)
        policies_named(settings.guidance, self._guidance)
        for name in settings.tools:
            if name not in self.tools:
                raise SettingsError(f"There is no tool {name}. There are: {', '.join(self.tools)}.")
        try:
            return Workspace(settings.workspace)
        except OSError as error:
            raise SettingsError(f"The workspace cannot be used: {error}") from None

    def _new_state(
        self, run_id: str, task: str, settings: Settings, workspace: Workspace, parent: str | None
    ) -> RunState:
        task = task.encode("utf-8", "replace").decode("utf-8")
        prompt = SYSTEM_PROMPT if settings.system_prompt is None else settings.system_prompt
        for policy in policies_named(settings.guidance, self._guidance):
            prompt = policy.first_prompt(settings, workspace, prompt)
        system = [{"role": "system", "content": prompt}] if prompt else []
        return RunState(
            run_id=run_id,
            task=task,
            settings=settings,
            created_at=now(),
            parent_run_id=parent,
            last_seq=1,
            messages=(*system, {"role": "user", "content": task}),
        )

    def _edited(self, state: RunState, decision: Decision) -> tuple[dict[str, Any], str]:
        """The edited arguments, validated, and the digest of what would run."""
        record = state.calls.get(decision.call_id)
        tool = self.tools.get(record.tool_name) if record else None
        if record is None or tool is None:
            raise DecisionIncomplete(f"Run {state.run_id} has no call {decision.call_id} to edit.")
        try:
            args = tool.check(decision.args or {})
        except InvalidArguments as error:
            raise DecisionIncomplete(str(error)) from None
        fingerprint = tool.fingerprint(args, Workspace(state.settings.workspace))
        return args, call_digest(state.run_id, record.call_id, tool.name, args, fingerprint)

    async def _carry(
        self,
        journal: Journal,
        lease: Lease,
        workspace: Workspace,
        on_event: OnEvent | None,
        on_delta: OnDelta | None,
        cancel: CancelToken | None,
        *,
        wait: bool = False,
    ) -> RunState:
        token = cancel or CancelToken()
        run = self._carrier(journal, workspace, token, on_event, on_delta)
        with self._watched(lease.run_id, token):
            try:
                if wait:
                    await journal.durable()
                return await carry(run)
            except asyncio.CancelledError:
                # The caller's task is being torn down: the run still ends in order.
                token.cancel("the program was told to end")
                await carry(run)
                raise
            except BaseException:
                journal.close()
                with contextlib.suppress(StoreError):
                    self.store.abandon(lease)
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
        memory = Memory(settings.dedupe, tools)
        contents = {
            message["tool_call_id"]: message["content"]
            for message in journal.state.messages
            if message["role"] == "tool"
        }
        for record in journal.state.calls.values():
            if record.state == "settled":
                memory.note(record, contents[record.call_id])

        async def child(
            run_id: str, task: str, settings: Settings, parent: str, cancel: CancelToken
        ) -> RunState:
            return await self._child(run_id, task, settings, parent, cancel, on_event, on_delta)

        return Carrier(
            journal=journal,
            provider=self._provider(settings),
            execute=execute,
            tools=tools,
            workspace=workspace,
            cancel=token,
            rules=self.rules,
            policies=policies_named(settings.guidance, self._guidance),
            stop_conditions=self._stop_conditions,
            memory=memory,
            children=lambda record: Children(journal.state, record, tools, token, child),
            on_delta=on_delta,
        )

    async def _child(
        self,
        run_id: str,
        task: str,
        settings: Settings,
        parent: str,
        cancel: CancelToken,
        on_event: OnEvent | None,
        on_delta: OnDelta | None,
    ) -> RunState:
        """Carry a subagent's run; one that a crash broke off goes on."""
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

    @contextlib.contextmanager
    def _watched(self, run_id: str, token: CancelToken) -> Iterator[None]:
        self._watch.add(run_id, token)
        try:
            yield
        finally:
            self._watch.remove(run_id)

    def _provider(self, settings: Settings) -> Provider:
        """One provider for each event loop and address: connections belong to a loop."""
        key = (id(asyncio.get_running_loop()), settings.base_url)
        if key not in self._providers:
            self._providers[key] = self._provider_factory(settings)
        return self._providers[key]
