import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.state import (
    STATE_VERSION,
    ApprovalNeeded,
    CallRecord,
    Cancelled,
    ConditionMet,
    Decision,
    InDoubt,
    Limits,
    MaxBudget,
    MaxTurns,
    NoReply,
    Prices,
    RunState,
    Settings,
    Usage,
    call_digest,
)

FIXTURES = Path(__file__).parent / "fixtures"

text = st.text(max_size=20)
money = st.decimals(min_value=0, max_value=1000, places=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
args = st.dictionaries(text, values, max_size=3)
counts = st.integers(min_value=0, max_value=10**9)
interruptions = st.one_of(
    st.none(),
    st.builds(ApprovalNeeded, call_id=text, tool_name=text, args=args, digest=text),
    st.builds(InDoubt, call_id=text, tool_name=text, args=args, digest=text),
    st.builds(MaxTurns, turns=counts, limit=counts),
    st.builds(MaxBudget, resource=st.just("cost_usd"), spent=money, limit=money),
    st.builds(Cancelled, reason=text),
    st.builds(ConditionMet, name=text, detail=text),
    st.builds(NoReply, detail=text),
)
settings = st.builds(
    Settings,
    base_url=text, model=text, workspace=text, tools=st.lists(text, max_size=3).map(tuple),
    limits=st.builds(Limits, max_cost_usd=st.none() | money.filter(bool)),
    prices=st.builds(Prices, input_per_million=st.none() | money),
    guidance=st.lists(text, max_size=2).map(tuple),
    system_prompt=st.none() | text,
)  # fmt: skip
calls = st.builds(
    CallRecord,
    call_id=text, turn=counts, tool_name=text, arguments=text,
    state=st.sampled_from(["owed", "started", "settled"]), ran_args=st.none() | args,
    outcome=st.none() | st.sampled_from(["ok", "error", "reused"]), child_run_id=st.none() | text,
)  # fmt: skip
decisions = st.builds(
    Decision,
    call_id=text, action=st.sampled_from(["approve", "edit", "reject"]), digest=text,
    args=st.none() | args, reason=st.none() | text, decided_by=text,
)  # fmt: skip
states = st.builds(
    RunState,
    run_id=text, task=text, settings=settings, created_at=text, parent_run_id=st.none() | text,
    interruption=interruptions, answer=text, unsupported=st.lists(text, max_size=2).map(tuple),
    turns=counts, seconds=st.floats(min_value=0, max_value=1e9),
    usage=st.builds(Usage, prompt_tokens=counts, cost_usd=st.none() | money),
    messages=st.lists(st.dictionaries(text, values, max_size=3), max_size=3).map(tuple),
    calls=st.dictionaries(text, calls, max_size=3),
    decisions=st.dictionaries(text, decisions, max_size=3),
)  # fmt: skip


@given(states)
def test_a_run_goes_to_json_and_back_without_loss(state: RunState):
    assert RunState.model_validate_json(state.model_dump_json()) == state


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("state_v*.json")), ids=lambda p: p.stem)
def test_frozen_states_of_every_version_load(path: Path):
    state = RunState.model_validate_json(path.read_bytes())
    assert json.loads(state.model_dump_json()) == json.loads(path.read_bytes())


def test_there_is_a_frozen_state_of_this_version():
    assert list(FIXTURES.glob(f"state_v{STATE_VERSION}*.json"))


@given(args)
def test_a_digest_does_not_depend_on_key_order(some: dict):
    turned = dict(reversed(some.items()))
    assert call_digest("r", "c", "t", some) == call_digest("r", "c", "t", turned)


def test_a_digest_depends_on_everything_that_is_bound():
    base = ("r", "c", "t", {"path": "a"}, "content 1")
    variants = [
        ("s", *base[1:]),
        ("r", "d", *base[2:]),
        ("r", "c", "u", *base[3:]),
        (*base[:3], {"path": "b"}, base[4]),
        (*base[:4], "content 2"),
        (*base[:4], None),
    ]
    assert len({call_digest(*case) for case in [base, *variants]}) == len(variants) + 1


def test_h17_unknown_cost_stays_unknown_and_zero_is_a_price():
    free = Prices(input_per_million=0, output_per_million=0)
    assert free.cost(1000, 1000) == 0
    assert Prices().cost(1, 1) is None
    assert (Usage(cost_usd=None) + Usage(cost_usd=Decimal(1))).cost_usd is None


def test_owed_calls_are_those_of_the_last_reply_without_a_tool_message():
    def record(name: str, state: str) -> CallRecord:
        return CallRecord(call_id=name, turn=1, tool_name="t", arguments="{}", state=state)

    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]}
    state = RunState(
        run_id="r", task="t", created_at="",
        settings=Settings(base_url="", model="", workspace="", tools=()),
        messages=(message, {"role": "tool", "tool_call_id": "a", "content": "x"}),
        calls={"a": record("a", "settled"), "b": record("b", "started")},
    )  # fmt: skip
    assert [call.call_id for call in state.owed()] == ["b"]
