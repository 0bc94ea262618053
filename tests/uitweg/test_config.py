"""`uitweg.toml`: what holds, where from, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uitweg.config import read_config, user_file

TASK = "Which file mentions a timeout?"


@pytest.fixture
def project(home, tmp_path, monkeypatch):
    """A current folder; call it with the text of its file."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(text: str) -> Path:
        (folder / "uitweg.toml").write_text(text)
        return folder / "uitweg.toml"

    return write


def write_users(text: str) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(text)


def rows(out: str) -> dict[str, str]:
    """The table of `uitweg config`: a setting's name to the rest of its line."""
    return {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line}


def test_flags_over_environment_over_project_over_user(project, uitweg, monkeypatch):
    write_users('model = "research"\nprofile = "none"\n[limits]\nmax_turns = 7\nmax_repeats = 9\n')
    project('model = "runaway"\n[limits]\nmax_turns = 4\n')
    shown = rows(uitweg("config").out)
    assert shown["model"].startswith("runaway /")
    assert shown["limits.max_turns"].startswith("4 /")
    assert shown["limits.max_repeats"].endswith("/config/uitweg/uitweg.toml")
    assert shown["profile"].startswith("none ")
    assert shown["base_url"].endswith(" LLM_BASE_URL")
    assert shown["limits.max_seconds"] == "- default"
    assert uitweg("run", TASK, "--json").closing["turns"] == 4
    assert uitweg("run", TASK, "--json", "--max-turns", "2").closing["turns"] == 2
    monkeypatch.setenv("LLM_MODEL", "plan")
    assert rows(uitweg("config").out)["model"] == "plan LLM_MODEL"
    assert uitweg("run", TASK, "--json").closing["model"] == "plan"


def test_the_address_of_a_file_gets_the_key_and_starts_no_server(
    project, uitweg, monkeypatch, scripted_url
):
    monkeypatch.delenv("LLM_BASE_URL")
    monkeypatch.setenv("LLM_API_KEY", "a-secret")
    write_users(f'base_url = "{scripted_url}"\nmodel = "plan"\n')
    said = uitweg("run", TASK, "--json")
    assert said.code == 0
    held = read_config()
    assert held.endpoint.named
    assert held.endpoint.key_for(scripted_url) == "a-secret"
    assert held.endpoint.key_for("http://elsewhere/v1") is None
    shown = uitweg("config").out
    assert "a-secret" not in shown
    assert "(API key)       set" in shown or "(API key)" in shown


def test_the_key_of_openai_goes_to_no_address_of_a_file(project, monkeypatch, scripted_url):
    monkeypatch.delenv("LLM_BASE_URL")
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    write_users(f'base_url = "{scripted_url}"\n')
    assert read_config().endpoint.api_key is None


def test_nothing_set_is_the_bundled_server_at_its_port(project, monkeypatch):
    monkeypatch.delenv("LLM_BASE_URL")
    project("[ports]\nmodel = 9123\n")
    held = read_config()
    assert (held.endpoint.base_url, held.endpoint.named) == ("http://127.0.0.1:9123/v1", False)
    assert held.config.base_url == held.endpoint.base_url


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('modell = "x"', "there is no key modell. Did you mean model?"),
        ("max_turns = 3", "there is no key max_turns. Did you mean limits.max_turns?"),
        (
            "[limits]\nmax_turn = 3",
            "there is no key limits.max_turn. Did you mean limits.m",
        ),
        ("[limits]\nzebra = 3", "there is no key limits.zebra. There are: max_turns,"),
        ('[limits]\nmax_turns = "ten"', 'limits.max_turns is "ten"; it must be a whole number.'),
        ("[limits]\nmax_turns = true", "limits.max_turns is true; it must be a whole number."),
        ("[limits]\nmax_turns = 0", "limits.max_turns is 0: input should be greater than or equal"),
        ('[limits]\nmax_cost_usd = "a"', 'limits.max_cost_usd is "a"; it must be a number.'),
        ("limits = 3", "limits is 3; it must be a table."),
        ("workspace = 3", "workspace is 3; it must be text in quotes."),
        ('tools = "a.py"', 'tools is "a.py"; it must be a list, such as ["one", "two"].'),
        ("[ports]\npage = 99999", "ports.page is 99999: input should be less than or equal to 655"),
        ("[mcp.x]\nreads = []", "mcp.x: give either command or url."),
        ('[mcp.x]\ncommand = "a"\nurl = "http://a"', "mcp.x: give either command or url."),
        ('[mcp.x]\ncomand = "a"', "there is no key mcp.x.comand. Did you mean mcp.x.command?"),
        ('[mcp.x]\nurl = "ftp://a"', "mcp.x.url"),
        ('[mcp."a b"]\ncommand = "x"', "mcp.a b"),
        ("model =", "cannot be read: Invalid value"),
    ],
)
def test_what_is_wrong_names_the_key_and_what_is_expected(project, uitweg, text, told):
    path = project(text)
    for command in (["config"], ["run", TASK], ["serve"]):
        said = uitweg(*command)
        assert said.code == 2
        assert str(path) in said.err
        assert told in said.err, said.err


