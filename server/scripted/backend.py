"""A `Backend` without a model: scenarios and recordings, with latency and faults on command."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from server.backend import CallPiece, Finish, FinishReason, Piece, TextPiece
from server.errors import BadRequest, ModelNotFound
from server.scripted import faults, tokens
from server.scripted.attempt import current
from server.scripted.conversation import Reply, offered_only, read_conversation, with_ids
from server.scripted.recording import read_recording
from server.scripted.scenarios import SCENARIOS, Scenario
from server.scripted.settings import Rule, read_rules, rule_for, split_model
from server.wire import ChatRequest

log = logging.getLogger(__name__)

PRICES = {"input_per_million": 2, "output_per_million": 12}
"""US dollars: the prices that the published figures were made with."""

COUNTERS = {
    "requests": "Chat requests that came.",
    "prompt_tokens": "Prompt tokens of the replies.",
    "completion_tokens": "Completion tokens of the replies.",
}


class ScriptedBackend:
    """See the module's docstring."""

    def __init__(
        self, scenarios: Iterable[Scenario] = SCENARIOS, rules: Iterable[Rule] = ()
    ) -> None:
        """`rules` hold for every request, before those in the model's name.

        Where two scenarios have one name, the later one is played.
        """
        self._scenarios = {scenario.name: scenario for scenario in scenarios}
        self._rules = tuple(rules)
        self._counts: Counter[str] = Counter()
        tokens.encoding()  # before the first request, which would wait half a second for it

    @classmethod
    def from_files(
        cls, recordings: Iterable[Path] = (), settings: Path | None = None
    ) -> ScriptedBackend:
        """The built-in scenarios, and those of these files.

        Raises:
            SettingsError: when a file cannot be used.
        """
        recorded = [read_recording(path).scenario() for path in recordings]
        rules = () if settings is None else read_rules(settings)
        return cls([*SCENARIOS, *recorded], rules)

    def state(self) -> Mapping[str, Any]:
        """Always ready."""
        detail = f"scripted: {len(self._scenarios)} scenarios, no model"
        return {"status": "ok", "detail": detail, "scripted": True}

    def models(self) -> list[dict[str, Any]]:
        """One model a scenario. `uitweg.scripted` tells a client that nothing thinks here."""
        return [
            {
                "id": scenario.name,
                "object": "model",
                "created": 0,
                "owned_by": "uitweg",
                "uitweg": {
                    "scripted": True,
                    "profile": "none",
                    "description": scenario.description,
                    "tools": list(scenario.tools),
                    "prices": PRICES,
                },
            }
            for scenario in self._scenarios.values()
        ]

    def metrics(self) -> str:
        """What was asked and answered since the start."""
        lines = []
        for name, words in COUNTERS.items():
            metric = f"uitweg_scripted_{name}_total"
            lines += [f"# HELP {metric} {words}", f"# TYPE {metric} counter"]
            lines.append(f"{metric} {self._counts[name]}")
        return "\n".join(lines) + "\n"

    async def chat(self, request: ChatRequest) -> AsyncIterator[Piece]:
        """The scenario's reply to this conversation, with what the rules make of it."""
        scenario, rules = self._find(request.model)
        _refuse_what_no_script_can(request)
        talk = read_conversation(request)
        rule = rule_for(rules, scenario.name, talk.turn + 1, current().attempt)
        reply = with_ids(offered_only(scenario.play(talk), talk.offered), talk.calls_so_far)
        if reply.note:
            log.warning("%s", reply.note)
        prompt_tokens = await _count_prompt(request)
        self._counts.update(requests=1, prompt_tokens=prompt_tokens)
        reply = _limited(reply, request)
        await _wait(rule.first_token_ms)
        reply = await _with_fault(reply, rule, prompt_tokens, stream=bool(request.stream))
        completion_tokens = reply.completion_tokens()
        self._counts.update(completion_tokens=completion_tokens)
        # Cut only where somebody can see it: each piece costs both sides its own event.
        paced = rule.token_ms is not None or rule.fault is not None
        for number, piece in enumerate(_pieces(reply, _by_token if paced else _whole)):
            if number:
                await _wait(rule.token_ms)
                if rule.fault == "stall_midway":
                    await _stall()
            yield piece
        yield Finish(
            reason=cast(FinishReason, reply.reason),
            prompt_tokens=prompt_tokens,
            cached_tokens=0,
            completion_tokens=completion_tokens,
        )

    def close(self) -> None:
        """Nothing to stop."""

    def _find(self, model: str | None) -> tuple[Scenario, tuple[Rule, ...]]:
        """The scenario that a model's name asks for, and the rules that hold for it."""
        name, rules = split_model(model or "")
        if name not in self._scenarios:
            raise ModelNotFound(model or "", self._scenarios)
        return self._scenarios[name], (*self._rules, *rules)


