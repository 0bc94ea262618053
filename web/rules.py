"""The standing rules, as the form of a new task shows them."""

from __future__ import annotations

from harness.approval import NO_RULES, Rules, read_rules
from harness.errors import SettingsError
from web.config import PageConfig


def rules_of(config: PageConfig) -> Rules:
    """The rules in force. Raises `SettingsError` for a file that cannot be read."""
    return NO_RULES if config.rules is None else read_rules(config.rules)


def rules_shown(config: PageConfig) -> list[str]:
    """Each rule with what it matches, or why it never can."""
    try:
        shown = rules_of(config).shown(config.all_tools.values())
    except SettingsError as error:
        return [str(error)]
    return [
        f"{entry.rule} ({'matches ' + ', '.join(entry.tools) if entry.tools else entry.problem})"
        for entry in shown
    ]
