"""The packages depend on one another in one direction only, read off every file's imports."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "local": set(),
    "models": {"local"},
    "server": {"models", "local"},
    "harness": {"local"},
    "web": {"harness", "local"},
    "uitweg": {"harness", "local", "models", "server", "web"},
}


def imports(tree):
    """Every module that a syntax tree imports, at its top, in a function or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func
            name = getattr(function, "id", getattr(function, "attr", ""))
            if name in {"import_module", "__import__"}:
                yield str(node.args[0].value)


def ours_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return {name.partition(".")[0] for name in imports(tree)} & set(ALLOWED)


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_point_one_way(package):
    wrong = {
        f"{path.relative_to(ROOT)} imports {', '.join(sorted(others))}"
        for path in (ROOT / package).rglob("*.py")
        if (others := ours_in(path) - ALLOWED[package] - {package})
    }
    assert not wrong


def test_every_package_that_is_installed_is_held_to_it():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(ALLOWED)
    assert all(f'"{package}"' in text for package in packages)


def test_the_reader_sees_every_form(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "import server.app\n"
        "def f():\n    from harness import state\n"
        "    import_module('web.app'); importlib.import_module('models.gguf')\n"
    )
    assert ours_in(file) == {"server", "harness", "web", "models"}
