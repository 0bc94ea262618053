"""Every combination of state, decision and rule at the one gate."""

from pathlib import Path

import pytest

from harness.approval import Ask, Doubt, Refuse, Rule, Rules, Run, judge
from harness.state import CallRecord, Decision, call_digest
from harness.tool import tool
from harness.workspace import Workspace

ARGS = {"path": "a"}


def make(effect: str = "write", idempotent: bool = False):
    @tool(effect=effect, idempotent=idempotent)
    def act(path: str) -> str:
        """Do something."""
        return path

    return act


def decide(action: str, args: dict | None = None, **more) -> Decision:
    digest = call_digest("r", "c", "act", args or ARGS, "")
    return Decision(call_id="c", action=action, digest=digest, args=args, **more)


@pytest.fixture
def gate(tmp_path: Path):
    def ask(decision=None, state="owed", rules=(), **of_tool):
        record = CallRecord(call_id="c", turn=1, tool_name="act", arguments="{}", state=state)
        act = make(**of_tool)
        return judge("r", record, act, ARGS, decision, Rules(rules), Workspace(tmp_path))

    return ask


def test_a_write_is_asked_about_and_a_read_runs(gate):
    assert isinstance(gate(), Ask)
    assert isinstance(gate(idempotent=True), Ask)
    assert gate(effect="read") == Run(ARGS, "")


@pytest.mark.parametrize("action", ["happened", "run_again", "abandon"])
def test_h1_what_was_said_of_a_doubt_does_not_let_a_new_call_run(gate, action):
    assert isinstance(gate(decide(action)), Ask)


def test_h2_a_decision_for_other_arguments_is_no_decision(gate):
    other = decide("approve").model_copy(update={"digest": "0"})
    assert isinstance(gate(other), Ask)
    edited = decide("edit", {"path": "b"}).model_copy(update={"digest": "0"})
    asked = gate(edited)
    # What is asked about again is what the model wrote.
    assert isinstance(asked, Ask)
    assert asked.args == ARGS


def test_decisions(gate):
    assert gate(decide("approve")) == Run(ARGS, "")
    assert gate(decide("edit", {"path": "b"})) == Run({"path": "b"}, "", edited=True)
    refused = gate(decide("reject", reason="no"))
    assert refused == Refuse("The user declined this call: no", "rejected")


def test_h5_a_rejection_beats_a_rule_that_allows(gate):
    rules = [Rule(action="allow", tool="act")]
    assert isinstance(gate(decide("reject", reason="no"), rules=rules), Refuse)


def test_rules_are_asked_where_nobody_has_decided(gate):
    assert gate(rules=[Rule(action="allow", tool="act")]).by_rule == "allow act"
    assert gate(rules=[Rule(action="deny", tool="act")]).outcome == "rejected"
    assert isinstance(gate(rules=[Rule(action="ask", tool="act")], effect="read"), Ask)


@pytest.mark.parametrize(
    "of_tool", [{"effect": "read"}, {"idempotent": True}], ids=["read", "idempotent"]
)
def test_h9_what_may_run_twice_simply_does(gate, of_tool):
    assert gate(state="started", **of_tool) == Run(ARGS, "")


def test_h9_a_write_that_had_begun_waits_for_a_person(gate):
    rules = [Rule(action="allow", tool="act")]
    assert isinstance(gate(state="started", rules=rules), Doubt)
    # The approval that let it begin is used up.
    assert isinstance(gate(decide("approve"), state="started"), Doubt)
    assert gate(decide("run_again"), state="started") == Run(ARGS, "")
    assert gate(decide("happened"), state="started").outcome == "ok"
    assert "paid" in gate(decide("happened", reason="paid"), state="started").content
    assert gate(decide("abandon"), state="started").outcome == "unknown"
