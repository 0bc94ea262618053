"""Tools of a person's own, out of Python files and modules.

What is loaded is whatever `@tool` has made at the top of the file. The code runs here, with all
that this process may do: only its tools' calls wait for approval.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from harness.errors import SettingsError
from harness.tool import Tool
from harness.tools import bundled_tools


def load_tools(places: Iterable[str]) -> dict[str, Tool]:
    """The tools of several places by name, in their order there.

    Args:
        places: Each the path of a Python file (it ends in `.py`), or the name of a module.

    Raises `SettingsError` for a place that cannot be loaded or has no tools, and for two tools
    of one name.
    """
    found: dict[str, Tool] = {}
    origins = dict.fromkeys(bundled_tools(), "the bundled tools")
    for place in dict.fromkeys(places):
        tools = tools_of(_load(place))
        if not tools:
            raise SettingsError(
                f"{place} has no tools: put @tool (from harness import tool) over a function."
            )
        for tool in tools:
            taken = origins.get(tool.name)
            if taken is not None and found.get(tool.name) is not tool:
                raise SettingsError(
                    f"Two tools are called {tool.name}: one in {taken}, one in {place}. "
                    "Rename one of them."
                )
            origins[tool.name] = place
            found[tool.name] = tool
    return found


def merge(*groups: Mapping[str, Tool]) -> dict[str, Tool]:
    """All tools of all groups. Raises `SettingsError` where two have one name."""
    merged: dict[str, Tool] = {}
    for group in groups:
        twins = merged.keys() & group.keys()
        if twins:
            raise SettingsError(f"Two tools are called {min(twins)}. Rename one of them.")
        merged |= group
    return merged


def tools_of(module: ModuleType) -> list[Tool]:
    """The tools at the top of a module, without bundled ones that it imports."""
    bundled = list(bundled_tools().values())
    tools = [value for value in vars(module).values() if isinstance(value, Tool)]
    return [tool for tool in tools if not any(tool is one for one in bundled)]


def _load(place: str) -> ModuleType:
    try:
        return _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(f"{place} cannot be loaded{_line(error, place)}: {_said(error)}") from (
            error
        )


def _load_module(name: str) -> ModuleType:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise SettingsError(
            f"There is no module {name} to take tools from. The name of a file ends in .py."
        )
    return importlib.import_module(name)


def _load_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise SettingsError(f"There is no file {path} to take tools from.")
    # A name of its own, so that two files called tools.py do not stand in each other's place.
    name = f"uitweg_own_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{path} is not Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _line(error: BaseException, place: str) -> str:
    """Where in the person's own file it went wrong, if that can be told."""
    if isinstance(error, SyntaxError):  # says it itself
        return ""
    name = Path(place).name
    lines = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == name]
    return f" (line {lines[-1].lineno})" if lines else ""


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
