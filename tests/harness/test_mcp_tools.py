"""MCP servers: a public one, and one of ours that behaves oddly."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import CancelToken
from harness.errors import SettingsError
from harness.mcp_server import McpServer
from harness.mcp_tools import mcp_tools
from harness.schema import InvalidArguments
from harness.scripted_model import Call
from harness.testing import call_tool, call_tool_async
from harness.tools import bundled_tools

ODD = Path(__file__).parent / "mcp_servers" / "odd.py"


def odd(*reads: str, **more: object) -> dict[str, McpServer]:
    values = {"command": sys.executable, "args": (str(ODD),), "reads": reads, **more}
    return {"odd": McpServer.model_validate(values)}


@pytest.fixture(scope="module")
def tools():
    """The odd server's tools, where a person has listed three as reads."""
    with mcp_tools(odd("look", "burn", "process")) as found:
        yield found


def gone(pid: int) -> bool:
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_a_public_server_answers():
    server = McpServer(
        command=sys.executable, args=("-m", "mcp_server_time"), reads=("convert_time",)
    )
    with mcp_tools({"time": server}) as found:
        assert list(found) == ["time_get_current_time", "time_convert_time"]
        assert found["time_get_current_time"].needs_approval
        convert = found["time_convert_time"]
        assert not convert.needs_approval
        done = call_tool(convert, source_timezone="Asia/Tokyo", time="12:00", target_timezone="UTC")
        assert done.outcome == "ok"
        assert "T03:00:00" in done.content
        wrong = call_tool(convert, source_timezone="Nowhere", time="12:00", target_timezone="UTC")
        assert wrong.outcome == "error"
        assert "Nowhere" in wrong.content


async def test_its_call_waits_for_a_person_in_a_run(runner, settings):
    server = McpServer(command=sys.executable, args=("-m", "mcp_server_time"))
    with mcp_tools({"time": server}) as found:
        zone = {"timezone": "UTC"}
        harness = runner(Call("time_get_current_time", zone), tools=bundled_tools() | found)
        state = await harness.start("What time is it?", settings(tools=tuple(found)))
    assert state.interruption.kind == "approval"
    assert state.interruption.args == zone


def test_only_the_person_makes_a_read_and_a_hint_only_unmakes_it(tools):
    assert not tools["odd_look"].needs_approval
    assert tools["odd_burn"].needs_approval
    assert "no mere read" in tools["odd_burn"].describe_effect({}, None)
    with mcp_tools(odd()) as unlisted:
        assert all(tool.needs_approval for tool in unlisted.values())
        assert not any(tool.idempotent for tool in unlisted.values())


def test_a_read_that_the_server_does_not_have_is_said():
    with pytest.raises(SettingsError, match=r"has no tool lok to list in reads\. It has: look"):
        mcp_tools(odd("lok")).__enter__()


def test_arguments_are_checked_by_name(tools):
    assert call_tool(tools["odd_look"], word="hard").content == "looked hard"
    with pytest.raises(InvalidArguments, match="`wrod` is not an argument of this tool"):
        tools["odd_look"].validate('{"wrod": "x"}')
    with pytest.raises(InvalidArguments, match="`marker` is missing"):
        tools["odd_slow"].validate("{}")
    with pytest.raises(InvalidArguments, match="no arguments"):
        tools["odd_look"].validate("")


def test_output_is_capped_and_errors_are_words(tools):
    flood = call_tool(tools["odd_flood"])
    assert flood.outcome == "ok"
    assert len(flood.content) < 9000
    assert flood.left_out_bytes > 900_000
    refused = call_tool(tools["odd_refuse"])
    assert refused.outcome == "error"
    assert "not today" in refused.content


async def test_a_stop_reaches_the_server(tools, tmp_path):
    token, marker = CancelToken(), tmp_path / "marker"
    done = await call_tool_async(
        tools["odd_slow"],
        cancel=token,
        on_progress=lambda *_: token.cancel("enough"),
        marker=str(marker),
    )
    assert done.outcome == "cancelled"
    assert "half way" in done.content
    for _ in range(500):
        if marker.exists():
            break
        time.sleep(0.01)
    assert marker.read_text() == "told to stop"
    assert (await call_tool_async(tools["odd_look"])).content == "looked "


def test_a_server_that_dies_fails_its_calls_and_nothing_else():
    with mcp_tools(odd()) as found:
        died = call_tool(found["odd_die"])
        assert died.outcome == "error"
        assert "The MCP server odd did not do it" in died.content
        assert call_tool(found["odd_look"]).outcome == "error"


def test_the_process_ends_with_the_block_and_knows_no_keys(monkeypatch):
    monkeypatch.setenv("LLM_API_KEY", "secret")
    with mcp_tools(odd(env={"GIVEN": "1"})) as found:
        assert call_tool(found["odd_environment"]).content == "GIVEN"
        pid = int(call_tool(found["odd_process"]).content)
    assert gone(pid)


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ({"command": "/no/such/program"}, "FileNotFoundError"),
        ({"command": sys.executable, "args": (str(ODD), "crash")}, "odd: no licence found"),
        ({"command": sys.executable, "args": ("-c", "print('hello')")}, "cannot be used"),
        ({"url": "http://127.0.0.1:1/mcp"}, "cannot be used"),
    ],
)
def test_a_server_that_cannot_be_used_is_said_with_its_reason(server, told):
    with pytest.raises(SettingsError, match="The MCP server it cannot be used") as caught:
        mcp_tools({"it": McpServer.model_validate(server)}).__enter__()
    assert told in str(caught.value)


def test_over_http():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(ODD), "http", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        server = McpServer(url=f"http://127.0.0.1:{port}/mcp", reads=("look",))
        with mcp_tools({"far": server}) as found:
            assert call_tool(found["far_look"], word="there").content == "looked there"
            assert call_tool(found["far_refuse"]).outcome == "error"
    finally:
        process.kill()
        process.wait()
