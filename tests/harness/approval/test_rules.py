from pathlib import Path

import pytest

from harness.approval import Rule, Rules, read_rules
from harness.errors import SettingsError
from harness.tools import bundled_tools


def ruling(rules: list[Rule], path: str, tool: str = "delete_file") -> str | None:
    found = Rules(rules).rule_on(tool, {"path": path})
    return found and found.action


def rule(action: str, tool: str = "delete_file", **args: str) -> Rule:
    return Rule(action=action, tool=tool, args=args)


def test_h8_the_most_specific_rule_wins_whatever_the_order():
    wide, narrow = rule("allow", "*"), rule("ask", path="notes.txt")
    for rules in ([wide, narrow], [narrow, wide]):
        assert ruling(rules, "notes.txt") == "ask"
        assert ruling(rules, "access.log") == "allow"


def test_h8_between_equals_ask_beats_allow_and_deny_beats_both():
    allow, ask, deny = (rule(action, path="*.log") for action in ("allow", "ask", "deny"))
    assert ruling([allow, ask], "access.log") == "ask"
    assert ruling([deny, ask, allow], "access.log") == "deny"


def test_a_name_is_more_specific_than_a_pattern():
    rules = [rule("deny", path="*.log"), rule("allow", path="access.log")]
    assert ruling(rules, "access.log") == "allow"
    assert ruling(rules, "errors.log") == "deny"
    assert ruling([rule("deny", "delete_*"), rule("allow", "delete_file")], "x") == "allow"


def test_h1_no_rule_that_matches_says_nothing():
    assert ruling([], "access.log") is None
    assert ruling([rule("allow", path="*.txt")], "access.log") is None
    assert Rules([rule("allow", path="x")]).rule_on("delete_file", {}) is None


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.log", "access.log", True),
        ("*.log", "sub/access.log", False),
        ("**.log", "sub/access.log", True),
        ("sub/*", "sub/a", True),
        ("sub/*", "sub/deeper/a", False),
        ("sub/**", "sub/deeper/a", True),
        ("?.log", "a.log", True),
        ("?.log", "ab.log", False),
        ("a+b.log", "a+b.log", True),
        ("a.log*", "a.log\nb", True),
        ("*", "", True),
    ],
)
def test_patterns(pattern: str, path: str, matches: bool):
    assert (ruling([rule("deny", path=pattern)], path) == "deny") is matches


@pytest.mark.parametrize("path", ["./secret", "a/../secret", "secret/", ".//secret"])
def test_another_spelling_does_not_slip_past_a_refusal_nor_into_a_leave(path: str):
    assert ruling([rule("deny", path="secret")], path) == "deny"
    assert ruling([rule("ask", path="secret")], path) == "ask"
    assert ruling([rule("allow", path="secret")], path) is None
    assert ruling([rule("allow", path="*/../secret")], "a/../secret") is None


def test_arguments_that_are_no_text_are_compared_as_json():
    rules = Rules([Rule(action="allow", tool="t", args={"n": "3", "deep": "**1**"})])
    assert rules.rule_on("t", {"n": 3, "deep": {"a": [1]}}).action == "allow"
    assert rules.rule_on("t", {"n": 4, "deep": {"a": [1]}}) is None


def test_rules_come_from_a_file(tmp_path: Path):
    path = tmp_path / "rules.toml"
    assert read_rules(path).rules == ()
    path.write_text(
        '[[rule]]\naction = "deny"\ntool = "delete_file"\nargs = { path = "notes.txt" }\n'
        'reason = "precious"\n'
    )
    found = read_rules(path).rule_on("delete_file", {"path": "notes.txt"})
    assert (found.action, found.reason) == ("deny", "precious")
    assert found.rule == "deny delete_file where path = notes.txt"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]", "cannot be read"),
        ('[[rule]]\naction = "permit"\ntool = "t"', "action"),
        ('[[rule]]\naction = "allow"', "tool"),
        ('[[rule]]\naction = "allow"\ntool = "t"\npath = "x"', "path"),
        ("[rules]\nx = 1", "rules"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_the_place(tmp_path: Path, text, message):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_rules(path)


def test_h8_rules_are_shown_with_what_they_match_or_why_they_never_can():
    rules = Rules(
        [
            rule("allow", "*_file", path="tmp/*"),
            rule("allow", "remove_file"),
            rule("allow", "delete_file", file="notes.txt"),
        ]
    )
    shown = rules.shown(bundled_tools().values())
    assert shown[0].tools == ("read_file", "delete_file")
    assert shown[1].problem == "no tool is called remove_file"
    assert shown[2].problem == "delete_file has no such argument; it has: path"
