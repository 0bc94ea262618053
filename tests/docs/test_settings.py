"""Every setting, variable, exit code and event is in docs/settings.md, and nothing else is."""

from __future__ import annotations

import re
import tomllib
import typing
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from harness import events
from harness.mcp_server import McpServer
from uitweg import endings
from uitweg.config import Config, flat

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "settings.md").read_text("utf-8")
PACKAGES = ("harness", "local", "models", "server", "uitweg", "web")

OURS = re.compile(r'"((?:LLM|OPENAI|UITWEG|HF|OTEL)_[A-Z_]+)"')
READ_BY_LIBRARIES = {"HF_TOKEN", "HF_HUB_OFFLINE"}
"""huggingface-hub reads these itself."""


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading: first cell to the others."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows[2:]}


def test_every_key_and_no_other():
    keys = {key for key in flat(Config()) if key != "mcp"}
    servers = {name for name, field in McpServer.model_fields.items() if not field.exclude}
    assert set(table("Keys")) == keys | {f"mcp.NAME.{name}" for name in servers}


def test_the_options_exist(capsys):
    from uitweg.main import run

    run(["run", "--help"])
    run(["start", "--help"])
    shown = capsys.readouterr().out
    options = [cells[1].strip("`") for cells in table("Keys").values() if cells[1]]
    assert options
    assert not [option for option in options if option not in shown]


def test_every_variable_and_no_other():
    read = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in OURS.findall(path.read_text("utf-8"))
    }
    assert set(table("Environment variables")) == read | READ_BY_LIBRARIES


def test_every_exit_code_and_no_other():
    codes = {*endings.OF_STATUS.values(), *endings.OF_INTERRUPTION.values(), 2}
    assert {int(code) for code in table("Exit codes")} == codes


def test_every_event_with_every_field():
    documented = table("Events")
    base = {*events.Base.model_fields, "type"}
    kinds = typing.get_args(typing.get_args(events.Event)[0])
    assert set(documented) == {kind.model_fields["type"].default for kind in kinds}
    for kind in kinds:
        named = re.findall(r"`(\w+)`", documented[kind.model_fields["type"].default][1])
        assert named == [to_camel(name) for name in kind.model_fields if name not in base]


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL))
def test_the_example_can_be_read(block):
    Config.model_validate(tomllib.loads(block))
