"""The set-up's own decisions; what it installs is what these tests run on."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.fixture
def setup(script, tmp_path, monkeypatch):
    """The module, at work on a folder of its own."""
    module = script("setup")
    monkeypatch.setenv("UITWEG_CACHE", str(tmp_path / "cache"))
    venv = tmp_path / ".venv"
    for name, value in {
        "VENV": venv,
        "PYTHON": venv / "bin/python",
        "STAMP": venv / "set-up.json",
    }.items():
        monkeypatch.setattr(module, name, value)
    return module


def pinned(text):
    found = {}
    for line in re.findall(r"^(\S+==.*?) \\$", text, re.MULTILINE):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            found[requirement.name] = next(iter(requirement.specifier)).version
    return found


def wanted(*, tests):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    yield from project["project"]["dependencies"]
    if tests:
        yield from project["dependency-groups"]["test"]


@pytest.mark.parametrize("tests", [False, True])
def test_the_lock_has_what_the_project_asks_for(setup, tests):
    """If this fails: ./scripts/lock."""
    text = LOCK if tests else LOCK.partition(setup.FOR_TESTS)[0]
    versions = pinned(text)
    for line in wanted(tests=tests):
        requirement = Requirement(line)
        assert requirement.name in versions, f"{requirement.name} is not in requirements.lock"
        assert versions[requirement.name] in requirement.specifier


def test_the_lock_has_what_the_engine_needs_but_not_the_engine():
    assert "llama" not in LOCK
    assert {"numpy", "diskcache", "jinja2", "typing-extensions"} <= set(pinned(LOCK))


def test_everything_in_the_lock_has_digests_and_nothing_has_an_address():
    entries = re.split(r"\n(?=\S)", LOCK)
    for entry in entries:
        if "==" in entry.partition("\n")[0]:
            assert "--hash=sha256:" in entry
    assert "://" not in LOCK
    assert "--index" not in LOCK


def test_pyproject_and_the_scripts_mean_the_same_engine(script):
    engine = script("engine")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = project["project"]["optional-dependencies"]["engine"]
    assert extra == [f"{engine.NAME}=={engine.VERSION}"]


@pytest.mark.parametrize("variable", ["UITWEG_CACHE", "XDG_CACHE_HOME", None])
def test_the_cache_is_where_the_program_looks(setup, monkeypatch, tmp_path, variable):
    from local import folders

    monkeypatch.delenv("UITWEG_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    assert setup.cache() == folders.cache()


def test_a_second_set_up_does_nothing(setup, monkeypatch, capsys):
    stamp(setup, tests=True)
    monkeypatch.setattr(setup, "make_venv", lambda: pytest.fail("it began again"))
    setup.packages(tests=False)
    setup.packages(tests=True)
    assert capsys.readouterr().err == ""


def test_whatever_changes_it_is_done_again(setup, monkeypatch):
    steps = []
    for name in ("make_venv", "install_locked", "install_engine"):
        monkeypatch.setattr(setup, name, lambda name=name, **options: steps.append((name, options)))
    monkeypatch.setattr(setup, "run", lambda *args: None)
    stamp(setup, tests=False)
    setup.packages(tests=True)
    assert ("install_locked", {"tests": True}) in steps
    assert json.loads(setup.STAMP.read_text())["tests"] is True
    # A start after a test run keeps the packages for tests up to date, too.
    monkeypatch.setattr(setup, "cpu", lambda: "another CPU")
    setup.packages(tests=False)
    assert steps[-2] == ("install_locked", {"tests": True})
    steps.clear()
    (setup.VENV / "bin/uitweg").unlink()
    setup.packages(tests=False)
    assert steps


def stamp(setup, *, tests):
    (setup.VENV / "bin").mkdir(parents=True)
    for name in ("python", "uitweg"):
        (setup.VENV / "bin" / name).touch()
    content = {"content": setup.fingerprint(), "tests": tests}
    setup.STAMP.write_text(json.dumps(content))


@pytest.mark.parametrize("text", ["", "{", "null"])
def test_a_damaged_stamp_is_none(setup, text):
    stamp(setup, tests=True)
    setup.STAMP.write_text(text)
    assert setup.stamped() == {}


def test_no_venv_module_says_which_package_brings_it(setup, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(Exception, match=rf"apt-get install python3\.{sys.version_info.minor}-venv"):
        setup.make_venv()


def test_two_set_ups_wait_for_one_another(setup, tmp_path):
    code = (
        "import steps, setup\n"
        "with steps.alone(setup.lock_file(), 'Waiting for it.'): print('mine', flush=True)"
    )
    with setup.alone(setup.lock_file(), "Waiting for nobody."):
        other = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "Waiting for it." in other.stderr.readline()
        assert other.poll() is None
    out, _ = other.communicate(timeout=30)
    assert out == "mine\n"


def test_unknown_arguments_show_the_help(setup, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["setup.py", "--nope"])
    assert setup.main() == 2
    assert "--test-packages" in capsys.readouterr().err


def test_an_error_is_told_without_a_traceback(setup, monkeypatch, capsys):
    def fail(*, tests):
        raise setup.SetupError("There is no compiler. Get one.")

    monkeypatch.setattr(sys, "argv", ["setup.py"])
    monkeypatch.setattr(setup, "packages", fail)
    assert setup.main() == 1
    assert capsys.readouterr().err == "\nSet-up failed: There is no compiler. Get one.\n"


def bash(code, path):
    return subprocess.run(
        ["/bin/bash", "-c", f". {ROOT}/scripts/lib.sh; {code}"],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_that_will_do_is_found(tmp_path):
    for name, code in {"python3": 1, "python3.13": 1, "python3.12": 0}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    assert bash("find_python", tmp_path).stdout == f"{tmp_path}/python3.12\n"


def test_no_python_says_how_to_get_one(tmp_path):
    done = bash("find_python", tmp_path)
    assert done.returncode == 1
    assert "sudo apt-get install python3 python3-venv" in done.stderr


def test_every_script_is_a_program():
    for name in ("start", "test", "check", "lock"):
        assert os.access(ROOT / "scripts" / name, os.X_OK)
    assert os.access(ROOT / ".ci/run", os.X_OK)
