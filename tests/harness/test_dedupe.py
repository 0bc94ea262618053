import pytest

from harness.dedupe import Memory, call_key, key_of
from harness.scripted_model import Call
from harness.state import CallRecord
from harness.tools import bundled_tools

TOOLS = bundled_tools()
READ, LIST, DELETE = (TOOLS[name] for name in ("read_file", "list_files", "delete_file"))


def record(tool, args: str, outcome: str = "ok", call_id: str = "c") -> CallRecord:
    return CallRecord(
        call_id=call_id, turn=1, tool_name=tool.name, arguments=args, state="settled",
        outcome=outcome,
    )  # fmt: skip


def test_key_order_and_spaces_do_not_count():
    assert call_key(record(READ, '{"a": 1, "b": 2}')) == call_key(record(READ, '{"b":2,"a":1}'))
    assert call_key(record(READ, "no json")) == "read_file no json"
    assert call_key(record(READ, '{"a":1}')) == key_of("read_file", {"a": 1})


def test_reads_are_remembered_until_a_write_ran():
    memory = Memory("reads", TOOLS)
    memory.note(record(READ, '{"path":"a"}', call_id="first"), "text")
    assert memory.find(READ, {"path": "a"}) == ("first", "text")
    assert memory.find(READ, {"path": "b"}) is None
    memory.note(record(DELETE, '{"path":"b"}', outcome="rejected"), "no")
    assert memory.find(READ, {"path": "a"}) is not None
    memory.note(record(DELETE, '{"path":"b"}', outcome="error"), "failed half way")
    assert memory.find(READ, {"path": "a"}) is None


@pytest.mark.parametrize("outcome", ["error", "reused", "invalid", "cancelled", "abandoned"])
def test_only_what_went_well_is_remembered(outcome):
    memory = Memory("reads", TOOLS)
    memory.note(record(READ, '{"path":"a"}', outcome=outcome), "text")
    assert memory.find(READ, {"path": "a"}) is None


def test_writes_are_remembered_only_by_the_policy_that_shows_the_harm():
    for policy, found in (("none", False), ("reads", False), ("all", True)):
        memory = Memory(policy, TOOLS)
        memory.note(record(DELETE, '{"path":"a"}'), "deleted a")
        assert (memory.find(DELETE, {"path": "a"}) is not None) is found


async def test_a_repeated_read_is_an_event_and_saves_the_tool_run(runner, settings, store):
    read = Call("read_file", {"path": "errors.log"})
    state = await runner(read, read, "done").start("t", settings())
    assert state.tool_runs == 1
    (reused,) = (e for e in store.events(state.run_id) if getattr(e, "reused_from", None))
    assert reused.outcome == "reused"
    first, second = (m["content"] for m in state.messages if m["role"] == "tool")
    assert first == second


async def test_what_was_remembered_is_remembered_after_a_resume(runner, settings):
    read = Call("read_file", {"path": "errors.log"})
    model = (read, read, "done")
    state = await runner(*model).start("t", settings(limits={"max_turns": 1}))
    state = await runner(*model).resume(state.run_id, limits={"max_turns": 5})
    assert state.tool_runs == 1
