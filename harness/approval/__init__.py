"""Who may run what: a person's decision, or a standing rule of theirs.

`bind` ties what a person said to what may run, `protocol` is the seam for a
policy of one's own, `rules` the standing rules in a file, `gate` the one place
where it is decided whether a call runs, `words` what the model is told.
"""

from harness.approval.gate import Ask, Doubt, Refuse, Run, Verdict, judge
from harness.approval.protocol import Policy, Ruling
from harness.approval.rules import NO_RULES, Rule, Rules, read_rules

__all__ = [
    "NO_RULES",
    "Ask",
    "Doubt",
    "Policy",
    "Refuse",
    "Rule",
    "Rules",
    "Ruling",
    "Run",
    "Verdict",
    "judge",
    "read_rules",
]
