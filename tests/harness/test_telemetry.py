"""Spans, as a receiver of OTLP over HTTP gets them."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness.events import RunStarted, RunStopped, ToolStart
from harness.scripted_model import Call
from harness.telemetry import CONTENT, ENDPOINT, exported
from harness.tools import bundled_tools

TASK = "Which file mentions a timeout?"


class Receiver(BaseHTTPRequestHandler):
    """Keeps every span that comes."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def receiver(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.spans = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def attributes(span):
    return {
        item.key: getattr(item.value, item.value.WhichOneof("value"))
        for item in span.attributes
        if item.value.WhichOneof("value") != "array_value"
    }


def by_name(spans):
    return {span.name: span for span in spans}


async def test_a_run_is_a_tree_of_spans(receiver, runner, settings):
    harness = runner(Call("read_file", {"path": "errors.log"}), "errors.log")
    with exported() as spans:
        state = await harness.start(TASK, settings(), on_event=spans.on_event)
    found = by_name(receiver.spans)
    assert sorted(span.name for span in receiver.spans) == [
        "chat scripted", "chat scripted", "execute_tool read_file", "invoke_agent uitweg",
    ]  # fmt: skip
    agent, tool = found["invoke_agent uitweg"], found["execute_tool read_file"]
    assert not agent.parent_span_id
    assert {span.parent_span_id for span in receiver.spans} == {b"", agent.span_id}
    assert {span.trace_id for span in receiver.spans} == {agent.trace_id}
    told = attributes(agent)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["gen_ai.conversation.id"] == state.run_id
    assert told["uitweg.status"] == "completed"
    assert told["gen_ai.usage.input_tokens"] == state.usage.prompt_tokens
    assert attributes(found["chat scripted"])["gen_ai.request.model"] == "scripted"
    assert attributes(tool)["gen_ai.tool.call.id"] == "call_1_1"
    for span in receiver.spans:
        assert agent.start_time_unix_nano <= span.end_time_unix_nano <= agent.end_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano


async def test_nobodys_words_are_sent_unless_asked_for(receiver, runner, settings, monkeypatch):
    harness = runner(Call("read_file", {"path": "errors.log"}), "It is errors.log.")
    with exported() as spans:
        await harness.start(TASK, settings(), on_event=spans.on_event)
    plain = str(receiver.spans)
    assert "timeout" not in plain
    assert "errors.log" not in plain
    receiver.spans.clear()
    monkeypatch.setenv(CONTENT, "true")
    with exported() as spans:
        await harness.start(TASK, settings(), on_event=spans.on_event)
    found = by_name(receiver.spans)
    assert TASK in attributes(found["invoke_agent uitweg"])["gen_ai.input.messages"]
    tool = attributes(found["execute_tool read_file"])
    assert tool["gen_ai.tool.call.arguments"] == '{"path": "errors.log"}'
    assert "timed out" in tool["gen_ai.tool.call.result"]


async def test_a_failed_tool_and_a_run_that_waits(receiver, runner, settings):
    harness = runner(
        Call("read_file", {"path": "none.log"}), Call("delete_file", {"path": "notes.txt"})
    )
    with exported() as spans:
        state = await harness.start(TASK, settings(), on_event=spans.on_event)
    found = by_name(receiver.spans)
    failed = found["execute_tool read_file"]
    assert attributes(failed)["error.type"] == "error"
    assert failed.status.code == 2
    agent = found["invoke_agent uitweg"]
    assert attributes(agent)["uitweg.status"] == "interrupted"
    assert [event.name for event in agent.events] == ["approval_required"]
    assert agent.status.code == 0
    receiver.spans.clear()
    with exported() as spans:
        await harness.resume(state.run_id, on_event=spans.on_event)
    resumed = attributes(by_name(receiver.spans)["invoke_agent uitweg"])
    assert resumed["gen_ai.conversation.id"] == state.run_id
    assert resumed["gen_ai.request.model"] == state.settings.model


async def test_a_subagent_hangs_below_the_call_that_started_it(receiver, runner, settings):
    harness = runner(
        lambda messages: (
            "an answer"
            if "helper" in str(messages[1]) or len(messages) > 2
            else Call("research", {"question": "helper, which?"})
        ),
        tools=bundled_tools(),
    )
    with exported() as spans:
        await harness.start(
            "Ask.", settings(tools=("research", "list_files", "read_file")), on_event=spans.on_event
        )
    tool = by_name(receiver.spans)["execute_tool research"]
    agents = [span for span in receiver.spans if span.name == "invoke_agent uitweg"]
    assert sorted(span.parent_span_id for span in agents) == [b"", tool.span_id]


def test_without_an_endpoint_nothing_is_made(monkeypatch):
    monkeypatch.delenv(ENDPOINT, raising=False)
    with exported() as spans:
        assert spans is None


async def test_a_receiver_that_is_not_there_changes_nothing(runner, settings, monkeypatch):
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    with exported() as spans:
        state = await runner("done").start(TASK, settings(), on_event=spans.on_event)
    assert state.status == "completed"


def test_a_subagents_events_may_come_first(receiver):
    at = "2026-01-01T00:00:00.000Z"
    start = {"task": "t", "model": "m", "workspace": "w", "tools": (), "guidance": (), "time": at}
    end = {"status": "completed", "reason": "", "turns": 0, "tool_runs": 0, "time": at}
    counted = {"prompt_tokens": 0, "completion_tokens": 0, "cost_usd": None}
    with exported() as spans:
        for event in (
            RunStarted(run_id="child", parent_run_id="top", **start),
            RunStarted(run_id="top", **start),
            RunStopped(run_id="child", **end, **counted),
            ToolStart(
                run_id="top", call_id="c", tool_name="x", args={}, idempotency_key="", time=at
            ),
            RunStopped(run_id="top", **end, **counted),
        ):
            spans.on_event(event)
    tool = by_name(receiver.spans)["execute_tool x"]
    agents = [span for span in receiver.spans if span.name == "invoke_agent uitweg"]
    assert sorted(span.parent_span_id for span in agents) == [b"", tool.span_id]
