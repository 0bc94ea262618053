"""`uitweg rules`: the standing rules, and what each of them matches."""

from __future__ import annotations

import typer

EXAMPLE = """\
[[rule]]
action = "ask"                # allow, ask or deny
tool = "delete_file"
args = { path = "tmp/*.log" }"""


def rules() -> int:
    """Show the standing rules with the tools that they match. The most specific one wins.

    Example: uitweg rules
    """
    from harness.approval import read_rules
    from harness.tools import bundled_tools
    from uitweg.carry import rules_path
    from uitweg.config import read_config
    from uitweg.own import own_tools
    from uitweg.text import safe

    path = rules_path()
    with own_tools(read_config().config) as own:
        shown = read_rules(path).shown([*bundled_tools().values(), *own.values()])
    typer.echo(f"{path}: {len(shown)} rules." if shown else f"No rules. They belong into {path}:")
    if not shown:
        typer.echo(EXAMPLE)
    for rule, tools, problem in shown:
        matches = f"never matches: {problem}" if problem else f"matches {', '.join(tools)}"
        typer.echo(safe(f"  {rule}: {matches}"))
    return 0
