"""A run's events as OpenTelemetry spans, sent over OTLP where the environment says so.

Names and attributes follow the semantic conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/): `invoke_agent` for each stretch in which a
run is carried, in it `chat` for each turn and `execute_tool` for each tool that ran. A subagent's
run hangs below the call that started it. Nobody's words are in them unless asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from harness.events import (
    ApprovalDecided,
    ApprovalRequired,
    Event,
    Retry,
    RunResumed,
    RunStarted,
    RunStopped,
    ToolResult,
    ToolStart,
    Turn,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EXPORT_SECONDS = 3.0
"""How long a receiver that does not answer may hold up the end of a run."""

AGENT = "uitweg"


def available() -> bool:
    """Whether the packages that it takes are installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401 - only whether they are there
    except ImportError:
        return False
    return True


@contextmanager
def exported(env: Mapping[str, str] = os.environ) -> Iterator[Spans | None]:
    """What to tell a run's events to, for the time of the block; `None` where nothing is sent.

    Nothing is sent where `OTEL_EXPORTER_OTLP_ENDPOINT` is not set, or the packages are missing
    (the variable may be there for other programs; `uitweg doctor` says so).
    """
    if not env.get(ENDPOINT) or not available():
        yield None
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(
        resource=Resource.create({"service.name": AGENT}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=EXPORT_SECONDS)))
    spans = Spans(provider.get_tracer(AGENT), content=env.get(CONTENT, "").lower() == "true")
    try:
        yield spans
    finally:
        spans.close()
        provider.shutdown()


@dataclass(slots=True)
class _Stretch:
    """A run while it is carried."""

    span: Span
    model: str
    """Empty where it is not known."""
    tools: dict[str, Span] = field(default_factory=dict)
    """By call id, those that run."""


class Spans:
    """Makes spans of events. Tell it of every event of a run, in order."""

    def __init__(self, tracer: Tracer, *, content: bool = False) -> None:
        self._tracer = tracer
        self._content = content
        self._runs: dict[str, _Stretch] = {}
        self._early: dict[str, list[Event]] = {}
        """Events of a subagent's run that came before its parent's call: each run has an order
        of its own, and between two there is none."""

    def on_event(self, event: Event) -> None:
        """Take one event."""
        if event.run_id in self._early:
            self._early[event.run_id].append(event)
        elif isinstance(event, RunStarted) and event.parent_run_id and self._above(event) is None:
            self._early[event.run_id] = [event]
        else:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, (RunStarted, RunResumed)):
            self._begin(event)
            return
        stretch = self._runs.get(event.run_id)
        if stretch is None:
            return
        if isinstance(event, Turn):
            self._turn(event, stretch)
        elif isinstance(event, ToolStart):
            self._tool_start(event, stretch)
        elif isinstance(event, ToolResult):
            self._tool_result(event, stretch)
        elif isinstance(event, RunStopped):
            self._stop(event, stretch)
        elif isinstance(event, (Retry, ApprovalRequired, ApprovalDecided)):
            tool = {} if isinstance(event, Retry) else {"gen_ai.tool.name": event.tool_name}
            stretch.span.add_event(event.type, tool, _nanoseconds(event.time))

    def close(self) -> None:
        """End what is still open: whoever carries these runs ends."""
        for stretch in self._runs.values():
            for span in (*stretch.tools.values(), stretch.span):
                span.end()
        self._runs.clear()
        self._early.clear()

    def _begin(self, event: RunStarted | RunResumed) -> None:
        above = None
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": AGENT,
            "gen_ai.agent.name": AGENT,
            "gen_ai.conversation.id": event.run_id,
        }
        if event.model:
            attributes["gen_ai.request.model"] = event.model
        if isinstance(event, RunStarted):
            above = self._above(event)
            if self._content:
                attributes["gen_ai.input.messages"] = _messages("user", event.task)
        span = self._span(f"invoke_agent {AGENT}", event.time, attributes, above)
        self._runs[event.run_id] = _Stretch(span, event.model)

    def _above(self, event: RunStarted) -> Span | None:
        """The call that started this run, if it has begun."""
        parent = self._runs.get(event.parent_run_id or "")
        return next(reversed(parent.tools.values()), None) if parent else None

    def _turn(self, event: Turn, stretch: _Stretch) -> None:
        end = _nanoseconds(event.time)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": AGENT,
            "gen_ai.conversation.id": event.run_id,
            "gen_ai.usage.input_tokens": event.prompt_tokens,
            "gen_ai.usage.output_tokens": event.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": event.cached_tokens,
            "gen_ai.response.finish_reasons": (event.finish_reason,),
        }
        if stretch.model:
            attributes["gen_ai.request.model"] = stretch.model
        if event.first_token_ms is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = event.first_token_ms / 1000
        if self._content:
            attributes["gen_ai.output.messages"] = _messages("assistant", event.content)
        name = f"chat {stretch.model}" if stretch.model else "chat"
        span = self._span(name, end - int(event.ms * 1e6), attributes, stretch.span, client=True)
        span.end(end)

    def _tool_start(self, event: ToolStart, stretch: _Stretch) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.tool_name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": event.run_id,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = json.dumps(event.args, ensure_ascii=False)
        name = f"execute_tool {event.tool_name}"
        stretch.tools[event.call_id] = self._span(name, event.time, attributes, stretch.span)
        for run_id, early in list(self._early.items()):
            if getattr(early[0], "parent_run_id", None) == event.run_id:
                for one in self._early.pop(run_id):
                    self._take(one)

    def _tool_result(self, event: ToolResult, stretch: _Stretch) -> None:
        span = stretch.tools.pop(event.call_id, None)
        if span is None:  # the call was settled without its tool
            return
        if event.outcome != "ok":
            _mark_failed(span, event.outcome)
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", event.content)
        span.end(_nanoseconds(event.time))

    def _stop(self, event: RunStopped, stretch: _Stretch) -> None:
        span = stretch.span
        span.set_attribute("uitweg.status", event.status)
        span.set_attribute("gen_ai.usage.input_tokens", event.prompt_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", event.completion_tokens)
        if event.cost_usd is not None:
            span.set_attribute("uitweg.cost_usd", float(event.cost_usd))
        if self._content:
            span.set_attribute("gen_ai.output.messages", _messages("assistant", event.answer))
        if event.status == "failed":
            _mark_failed(span, event.status)
        end = _nanoseconds(event.time)
        for tool in stretch.tools.values():  # left behind by a call that was broken off
            tool.end(end)
        span.end(end)
        del self._runs[event.run_id]

    def _span(
        self,
        name: str,
        start: str | int,
        attributes: Mapping[str, Any],
        above: Span | None,
        *,
        client: bool = False,
    ) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        # An empty context, so that nothing of a program around it gets in.
        context = Context() if above is None else set_span_in_context(above, Context())
        return self._tracer.start_span(
            name,
            context,
            kind=SpanKind.CLIENT if client else SpanKind.INTERNAL,
            attributes=attributes,
            start_time=start if isinstance(start, int) else _nanoseconds(start),
        )


def _mark_failed(span: Span, kind: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _nanoseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1e9)


def _messages(role: str, text: str) -> str:
    """One message in the form of the conventions."""
    parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)
