"""`uitweg doctor` on a machine where something is wrong, and where nothing is."""

from __future__ import annotations

import os
import socket

import pytest

from server.engine.native import native
from uitweg.config import Ports, user_file
from uitweg.doctor.ports import check_ports, holder


@pytest.fixture
def ports(port):
    """Three free ports, as the settings."""
    values = {"page": port(), "model": port(), "scripted": port()}
    user_file().parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{name} = {number}\n" for name, number in values.items())
    user_file().write_text(f'model = "plan"\n[ports]\n{lines}')
    return values


@pytest.fixture
def no_models(tmp_path, monkeypatch):
    monkeypatch.setenv("UITWEG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.mark.engine
def test_nothing_is_wrong(home, ports, no_models, uitweg):
    said = uitweg("doctor")
    assert said.code == 0, said.out
    assert "Nothing is wrong." in said.out
    assert "none is here yet" in said.out
    assert "yes, it called list_files" in said.out
    assert ("our kernels" in said.out) == (native().kernels is not None)


def test_a_damaged_model_and_a_damaged_store(home, ports, no_models, uitweg):
    no_models.mkdir(parents=True)
    (no_models / "smollm2-135m-instruct.gguf").write_bytes(b"GGUF")
    home.mkdir()
    (home / "runs.db").write_bytes(b"not a database" * 100)
    said = uitweg("doctor")
    assert said.code == 1
    assert "has 4 bytes where 98,362,432 are expected" in said.out
    assert "uitweg models fetch smollm2-135m-instruct" in said.out
    assert str(home / "runs.db") in said.out
    assert "things wrong." in said.out


def test_a_broken_endpoint(home, ports, no_models, uitweg):
    said = uitweg("doctor", "--base-url", "http://127.0.0.1:1")
    assert said.code == 1
    assert "WRONG  endpoint" in said.out


def test_the_bundled_server_need_not_run(home, ports, no_models, uitweg, monkeypatch):
    monkeypatch.delenv("LLM_BASE_URL")
    said = uitweg("doctor")
    assert "does not run just now" in said.out
    assert "WRONG  endpoint" not in said.out


def test_own_tools_that_do_not_load(home, no_models, uitweg, tmp_path):
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f'tools = ["{tmp_path}/none.py"]\nmodel = "plan"\n')
    said = uitweg("doctor")
    assert said.code == 1
    assert "WRONG  own tools" in said.out


def test_who_has_taken_a_port(port, scripted_url):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        scripted = int(scripted_url.rpartition(":")[2].partition("/")[0])
        found = list(check_ports(Ports(page=port(), model=number, scripted=scripted)))
    assert [check.state for check in found] == ["ok", "wrong", "ok"]
    assert f"(process {os.getpid()})" in found[1].found
    assert "--model-port" in found[1].advice
    assert "listens already" in found[2].found


def test_a_port_that_nobody_has(port):
    assert holder(port()) is None
