"""`uitweg rules`, and what a rule does to a run."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def write_rules(home, monkeypatch):
    def write(text: str):
        from uitweg.carry import rules_path

        rules_path().parent.mkdir(parents=True, exist_ok=True)
        rules_path().write_text(text)

    return write


RULE = '[[rule]]\naction = "{}"\ntool = "{}"\nargs = {{ path = "{}" }}\n'


def test_h8_each_rule_is_shown_with_what_it_matches(uitweg, write_rules):
    assert "No rules" in uitweg("rules").out
    write_rules(RULE.format("deny", "delete_file", "*.log") + RULE.format("allow", "delete", "x"))
    shown = uitweg("rules").out
    assert "deny delete_file where path = *.log: matches delete_file" in shown
    assert "never matches: no tool is called delete" in shown


@pytest.mark.parametrize(
    ("action", "code", "left"), [("allow", 0, False), ("deny", 0, True), ("ask", 5, True)]
)
def test_h8_a_rule_decides_in_a_persons_place(uitweg, write_rules, home, action, code, left):
    write_rules(RULE.format(action, "delete_file", "access.log"))
    said = uitweg("run", "Free some space.", "--model", "destructive", "--json")
    assert said.code == code
    assert (home / "demo" / "access.log").exists() is left
    assert json.loads(said.out)["turns"] in (2, 3)


def test_rules_that_cannot_be_read_are_said_before_anything_runs(uitweg, write_rules):
    write_rules("[[rule]]\naction = 'perhaps'\ntool = 'x'\n")
    said = uitweg("run", "x", "--model", "plan")
    assert said.code == 2
    assert "rules.toml" in said.err
