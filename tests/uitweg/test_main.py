"""The command line as a whole: help is quick, errors are one line, codes are kept."""

import os
import subprocess
import sys

import pytest

from uitweg import main


def uitweg(*args, **env):
    return subprocess.run(
        [sys.executable, "-m", "uitweg", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Commands made for a test, in a package of ours that lies elsewhere: `add(source)`."""

    def add(source, name="probe"):
        (tmp_path / "probe_command.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "probe_command", raising=False)
        monkeypatch.setitem(main.COMMANDS, name, main.Entry("probe_command:command", "A probe."))

    return add


def test_help_names_every_command_and_imports_none():
    code = (
        "import sys; from uitweg.main import run, COMMANDS; run(['--help'])\n"
        "heavy = {'httpx', 'flask', 'numpy', 'llama_cpp', 'pydantic', 'huggingface_hub', 'rich'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
        "print('OURS', sorted(m for m in sys.modules if m.startswith('uitweg.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout
    assert "OURS []" in done.stdout
    for name, entry in main.COMMANDS.items():
        assert name in done.stdout
        assert entry.help.split(maxsplit=1)[0] in done.stdout


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_can_be_imported_and_has_a_help(name, capsys):
    assert main.run([name, "--help"]) == 0
    assert f"uitweg {name}" in capsys.readouterr().out


def test_no_command_at_all_shows_the_help():
    done = uitweg()
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: uitweg")


def test_the_version():
    assert uitweg("--version").stdout.startswith("uitweg 0.")


@pytest.mark.parametrize("args", [["nope"], ["start", "--nope"], ["models", "nope"], ["--nope"]])
def test_wrong_usage_is_told_in_one_line_and_where_to_look(args):
    done = uitweg(*args)
    assert done.returncode == 2
    assert done.stderr.startswith("uitweg: ")
    assert "--help" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_misspelt_command_is_told_the_nearest_one():
    assert uitweg("strat").stderr.startswith(
        "uitweg: No such command 'strat'. Did you mean start?\n"
    )


def test_an_error_of_ours_is_its_message(commands, capsys):
    commands(
        "class Full(Exception):\n    exit_code = 7\n"
        "Full.__module__ = 'models.errors'\n"
        "def command(): raise Full('The disk is full. Free 10 MB.')\n"
    )
    assert main.run(["probe"]) == 7
    assert capsys.readouterr().err == "uitweg: The disk is full. Free 10 MB.\n"


def test_any_other_error_says_that_it_is_a_mistake(commands, capsys, monkeypatch):
    monkeypatch.delenv("UITWEG_DEBUG", raising=False)
    commands("def command(): raise ValueError('odd')\n")
    assert main.run(["probe"]) == 1
    text = capsys.readouterr().err
    assert "ValueError: odd" in text
    assert "Traceback" not in text
    monkeypatch.setenv("UITWEG_DEBUG", "1")
    assert main.run(["probe"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return None", 0),
        ("return 5", 5),
        ("raise typer.Exit(3)", 3),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exit_codes(commands, body, code):
    commands(f"import typer\ndef command():\n    {body}\n")
    assert main.run(["probe"]) == code


def test_a_group_of_commands(commands, capsys):
    commands(
        "import typer\ncommand = typer.Typer(help='Two.')\n"
        "@command.command()\ndef one(): print('first')\n"
        "@command.command()\ndef two(): print('second')\n"
    )
    assert main.run(["probe", "two"]) == 0
    assert capsys.readouterr().out == "second\n"


def test_a_reader_that_leaves_is_no_error():
    code = "import sys; from uitweg.main import run; sys.exit(run(['--help']))"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" | true; exit ${{PIPESTATUS[0]}}'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
