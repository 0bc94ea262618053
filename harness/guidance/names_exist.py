"""Names that exist: a path argument is offered only the files that are there.

The names go into the tool's schema as an enumeration, and the model server's
grammar lets the model write no others. They are taken when the run begins and
after a write, because each change of the tools makes the server's cache useless.
"""

from __future__ import annotations

from typing import Any

from harness.guidance.protocol import Guided, Policy

MOST_NAMES = 40
"""More names would make the prompt long; the argument is then left free."""


class NamesThatExist(Policy):
    """See the module's docstring."""

    name = "names_exist"

    def shape_tools(self, run: Guided, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same tools, with the names of the files wherever an argument is a path."""
        if not any("path" in _properties(tool) for tool in tools):
            return tools
        names = run.workspace.listing()
        if not names or len(names) > MOST_NAMES:
            return tools
        if run.state.turns == 0:
            run.note(self.name, f"A path is one of the {len(names)} names, anew after each write.")
        return [_with_names(tool, names) for tool in tools]


def _properties(tool: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = tool["function"]["parameters"].get("properties", {})
    return properties


def _with_names(tool: dict[str, Any], names: list[str]) -> dict[str, Any]:
    properties = _properties(tool)
    if properties.get("path", {}).get("type") != "string":
        return tool
    function = tool["function"]
    path = {**properties["path"], "enum": names}
    parameters = {**function["parameters"], "properties": {**properties, "path": path}}
    return {**tool, "function": {**function, "parameters": parameters}}
