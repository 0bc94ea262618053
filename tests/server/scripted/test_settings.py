import pytest

from server.errors import BadRequest, RawReply
from server.scripted import ScriptedBackend
from server.scripted.attempt import read_attempt
from server.scripted.settings import Rule, SettingsError, read_rules, rule_for, split_model


def test_rules_in_a_models_name():
    name, rules = split_model("plan?fault=429&turn=2&times=1&retry_after=3|first_token_ms=5")
    assert name == "plan"
    assert rules == (
        Rule(fault="429", turn=2, times=1, retry_after=3),
        Rule(first_token_ms=5),
    )
    assert split_model("plan") == ("plan", ())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plan?fault=nonsense", "unknown fault; there are: call_as_text"),
        ("plan?fault=200", "unknown fault"),
        ("plan?colour=red", "colour"),
        ("plan?turn=0", "turn"),
        ("plan?turn", "expected name=value"),
    ],
)
def test_a_wrong_rule_is_a_bad_request_that_names_the_model(name, words):
    with pytest.raises(BadRequest, match=words) as caught:
        split_model(name)
    assert caught.value.param == "model"


def test_a_rule_holds_for_its_scenario_turn_and_tries():
    rule = Rule(scenario="plan", turn=2, times=2, fault="500")
    assert rule.holds("plan", 2, 0)
    assert rule.holds("plan", 2, 1)
    assert not rule.holds("plan", 2, 2)
    assert not rule.holds("plan", 1, 0)
    assert not rule.holds("scan", 2, 0)
    assert Rule(fault="500").holds("anything", 99, 99)


def test_later_rules_win_field_by_field():
    rules = [Rule(first_token_ms=5, token_ms=1), Rule(turn=2, first_token_ms=9)]
    merged = rule_for(rules, "plan", 2, 0)
    assert (merged.first_token_ms, merged.token_ms, merged.fault) == (9, 1, None)
    assert rule_for(rules, "plan", 1, 0).first_token_ms == 5


def test_rules_from_a_file(tmp_path, chat):
    file = tmp_path / "faults.toml"
    file.write_text('[[rule]]\nscenario = "plan"\nturn = 1\nfault = "500"\n')
    backend = ScriptedBackend.from_files(settings=file)
    with pytest.raises(RawReply):
        chat("plan", on=backend)
    assert chat("runaway", on=backend).calls


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[rule]]\nfault = 500\n", "rule.0.fault"),
        ("[[rule]]\nfalt = '500'\n", "falt"),
        ("rule = ", "not valid TOML"),
    ],
)
def test_a_wrong_file_says_where(tmp_path, text, words):
    file = tmp_path / "faults.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_rules(file)


def test_no_such_file(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_rules(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("headers", "attempt"),
    [
        ({}, 0),
        ({"x-attempt": "2"}, 2),
        ({"x-stainless-retry-count": "1"}, 1),
        ({"x-attempt": "-1"}, 0),
        ({"x-attempt": "²"}, 0),
        ({"x-attempt": "9" * 5000}, 0),
    ],
)
def test_the_attempt_out_of_the_headers(headers, attempt):
    assert read_attempt(headers) == attempt
