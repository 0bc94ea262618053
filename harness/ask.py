"""One turn: the transcript goes to the model, its reply comes into the run."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import ProviderFailed
from harness.events import Guidance, Retry, Turn
from harness.ports import BrokenOff, Reply, WireCall
from harness.state import CallRecord, Message, NoReply, RunState, Usage
from harness.stop import Stop

if TYPE_CHECKING:
    from harness.carrier import Carrier
    from harness.guidance import Calls

MAX_ARGUMENT_CHARS = 64 * 1024
"""Longer arguments are not kept in the transcript: each later turn would send them again."""


async def ask(run: Carrier) -> Stop | None:
    """Ask for the next turn and record it; a `Stop` when no usable reply came."""
    state = run.state
    tools = [dict(tool.wire) for tool in run.tools.values()]
    for policy in run.policies:
        tools = policy.shape_tools(run, tools)
    await run.journal.soon()
    outcome = await _complete(run, state.messages, tools, state.settings.max_completion_tokens)
    if not isinstance(outcome, Reply):
        return outcome
    calls = _with_ids(outcome.tool_calls, state.calls)
    message = _message(outcome.content, calls)
    records = _records(calls, state.turns + 1)
    if not records and not message["content"].strip():
        _record(run, outcome, outcome.finish_reason)
        return _nothing_said(outcome)
    if records and outcome.finish_reason == "length":
        # The call in which the reply was cut off cannot be taken for a whole one.
        records[-1] = records[-1].model_copy(update={"outcome": "invalid"})
    _record(run, outcome, outcome.finish_reason, message, records)
    return None


def propose(run: Carrier, policy: str, proposed: Calls) -> None:
    """Take calls into the transcript that a policy asks for in the model's stead."""
    state = run.state
    texts = [
        WireCall("", name, json.dumps(args, ensure_ascii=False)) for name, args in proposed.calls
    ]
    calls = _with_ids(texts, state.calls)
    detail = f"Asks for {', '.join(call.name for call in calls)} in the model's stead."
    run.journal.stage(
        Guidance(
            run_id=state.run_id,
            policy=policy,
            detail=detail,
            call_ids=tuple(call.id for call in calls),
        ),
        messages=[_message(None, calls)],
        calls=_records(calls, state.turns),
    )


async def ask_aside(run: Carrier, messages: Sequence[Message], max_tokens: int) -> Reply | None:
    """Ask in a clean window, without tools; the transcript stays as it is."""
    await run.journal.soon()
    outcome = await _complete(run, messages, [], max_tokens, "evidence")
    if not isinstance(outcome, Reply):
        return None
    _record(run, outcome, outcome.finish_reason, purpose="evidence")
    return outcome


async def _complete(
    run: Carrier,
    messages: Sequence[Message],
    tools: list[dict[str, Any]],
    max_tokens: int | None,
    purpose: Literal["step", "evidence"] = "step",
) -> Reply | Stop | None:
    """A reply that came whole. Whatever else comes is counted, then a `Stop` or `None`."""
    state = run.state
    turn = state.turns + 1

    def on_delta(text: str) -> None:
        if run.on_delta is not None:
            run.on_delta(state.run_id, turn, text)

    def on_retry(attempt: int, error: str, wait_seconds: float) -> None:
        run.journal.stage(
            Retry(
                run_id=state.run_id, attempt=attempt, error=error, wait_seconds=wait_seconds
            )
        )  # fmt: skip
        run.journal.later()

    try:
        return await run.provider.complete(
            messages=messages,
            tools=tools,
            model=state.settings.model,
            temperature=state.settings.temperature,
            max_tokens=max_tokens,
            cancel=run.cancel,
            on_delta=on_delta if run.on_delta else None,
            on_retry=on_retry,
        )
    except BrokenOff as broken:
        _record(run, broken.reply, "cancelled", purpose=purpose)
        return None
    except ProviderFailed as error:
        if isinstance(error.reply, Reply) and any(error.reply.usage):
            _record(run, error.reply, "error", purpose=purpose)
        return Stop("interrupted", str(error), NoReply(detail=str(error)))


def _record(
    run: Carrier,
    reply: Reply,
    finish_reason: str,
    message: Message | None = None,
    records: Sequence[CallRecord] = (),
    purpose: Literal["step", "evidence"] = "step",
) -> None:
    """Count the reply, and take its message into the transcript where there is one."""
    state = run.state
    usage = _usage(state, reply, finish_reason)
    total = state.usage + usage
    run.journal.stage(
        Turn(
            run_id=state.run_id,
            turn=state.turns + 1,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
            cost_usd=usage.cost_usd,
            run_cost_usd=total.cost_usd,
            finish_reason=finish_reason,
            ms=reply.ms,
            first_token_ms=reply.first_token_ms,
            content=_clean(reply.content or ""),
            tool_calls=tuple(record.call_id for record in records),
            purpose=purpose,
        ),
        messages=[] if message is None else [message],
        calls=records,
        turns=state.turns + 1,
        usage=total,
    )


def _usage(state: RunState, reply: Reply, finish_reason: str) -> Usage:
    prompt, cached, completion = reply.usage
    # A whole reply that nobody counted was not free: what it cost is unknown.
    uncounted = not any(reply.usage) and finish_reason not in ("cancelled", "error")
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        cost_usd=None if uncounted else state.settings.prices.cost(prompt, completion),
    )


def _message(content: str | None, calls: Sequence[WireCall]) -> Message:
    """The assistant message as it goes back over the wire."""
    text = _clean(content or "")
    if not calls:
        return {"role": "assistant", "content": text}
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ],
    }


def _records(calls: Iterable[WireCall], turn: int) -> list[CallRecord]:
    return [
        CallRecord(call_id=call.id, turn=turn, tool_name=call.name, arguments=call.arguments)
        for call in calls
    ]


def _with_ids(calls: Iterable[WireCall], taken: Mapping[str, object]) -> list[WireCall]:
    """The calls with an id each that no other call of the run has."""
    seen: set[str] = set()
    safe = []
    for call in calls:
        call_id = _clean(call.id or "")
        if not call_id or call_id in taken or call_id in seen:
            call_id = f"call_{uuid.uuid4().hex[:12]}"
        seen.add(call_id)
        safe.append(WireCall(call_id, _clean(call.name or ""), _arguments(call.arguments)))
    return safe


def _arguments(text: str) -> str:
    if len(text) > MAX_ARGUMENT_CHARS:
        return f"[{len(text):,} characters of arguments, not kept]"
    return _clean(text)


def _clean(text: str) -> str:
    """Text that has a UTF-8 form: half a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _nothing_said(reply: Reply) -> Stop:
    detail = f"The model's reply had neither text nor a tool call ({reply.finish_reason})."
    return Stop("interrupted", detail, NoReply(detail=detail))
