"""Tools out of files and modules."""

from __future__ import annotations

import sys

import pytest

from harness.errors import SettingsError
from harness.own_tools import load_tools, merge

HEAD = "from harness import tool\n"


@pytest.fixture
def file(tmp_path):
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def a_tool(name: str) -> str:
    return f'@tool\ndef {name}(x: int) -> int:\n    """Do it."""\n    return x\n'


def test_a_files_tools_in_their_order(file):
    place = file("a.py", HEAD + a_tool("second") + a_tool("first") + "other = 3\n")
    tools = load_tools([place])
    assert list(tools) == ["second", "first"]
    assert all(tool.needs_approval for tool in tools.values())
    assert load_tools([place, place]).keys() == tools.keys()


def test_a_module_by_its_name(file, tmp_path, monkeypatch):
    file("uitweg_test_own_module.py", HEAD + a_tool("one"))
    monkeypatch.syspath_prepend(tmp_path)
    assert list(load_tools(["uitweg_test_own_module"])) == ["one"]
    sys.modules.pop("uitweg_test_own_module")


def test_bundled_tools_that_a_file_imports_are_not_its_own(file):
    place = file("a.py", HEAD + "from harness.tools import read_file\n" + a_tool("one"))
    assert list(load_tools([place])) == ["one"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = (", r"a\.py cannot be loaded: SyntaxError: .*line 1"),
        (
            'from harness import tool\n\n@tool(effect="reads")\ndef f() -> str:\n    "Do."',
            "f: effect is .reads., not",
        ),
        ("\nboom\n", r"a\.py cannot be loaded \(line 2\): NameError: name 'boom'"),
        ("import sys\nsys.exit(3)\n", r"a\.py cannot be loaded \(line 2\): SystemExit: 3"),
        (HEAD + "@tool\ndef f(x: int): ...\n", "f: a docstring is needed, the model reads it"),
        (HEAD + '@tool\ndef f(x):\n    """Do."""\n', "f: the parameter x needs a type"),
        ("x = 1\n", "has no tools: put @tool"),
        (HEAD + a_tool("read_file"), "Two tools are called read_file: one in the bundled tools"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(file, text, told):
    with pytest.raises(SettingsError, match=told):
        load_tools([file("a.py", text)])


def test_two_files_with_one_name_of_a_tool(file):
    one, two = file("a.py", HEAD + a_tool("same")), file("b.py", HEAD + a_tool("same"))
    with pytest.raises(SettingsError, match=r"called same: one in .*a\.py, one in .*b\.py"):
        load_tools([one, two])
    with pytest.raises(SettingsError, match="called same"):
        merge(load_tools([one]), load_tools([two]))


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("no_such.py", "There is no file"),
        ("no_such_module_at_all", "There is no module no_such_module_at_all"),
        ("no_such.module.at.all", "There is no module"),
        ("", "There is no module"),
        ("../tools", "There is no module"),
    ],
)
def test_a_place_that_is_not_there(place, told):
    with pytest.raises(SettingsError, match=told):
        load_tools([place])


def test_after_a_failure_the_corrected_file_can_be_loaded(file):
    place = file("a.py", "boom")
    with pytest.raises(SettingsError):
        load_tools([place])
    file("a.py", HEAD + a_tool("one"))
    assert list(load_tools([place])) == ["one"]