def _refuse_what_no_script_can(request: ChatRequest) -> None:
    """A script says what it says: it cannot follow a schema, or be made to call a tool."""
    if request.tool_choice.mode == "required":
        raise BadRequest("A scripted model cannot be made to call a tool.", param="tool_choice")
    if request.response_format is not None and request.response_format.type != "text":
        raise BadRequest("A scripted model cannot follow a format.", param="response_format")


LONG_PROMPT = 200_000
"""Characters above which counting would keep the other requests waiting: about 0.1 s."""


async def _count_prompt(request: ChatRequest) -> int:
    parts = request.raw_messages, request.raw_tools
    if sum(len(message.content or "") for message in request.messages) < LONG_PROMPT:
        return tokens.count_prompt(*parts)
    return await asyncio.to_thread(tokens.count_prompt, *parts)


def _limited(reply: Reply, request: ChatRequest) -> Reply:
    """The reply within `stop` and the token limit."""
    text = reply.text
    if text is not None:
        ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
        text = text[: min(ends)] if ends else text
    reply = Reply(text, reply.calls, reply.finish_reason)
    limit = request.token_limit
    if limit is None or reply.completion_tokens() <= limit:
        return reply
    if reply.calls:
        return faults.WRONG["length"](reply)
    kept = tokens.encoding().encode_ordinary(text or "")[: max(limit - 1, 0)]
    shorter = tokens.encoding().decode(kept, errors="ignore")
    return Reply(shorter, finish_reason="length")


async def _with_fault(reply: Reply, rule: Rule, prompt_tokens: int, *, stream: bool) -> Reply:
    """The reply with the rule's fault in it, if it has one.

    Raises:
        RawReply: where the fault is an answer that is no chat completion.
    """
    name = rule.fault
    if name is None:
        return reply
    if name.isdecimal():
        raise faults.http_error(int(name), rule.retry_after, rule.retry_date)
    if name == "stall":
        await _stall()
    if name in faults.RAW:
        raise faults.RAW[name](faults.Wire(reply, prompt_tokens, stream))
    change = faults.WRONG.get(name)
    return change(reply) if change else reply


def _pieces(reply: Reply, cut: Callable[[str], list[str]]) -> list[Piece]:
    """The reply as it is given out, its texts cut by `cut`."""
    pieces: list[Piece] = [TextPiece(text) for text in cut(reply.text or "")]
    for index, call in enumerate(reply.calls):
        pieces.append(CallPiece(index=index, id=call.id, name=call.tool))
        pieces += [CallPiece(index=index, arguments=text) for text in cut(call.arguments)]
    return pieces


def _whole(text: str) -> list[str]:
    return [text] if text else []


MOST_PIECES = 1000
"""Above this the reply goes out whole: ten megabytes token by token would take minutes."""


def _by_token(text: str) -> list[str]:
    """The text as a model would give it out, a token at a time; whole characters only."""
    if len(text) > 8 * MOST_PIECES:
        return [text]
    encoder = tokens.encoding()
    _, starts = encoder.decode_with_offsets(encoder.encode_ordinary(text))
    edges = sorted({*starts, len(text)})
    return [text[a:b] for a, b in pairwise(edges)]


async def _wait(milliseconds: float | None) -> None:
    if milliseconds:
        await asyncio.sleep(milliseconds / 1000)


async def _stall() -> None:
    """Say nothing more until the client goes."""
    current().silent = True
    await asyncio.Event().wait()