def test_every_problem_of_a_file_is_said_at_once(project, uitweg):
    project('modell = "x"\n[limits]\nmax_turns = "ten"')
    err = uitweg("config").err
    assert "modell" in err
    assert "limits.max_turns" in err


REACHING = {
    "tools": 'tools = ["my_tools.py"]',
    "base_url": 'base_url = "http://127.0.0.1:9/v1"',
    "workspace": 'workspace = ".."',
    "mcp.x": '[mcp.x]\ncommand = "touch"\nargs = ["ran"]',
}


@pytest.mark.parametrize("key", REACHING)
def test_a_projects_file_reaches_out_only_once_it_is_trusted(project, uitweg, key, tmp_path):
    (tmp_path / "project" / "my_tools.py").write_text("open('ran', 'w')\n")
    project(REACHING[key])
    said = uitweg("run", TASK, "--model", "plan")
    assert said.code == 2
    assert f"sets {key}, and that is new or has changed" in said.err
    assert "uitweg config --trust" in said.err
    assert not (tmp_path / "project" / "ran").exists()
    shown = uitweg("config")
    assert shown.code == 1
    assert "Not used yet" in shown.out


def test_trust_holds_for_one_wording(project, uitweg, tmp_path):
    (tmp_path / "project" / "sub").mkdir()
    (tmp_path / "project" / "sub" / "errors.log").write_text("worker 9 timed out after 5 ms\n")
    project('workspace = "sub"\nmodel = "plan"')
    assert uitweg("config", "--trust").code == 0
    assert uitweg("config").code == 0
    closing = uitweg("run", TASK, "--json").closing
    assert closing["workspace"] == str(tmp_path / "project" / "sub")
    project('workspace = "sub"\nmodel = "plan"\n[limits]\nmax_turns = 9')
    assert uitweg("config").code == 0
    project('workspace = ".."\nmodel = "plan"')
    assert uitweg("run", TASK).code == 2


def test_what_the_environment_sets_over_it_does_not_change_the_trust(
    project, uitweg, monkeypatch, scripted_url
):
    project(f'base_url = "{scripted_url}"')
    assert uitweg("config", "--trust").code == 0
    assert uitweg("config").code == 0
    monkeypatch.delenv("LLM_BASE_URL")
    assert uitweg("config").code == 0


def test_limits_and_models_of_a_project_need_no_trust(project, uitweg):
    project('model = "plan"\nprofile = "none"\n[limits]\nmax_turns = 9\n[ports]\npage = 8001')
    assert uitweg("run", TASK).code == 0


def test_a_damaged_record_of_trust_trusts_nothing(project, uitweg, home):
    project('workspace = "."')
    assert uitweg("config", "--trust").code == 0
    (home / "trusted.json").write_text("[1")
    assert uitweg("run", TASK).code == 2


def test_prices_of_a_file_count(project, uitweg):
    project('model = "plan"\n[prices]\ninput_per_million = 0\noutput_per_million = 0.5')
    closing = uitweg("run", TASK, "--json").closing
    assert closing["cost_usd"] == 0.000035


def test_resume_finds_what_the_run_began_with(project, uitweg):
    project('model = "runaway"\n[limits]\nmax_turns = 1')
    run_id = uitweg("run", TASK, "--json").closing["run_id"]
    said = uitweg("resume", run_id, "--max-turns", "2", "--json")
    assert json.loads(said.out)["turns"] == 2
